"""From configurations to records: resumable, parallel by one setting, with progress.

``joblib`` is the only scheduler: ``workers=1`` runs here, ``workers=n`` uses local processes, and inside
``joblib.parallel_config(backend="dask")`` the same call uses a Dask cluster. All three write the same records.
"""

import os
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import joblib
import torch

from lethe_lib.errors import DataNotFound, InputError, TrainingDiverged
from lethe_lib.models import resolve_device
from lethe_lib.study.configuration import STAGE_VERSION, Configuration
from lethe_lib.study.provenance import PeakMemory, device_name, environment
from lethe_lib.study.store import RecordStore


def run(
    config: Configuration, store: RecordStore | None = None, models: Path | None = None, device: str = "auto"
) -> dict:
    """Do one run and return its record; with a store, a finished record is returned without running again.

    Args:
        config: what to do.
        store: where the record is kept; None keeps nothing.
        models: folder of the cache of trained originals; None trains afresh.
        device: ``auto``, ``cpu``, ``cuda``, ...

    Returns:
        A dict with ``config``, ``kind``, ``key``, ``status``, ``reason``, ``metrics``, ``wall_seconds``,
        ``peak_memory_mib`` and ``provenance``. A method that breaks is a record with status ``failed`` and the error as
        its reason; bad input raised before any work (an unknown name, a missing data set) stays an exception, and so does
        memory that runs out, which says nothing of the method.

    Raises:
        InputError, DataNotFound: the configuration cannot be run as it is, or its record is about another graph.
    """
    resolve_device(device)
    if store is not None and store.finished(config.key):
        _refuse_other_graph(config, store)
        return store.read(config.key)
    data_hash = config.data_hash()
    start = time.perf_counter()
    with PeakMemory() as memory:
        try:
            found = config.measure(models, device)
            status, reason, metrics, arrays = found.status, found.reason, found.metrics, found.arrays
        except TrainingDiverged as error:
            status, reason, metrics, arrays = "diverged", str(error), {}, {}
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, ArithmeticError) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            status, reason, metrics, arrays = "failed", f"{type(error).__name__} in {where}: {error}", {}, {}
    device_used = device if device != "auto" else ("cuda" if torch.cuda.is_available() else "cpu")
    record = {
        "kind": type(config).__name__,
        "config": asdict(config),
        "key": config.key,
        "status": status,
        "reason": reason,
        "metrics": {name: float(value) for name, value in metrics.items()},
        "wall_seconds": time.perf_counter() - start,
        "peak_memory_mib": memory.mebibytes,
        "peak_memory_scope": memory.scope,
        "provenance": {
            **environment(),
            "stage": STAGE_VERSION,
            "data_hash": data_hash,
            "device": device_name(device_used),
            "threads": torch.get_num_threads(),
        },
    }
    if store is not None:
        store.write(config.key, record, arrays)
    return record


def run_all(
    configs: Sequence[Configuration],
    store: RecordStore,
    models: Path | None = None,
    device: str = "auto",
    workers: int = 1,
    progress: Callable[[str], None] = print,
) -> None:
    """Do every run that has no record yet; what is done stays done if the process is killed.

    Runs that share an original form one task, so no original is trained twice.

    Raises:
        InputError: the device cannot be used, or there are records about another graph of the same name.
    """
    resolve_device(device)
    missing = [config for config in configs if not store.finished(config.key)]
    for config in {one.data: one for one in configs if store.finished(one.key)}.values():
        _refuse_other_graph(config, store)
    progress(f"{len(configs)} runs, {len(configs) - len(missing)} done before, {len(missing)} to do")
    tasks = defaultdict(list)
    for config in missing:
        tasks[config.group].append(config)
    work = [joblib.delayed(_run_group)(group, store, models, device, workers) for group in tasks.values()]
    done, start = 0, time.perf_counter()
    for statuses in joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(work):
        done += len(statuses)
        elapsed = time.perf_counter() - start
        left = elapsed / done * (len(missing) - done)
        odd = {status for status in statuses if status != "ok"}
        note = f", statuses: {', '.join(sorted(odd))}" if odd else ""
        progress(f"{done}/{len(missing)} runs, {elapsed:.0f} s, about {left:.0f} s left{note}")


def _refuse_other_graph(config: Configuration, store: RecordStore) -> None:
    """Keys hold the name of a graph, which may have been given to another one since."""
    try:
        now = config.data_hash()
    except DataNotFound:  # records can be read without the graph
        return
    if store.read(config.key)["provenance"]["data_hash"] != now:
        raise InputError(
            f"{store.folder} has records of another graph with the name {config.data!r}: give the changed graph a new name, "
            "or take another folder for its records"
        )


def _run_group(
    configs: Iterable[Configuration], store: RecordStore, models: Path | None, device: str, workers: int
) -> list[str]:
    if workers > 1:  # one thread a process: more would only compete for the same cores
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // workers))
    return [run(config, store, models, device)["status"] for config in configs]
