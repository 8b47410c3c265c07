"""``python -m lethe_lib run STUDY``: do the runs of a study that have no record yet, and publish them if asked."""

import argparse
from functools import partial
from importlib import import_module
from pathlib import Path

from lethe_lib.errors import InputError
from lethe_lib.study.configuration import Configuration
from lethe_lib.study.records import publish
from lethe_lib.study.runner import run_all
from lethe_lib.study.store import RecordStore, default_root
from lethe_lib.study.studies import OWN_STUDIES, STUDIES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("study", help=f"one of: {', '.join([*STUDIES, *OWN_STUDIES])}")
    parser.add_argument("--only", metavar="GRAPH", nargs="+", help="these graphs instead of the study's own list")
    parser.add_argument("--preset", choices=("corrected", "published"), help="this preset alone")
    parser.add_argument("--records", metavar="FOLDER", type=Path, help="the record store (default: records/)")
    parser.add_argument("--workers", type=int, default=1, help="local processes (default: 1)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    parser.add_argument("--publish", action="store_true", help="write results/ when every run has a record")


def main(arguments: argparse.Namespace) -> int:
    """Run the command; 0 when every run has a record."""
    if arguments.study in OWN_STUDIES:  # studies that are not lists of runs bring their own command
        return run_own(arguments)
    make = STUDIES[arguments.study]
    configs = make() if arguments.only is None else make(arguments.only)
    if arguments.preset:
        configs = [config for config in configs if config.preset == arguments.preset]
    if arguments.publish and (arguments.only or arguments.preset):
        raise InputError("--publish takes a whole study: leave out --only and --preset")
    root = arguments.records or default_root()
    store = RecordStore(root / arguments.study)
    adopted = take_over(configs, store, root)
    if adopted:
        print(f"{adopted} runs were done for another study and are taken over", flush=True)
    run_all(configs, store, root / "models", arguments.device, arguments.workers, partial(print, flush=True))
    if arguments.publish:
        for path in publish(arguments.study, configs, store):
            print(f"published {path}")
    return 0


def take_over(configs: list[Configuration], store: RecordStore, root: Path) -> int:
    """Copy the runs that another study below ``root`` has done already into ``store``; returns how many."""
    folders = [path for path in sorted(root.glob("*")) if path.is_dir() and path not in (store.folder, root / "models")]
    missing = [config.key for config in configs if not store.finished(config.key)]
    return sum(any(store.adopt(key, RecordStore(folder)) for folder in folders) for key in missing)


def run_own(arguments: argparse.Namespace) -> int:
    """Hand over to a study with its own module; it takes ``--only`` alone."""
    module = import_module(OWN_STUDIES[arguments.study])
    parser = argparse.ArgumentParser(prog=f"python -m lethe_lib run {arguments.study}")
    module.add_arguments(parser)
    return module.main(parser.parse_args(["--only", *arguments.only] if arguments.only else []))
