"""``python -m lethe_lib leaderboard``: the published leaderboard of some cells, with your own unlearner in it.

Your unlearner is one file, as for ``audit-edges``, and need not be part of the library:

    python -m lethe_lib leaderboard --file shrink.py --graphs cora --sets low high

or an installed package that names it as an entry point, found by ``--method shrink``:

    [project.entry-points."lethe_lib.unlearners"]
    shrink = "my_package.shrink:SHRINK"              # an Unlearner

Your method and the controls run here, with their Golds, and stand beside the published rows of the other methods. Runs are
kept and found again; a changed file counts as another method.
"""

import argparse
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pandas as pd

from lethe_lib.data import DATASETS
from lethe_lib.errors import InputError
from lethe_lib.models import BACKBONES
from lethe_lib.structure import FORGET_SETS
from lethe_lib.study.audit_edges import check_unlearner, load_unlearners, require_preset
from lethe_lib.study.benchmark import ATTACK_NAMES, benchmark_excess, benchmark_records, cell_board, with_outcomes
from lethe_lib.study.configuration import UnlearningConfiguration, preset_settings
from lethe_lib.study.parameters import at_least
from lethe_lib.study.records import excess_frame, frame
from lethe_lib.study.run_study import record_root, take_over
from lethe_lib.study.runner import run_all
from lethe_lib.study.store import RecordStore
from lethe_lib.study.studies import CONTROLS
from lethe_lib.unlearning import UNLEARNERS, Unlearner

ENTRY_POINTS = "lethe_lib.unlearners"
SHORT = {"link_teller": "LinkTeller", "link_stealing": "Link Stealing", "e_umia": "E-UMIA"}


@dataclass(frozen=True)
class OwnUnlearningConfiguration(UnlearningConfiguration):
    """A run of a method from outside the library; ``source`` is the hash of the file that defines it."""

    source: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--file", metavar="FILE", type=Path, help="a Python file that registers an unlearner")
    parser.add_argument("--method", help="name of the unlearner, if the file registers several, or of an entry point")
    parser.add_argument("--graphs", nargs="+", default=["cora"], help="names of graphs (default: cora)")
    parser.add_argument("--sets", nargs="+", default=["low", "high"], help="kinds of forget sets (default: low high)")
    parser.add_argument("--backbone", default="gcn", help="name of a backbone (default: gcn)")
    parser.add_argument("--preset", default="corrected", help="of training, methods and attacks (default: corrected)")
    parser.add_argument("--seeds", type=at_least(1), default=3, help="number of seeds of your runs (default: 3)")
    parser.add_argument("--records", metavar="FOLDER", type=Path, help="the record store (default: records/)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")


def main(arguments: argparse.Namespace) -> int:
    """Run the command; 0 when every cell has its table."""
    method, source = own_method(arguments.file, arguments.method)
    root = None if method is None else record_root(arguments.records)
    for name in arguments.graphs:  # an unknown name is an error before anything runs
        DATASETS[name]
    for name in arguments.sets:
        FORGET_SETS[name]
    BACKBONES[arguments.backbone]
    require_preset(method or "gold", arguments.preset)
    for data in arguments.graphs:
        for forget in arguments.sets:
            cell = {"data": data, "preset": arguments.preset, "backbone": arguments.backbone, "forget": forget}
            records, excess = published_cell(**cell)
            if method is not None:
                own, leaks = own_cell(method, source, range(arguments.seeds), cell, root, arguments.device)
                records = pd.concat([own, records[~records["method"].isin(own["method"])]], ignore_index=True)
                excess = pd.concat([leaks, excess[~excess["method"].isin(own["method"])]], ignore_index=True)
            if records.empty:
                raise InputError(f"nothing is published of {data}, {forget} set, {arguments.backbone}: give a --file")
            print(f"\n{data}, {forget} set, {arguments.backbone}, preset {arguments.preset}")
            print(as_text(cell_board(records, excess), method).to_string(index=False), flush=True)
    print(
        "\nAccuracy: change in points against the original, 95 % interval over seeds. Attacks: AUC above Gold's, bootstrap"
    )
    print(
        "interval over pairs and seeds. Time: seconds over Gold's. Your method and the controls ran here, the rest is published."
    )
    return 0


