"""Where files live. No path is relative to the current folder, since chapters run in several folders."""

import os
from pathlib import Path


def repository() -> Path:
    """The checkout that holds this library (its ``results/`` and ``notebooks/`` lie beside ``lethe_lib/``)."""
    return Path(__file__).resolve().parent.parent


def cache() -> Path:
    """The user's cache: ``LETHE_CACHE``, else ``XDG_CACHE_HOME/lethe``, else ``~/.cache/lethe``. May not exist yet."""
    if os.environ.get("LETHE_CACHE"):
        return Path(os.environ["LETHE_CACHE"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "lethe"


def results() -> Path:
    """The published records: ``LETHE_RESULTS``, else ``results/`` of the checkout."""
    if os.environ.get("LETHE_RESULTS"):
        return Path(os.environ["LETHE_RESULTS"]).expanduser()
    return repository() / "results"
