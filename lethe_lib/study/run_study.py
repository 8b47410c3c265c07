"""``python -m lethe_lib run STUDY``: do the runs of a study that have no record yet, and publish them if asked.

Two studies are tables of simulations in place of lists of runs. They are computed as a whole or by parts (``--only``), into the
folder of the records, or with ``--publish`` into ``results/``, where parts that are not asked for stay as they are.
"""

import argparse
from functools import partial
from importlib import import_module
from pathlib import Path

from lethe_lib.errors import InputError
from lethe_lib.paths import results
from lethe_lib.study.configuration import Configuration
from lethe_lib.study.parameters import at_least, writable_folder
from lethe_lib.study.records import publish, published_settings
from lethe_lib.study.runner import run_all
from lethe_lib.study.store import RecordStore, default_root
from lethe_lib.study.studies import OWN_STUDIES, STUDIES, require_study

OF_LISTS = {"preset": None, "workers": 1, "device": "auto", "extend": False}
"""Options, with their defaults, that studies which are not lists of runs do not take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("study", help=f"one of: {', '.join([*STUDIES, *OWN_STUDIES])}")
    parser.add_argument(
        "--only", metavar="GRAPH", nargs="+", help="these graphs (audit_calibration: methods) instead of all"
    )
    own = f"; not for {', '.join(OWN_STUDIES)}"
    parser.add_argument("--preset", choices=("corrected", "published"), help=f"this preset alone{own}")
    parser.add_argument("--records", metavar="FOLDER", type=Path, help="the record store (default: records/)")
    parser.add_argument("--workers", type=at_least(1), default=1, help=f"local processes (default: 1){own}")
    parser.add_argument("--device", default="auto", help=f"auto, cpu, cuda, ... (default: auto){own}")
    parser.add_argument("--publish", action="store_true", help="write results/ when every run has a record")
    parser.add_argument(
        "--extend",
        action="store_true",
        help="with --publish: leave the settings that results/ holds whole as they are, and do the others alone",
    )


def main(arguments: argparse.Namespace) -> int:
    """Run the command; 0 when every run has a record."""
    require_study(arguments.study)
    if arguments.study in OWN_STUDIES:
        return run_own(arguments)
    make = STUDIES[arguments.study]
    configs = make() if arguments.only is None else make(arguments.only)
    if arguments.preset:
        configs = [config for config in configs if config.preset == arguments.preset]
    if arguments.publish and (arguments.only or arguments.preset):
        raise InputError("--publish takes a whole study: leave out --only and --preset")
    if arguments.extend and not arguments.publish:
        raise InputError("--extend says what --publish leaves as it is: give both")
    kept = published_settings(arguments.study, configs) if arguments.extend else set()
    if kept:
        print(
            f"{len(kept)} of {len(configs)} runs are published with their whole setting and stay as they are",
            flush=True,
        )
    to_do = [config for config in configs if config.key not in kept]
    root = record_root(arguments.records)
    store = RecordStore(root / arguments.study)
    adopted = take_over(to_do, store, root)
    if adopted:
        print(f"{adopted} runs were done for another study and are taken over", flush=True)
    run_all(to_do, store, root / "models", arguments.device, arguments.workers, partial(print, flush=True))
    if arguments.publish:
        for path in publish(arguments.study, configs, store, kept):
            print(f"published {path}")
    return 0


def record_root(folder: Path | None) -> Path:
    """The folder given with ``--records``, else the default; InputError if it cannot be written, before anything runs."""
    return writable_folder(folder or default_root(), "--records")


def take_over(configs: list[Configuration], store: RecordStore, root: Path) -> int:
    """Copy the runs that another study below ``root`` has done already into ``store``; returns how many."""
    folders = [path for path in sorted(root.glob("*")) if path.is_dir() and path not in (store.folder, root / "models")]
    missing = [config.key for config in configs if not store.finished(config.key)]
    return sum(any(store.adopt(key, RecordStore(folder)) for folder in folders) for key in missing)


def run_own(arguments: argparse.Namespace) -> int:
    """Hand over to a study with its own module; an option that it does not take is an error.

    Raises:
        InputError: naming the options.
    """
    given = [f"--{name}" for name, default in OF_LISTS.items() if getattr(arguments, name) != default]
    if given:
        raise InputError(
            f"{arguments.study} is no list of runs and takes no {', '.join(given)}: "
            "leave that out; it takes --only, --records and --publish"
        )
    if arguments.publish and arguments.records:
        raise InputError(f"--publish of {arguments.study} computes and writes {results()}: leave out --records")
    module = import_module(OWN_STUDIES[arguments.study])
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    options = parser.parse_args([])
    options.only = arguments.only or options.only
    if not arguments.publish:
        folder = record_root(arguments.records) / arguments.study
        options.out = folder / f"{arguments.study}.parquet" if arguments.study == "audit_calibration" else folder
        print(f"writing to {options.out}; --publish writes to {results()}", flush=True)
    return module.main(options)
