"""Where a page comes from: the code that it shows is the code that ran, the records, and the versions that it ran with."""

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from IPython.display import Markdown, display

from lethe_lib.errors import InputError
from lethe_lib.paths import repository
from lethe_lib.study.provenance import device_name, environment
from lethe_lib.study.tables import tables_read


def show_source(*objects: Callable | type) -> None:
    """Display the source of functions or classes of this library, highlighted, as it is imported and run.

    Args:
        objects: functions or classes defined in a file of the library.

    Raises:
        InputError: for something whose source is not Python code of this library.
    """
    for shown in objects:
        shown = inspect.unwrap(shown) if callable(shown) else shown
        try:
            path = Path(inspect.getsourcefile(shown)).relative_to(repository())
            code = textwrap.dedent(inspect.getsource(shown))
        except (TypeError, ValueError, OSError):
            raise InputError(f"no source of {shown!r} in this library: pass a function or class of lethe_lib") from None
        display(Markdown(f"From `{path.as_posix()}`:\n\n````python\n{code}````"))


def provenance(parameters: Mapping | None = None, graphs: Iterable = ()) -> None:
    """Print what a reader needs to repeat the page: commit, versions, hardware, parameters, and hashes of all data.

    Published tables that the page has read are listed with a hash of their file.

    Args:
        parameters: the values that this page ran with.
        graphs: graphs in canonical form whose ``name`` and ``content_hash`` are printed.
    """
    rows = [(name, value) for name, value in environment().items() if name != "lethe_lib"]
    rows += [
        ("threads", torch.get_num_threads()),
        ("device", device_name("cuda" if torch.cuda.is_available() else "cpu")),
    ]
    rows += [(f"parameter {name}", repr(value)) for name, value in (parameters or {}).items()]
    rows += [(f"graph {graph.name}", graph.content_hash[:16]) for graph in graphs]
    rows += [(f"records {name}", digest) for name, digest in tables_read().items()]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