def own_method(file: Path | None, name: str | None) -> tuple[str | None, str]:
    """Register an unlearner from a file or an entry point; its name and the hash of its source, None without either.

    Raises:
        InputError: the file registers none, or several and no name chooses; nothing has the name.
    """
    if file is not None:
        registered, source = load_unlearners(file)
        if name is None and len(registered) > 1:
            raise InputError(f"{file} registers {', '.join(registered)}: choose one with --method")
        if name is not None and name not in registered:
            raise InputError(f"{file} registers {', '.join(registered)}, and not {name!r}")
        return name or registered[0], source
    if name is None or name in UNLEARNERS:
        return name, ""
    for point in entry_points(group=ENTRY_POINTS, name=name):
        entry = point.load()
        if not isinstance(entry, Unlearner):
            raise InputError(f"entry point {name!r} gives {type(entry).__name__}: let it name an Unlearner")
        check_unlearner(name, entry, f"entry point {name!r}")
        UNLEARNERS.register(name, entry)
        return name, hashlib.sha256(Path(inspect.getsourcefile(entry.run)).read_bytes()).hexdigest()
    UNLEARNERS[name]  # the registry's error says what is known
    raise AssertionError("unreachable: an unknown name is an error")


def published_cell(**cell: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Records and excess of one cell as they are published; both empty where there are none."""
    tables = benchmark_records(), benchmark_excess()
    return tuple(table[(table[list(cell)] == list(cell.values())).all(axis=1)] for table in tables)


def own_cell(
    method: str,
    source: str,
    seeds: range,
    cell: dict[str, str],
    root: Path,
    device: str = "auto",
    progress: Callable[[str], None] = print,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run a method and the controls in one cell, or find their records; their rows as :func:`published_cell` gives them."""
    configs = [
        UnlearningConfiguration(
            seed=seed, method=name, method_seed=seed + 1000 * other if other else None, attacks=ATTACK_NAMES, **cell
        )
        for seed in seeds
        for name, other in CONTROLS
    ]
    names = [name for name, _ in CONTROLS]
    if method not in names:
        settings = preset_settings(method, cell["preset"])
        configs += [
            OwnUnlearningConfiguration(
                seed=seed, method=method, attacks=ATTACK_NAMES, settings=settings, source=source, **cell
            )
            for seed in seeds
        ]
    store = RecordStore(root / "leaderboard")
    take_over(configs, store, root)
    run_all(configs, store, root / "models", device, progress=progress)
    records = with_outcomes(frame([store.read(config.key) for config in configs]))
    for run in records[(records["method"] == method) & (records["status"] != "ok")].to_dict("records"):
        progress(f"{method}, seed {run['seed']}: {run['status']}, {run['reason']}")
    return records, excess_frame(configs, store)


def as_text(board: pd.DataFrame, own: str | None) -> pd.DataFrame:
    """A :func:`cell_board` as it is printed; an arrow marks the method ``own``."""
    shown = pd.DataFrame({"method": [f"> {name}" if name == own else name for name in board["method"]]})
    shown["family"], shown["runs"], shown["broken"] = board["kind"], board["runs"], board["broken"]
    shown["accuracy"] = _with_interval(board, "change", 100, 1)
    for name, title in SHORT.items():
        if f"{name}_excess" in board:
            shown[title] = _with_interval(board, f"{name}_excess", 1, 3)
    shown["time"] = [f"{share:.2g}" for share in board["share"]]
    return shown


def _with_interval(board: pd.DataFrame, name: str, scale: float, digits: int) -> list[str]:
    cells = []
    for value, low, high in board[[name, f"{name}_low", f"{name}_high"]].itertuples(index=False):
        ends = f" [{scale * low:+.{digits}f}, {scale * high:+.{digits}f}]" if pd.notna(low) else ""
        cells.append(f"{scale * value:+.{digits}f}{ends}" if pd.notna(value) else "")
    return cells
