"""``python -m lethe_lib audit-edges``: how much an unlearner, of the library or of your own, still remembers of edges.

Your own unlearner is one file that registers it, and need not be part of the library:

    from lethe_lib.unlearning import UNLEARNERS, NoSettings, StepLog, Unlearner

    def shrink(model, request, settings, seed):
        for parameter in model.parameters():
            parameter.data.mul_(0.9)
        return model, StepLog()

    UNLEARNERS.register("shrink", Unlearner(shrink, {"corrected": NoSettings()}, "addition", "me"))

The command runs the randomised audit on it and on the controls, and prints AUCs and residual memory with intervals. Trials
are kept and found again, originals are shared; a changed file counts as another method.
"""

import argparse
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path

import pandas as pd

from lethe_lib.attacks.edge_membership import LEAST_TRIALS
from lethe_lib.errors import InputError, LetheError
from lethe_lib.models import BACKBONES, PRESETS
from lethe_lib.registry import of_preset
from lethe_lib.structure import FORGET_SETS
from lethe_lib.study.benchmark import WITHOUT_ANSWER
from lethe_lib.study.edge_audit import CONTROLS, HEADLINE, EdgeAuditConfiguration
from lethe_lib.study.edge_audit_tables import memory_frame
from lethe_lib.study.parameters import at_least
from lethe_lib.study.run_study import record_root
from lethe_lib.study.runner import run
from lethe_lib.study.store import RecordStore
from lethe_lib.unlearning import UNLEARNERS, Unlearner

GUIDE = 'see "Add a method" in book/how_to_reproduce.md'
TITLES = {"gold": "Gold (exact)", "untrained": "Untrained", "memoriser": "Memoriser", "utu": "UtU (unlinking)"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--unlearner", metavar="FILE", type=Path, help="a Python file that registers an unlearner")
    parser.add_argument("--method", help="name of the unlearner (default: the one that the file registers)")
    parser.add_argument("--graph", default="cora", help="name of a graph (default: cora)")
    parser.add_argument("--backbone", default="gcn", help="name of a backbone (default: gcn)")
    parser.add_argument("--pool", default="low", help="kind of forget set the edges come from (default: low)")
    parser.add_argument("--fraction", type=float, default=0.05, help="share of the edges in the pool (default: 0.05)")
    parser.add_argument("--trials", type=at_least(LEAST_TRIALS), default=32, help="at least 16 (default: 32)")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the split, the pool, the coins and training (default: 0)"
    )
    parser.add_argument("--preset", default="corrected", help="of training and method (default: corrected)")
    parser.add_argument("--records", metavar="FOLDER", type=Path, help="the record store (default: records/)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")


def main(arguments: argparse.Namespace) -> int:
    """Run the command; 0 when the audit is done and its controls are as they must be."""
    method, source = arguments.method, ""
    if arguments.unlearner is not None:
        registered, source = load_unlearners(arguments.unlearner)
        method = method or registered[0]
        if arguments.method is None and len(registered) > 1:
            raise InputError(f"{arguments.unlearner} registers {', '.join(registered)}: choose one with --method")
    if method is None:
        raise InputError("name a method with --method, or give a file that registers one with --unlearner")
    for name in (*CONTROLS, method):  # an unknown name is an error before anything runs
        require_preset(name, arguments.preset)
    BACKBONES[arguments.backbone], FORGET_SETS[arguments.pool]
    root = record_root(arguments.records)
    store = RecordStore(root / "audit-edges")
    configs = []
    for name in dict.fromkeys([*CONTROLS, method]):
        config = EdgeAuditConfiguration(
            arguments.graph,
            arguments.seed,
            arguments.preset,
            arguments.backbone,
            name,
            arguments.pool,
            arguments.fraction,
            trials=arguments.trials,
            source=source if name == method else "",
        )
        configs.append(config)
        record = run(config, store, root / "models", arguments.device)
        reasons = [record["reason"], reason_of(config.key, root) if record["status"] in WITHOUT_ANSWER else ""]
        note = f" ({'; '.join(filter(None, reasons))})" if any(reasons) else ""
        print(f"{name}: {record['status']}{note}, {record['wall_seconds']:.0f} s", flush=True)
        if record["status"] in ("failed", "unsupported"):
            return 1
    table = audit_table(configs, store)
    print(
        f"\n{arguments.trials} trials on {arguments.graph}, pool {arguments.pool}, {arguments.backbone}; 95 % intervals over"
    )
    print("trials. AUC 0.5: nothing is told of the edges. Residual memory 1: no better than unlinking; 0: exact.\n")
    print(table.to_string(index=False, na_rep=""))
    problems = control_problems(table)
    for problem in problems:
        print(f"\nnot to be trusted: {problem}")
    return 1 if problems else 0


