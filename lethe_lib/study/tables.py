"""Reading published tables, and remembering which: a page can say what its figures rest on."""

import hashlib
from pathlib import Path

import pandas as pd

from lethe_lib import paths

_READ: set[Path] = set()


def read_table(path: Path, **options) -> pd.DataFrame:
    """A published table, as ``pandas.read_parquet`` reads it with these options; it is remembered as read."""
    table = pd.read_parquet(path, **options)
    _READ.add(path)
    return table


def tables_read() -> dict[str, str]:
    """Name within ``results/`` -> hash of the file, for every published table that this process has read."""
    inside = sorted(path for path in _READ if path.is_relative_to(paths.results()))
    return {
        path.relative_to(paths.results()).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in inside
    }