def load_unlearners(path: Path) -> tuple[list[str], str]:
    """Run a file and return the names that it registered, and the hash of its text.

    Raises:
        InputError: the file cannot be run, registers nothing, or registers what cannot be used; what to write instead.
    """
    if not path.is_file():
        raise InputError(f"{path} is no file: give a Python file that registers an unlearner")
    before, name = set(UNLEARNERS), f"unlearner_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise InputError(f"{path} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
    except LetheError:
        raise
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {getattr(error, 'msg', error)}".removesuffix(": ")
        raise InputError(f"{place_of(error, path)} cannot be run, {what}: mend the file") from error
    registered = [name for name in UNLEARNERS if name not in before]
    if not registered:
        raise InputError(
            f"{path} registers no unlearner: call UNLEARNERS.register(name, Unlearner(...)) in it; {GUIDE}"
        )
    for name in registered:
        check_unlearner(name, UNLEARNERS[name], str(path))
    return registered, hashlib.sha256(path.read_bytes()).hexdigest()


def place_of(error: BaseException, path: Path) -> str:
    """The file and the line in it where an error arose; without a line where there is none."""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno))
    line = next((line for file, line in reversed(places) if Path(file).resolve() == path.resolve()), None)
    return f"{path}, line {line}," if line else f"{path}"


def check_unlearner(name: str, entry: object, where: str) -> None:
    """Refuse what no command could run, before anything is computed.

    Args:
        name: in the registry. entry: what stands there. where: what registered it, for the message.

    Raises:
        InputError: ``entry`` is no Unlearner, or its settings are no frozen dataclasses with a preset ``corrected``.
    """
    line = f'UNLEARNERS.register("{name}", Unlearner(function, {{"corrected": NoSettings()}}, "addition", "me"))'
    if not isinstance(entry, Unlearner) or not callable(entry.run):
        wrong = f"an Unlearner of {entry.run!r}" if isinstance(entry, Unlearner) else repr(entry)
        raise InputError(f"{where}: {name!r} must be an Unlearner of a function, not {wrong}. Write {line}; {GUIDE}")
    if not isinstance(entry.settings, Mapping) or "corrected" not in entry.settings:
        raise InputError(f"{where}: {name!r} has no settings of the preset 'corrected'. Write {line}; {GUIDE}")
    for preset, settings in entry.settings.items():
        if isinstance(settings, type) or not is_dataclass(settings) or not settings.__dataclass_params__.frozen:
            raise InputError(
                f"{where}: the settings of {name!r}, preset {preset!r}, are {settings!r} and must be an instance of a class "
                f"with @dataclass(frozen=True); without settings, write {line}; {GUIDE}"
            )


def require_preset(method: str, preset: str) -> None:
    """Refuse a preset that does not exist or that the method lacks.

    Raises:
        InputError: naming the presets that there are.
    """
    if preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}: choose {' or '.join(PRESETS)}")
    of_preset(method, UNLEARNERS[method].settings, preset, {})


def reason_of(key: str, root: Path) -> str:
    """Why the first trial of a run that gave no answer did not, from its kept trials; empty if all did or none is kept."""
    parts = RecordStore(root / "edge_audit_parts")
    for part in (part for part in parts.keys() if part.startswith(f"{key}_")):
        for outcome in parts.read(part)["outcomes"] if parts.finished(part) else ():
            if outcome["status"] in WITHOUT_ANSWER:
                return outcome["reason"]
    return ""


def audit_table(configs: list[EdgeAuditConfiguration], store: RecordStore) -> pd.DataFrame:
    """One row a method: status, headline AUC, null error, residual memory, accuracy and seconds.

    Numbers of a method that released no model of its own are left blank: they would be those of the original.
    """
    memory = memory_frame(configs, store)
    memory = memory[memory["adversary"] == HEADLINE].set_index("key")
    rows = []
    for config in configs:
        record = store.read(config.key)
        row = {"method": TITLES.get(config.method, config.method), "status": record["status"]}
        if record["status"] in WITHOUT_ANSWER:
            rows.append(row)
            continue
        metrics, left = record["metrics"], memory.loc[config.key]
        residual = "nothing to remove"
        if left["to_remove"]:
            residual = f"{left['residual']:.2f} [{left['residual_low']:.2f}, {left['residual_high']:.2f}]"
        row |= {
            "AUC": round(left["auc"], 3),
            "interval": f"[{left['low']:.3f}, {left['high']:.3f}]",
            "null error": round(metrics["null_error"], 4),
            "residual memory": residual,
            "least detectable": round(left["detectable"], 2) if left["to_remove"] else "",
            "test accuracy": round(metrics["accuracy_test"], 3),
            "seconds": round(metrics["seconds"], 3),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def control_problems(table: pd.DataFrame) -> list[str]:
    """What is wrong with the controls: exact answers must not be seen, the memoriser must be."""
    rows, problems = table.set_index("method"), []
    for name in ("gold", "untrained"):
        row = rows.loc[TITLES[name]]
        if abs(row["AUC"] - 0.5) > 3 * row["null error"] + 1e-9:
            problems.append(f"{TITLES[name]} has AUC {row['AUC']} although it never saw the edges")
    if rows.loc[TITLES["memoriser"], "AUC"] < 0.95:
        problems.append(f"the Memoriser has AUC {rows.loc[TITLES['memoriser'], 'AUC']}: run more trials")
    return problems
