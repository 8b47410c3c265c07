"""What the trials of the edge audit say of every method and edge: the tables beside its records, and how they are read.

published:
    edge_audit.parquet             a row per run: AUCs with intervals over trials, null, utility, cost
    edge_audit_memory.parquet      a row per run and adversary: residual memory over unlinking, paired over trials
    edge_audit_edges.parquet       a row per run and edge: AUC of its own, error counts, its place in the graph
    edge_audit_posteriors.parquet  a row per distinct vector of counts: posterior of (eps_L, eps_R), ratio form
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr

from lethe_lib import paths
from lethe_lib.attacks.edge_membership import Estimate, estimate, jackknife_width, residual_memory, smallest_detectable
from lethe_lib.attacks.edge_statistics import ADVERSARIES, POSTERIORS, statistic_names
from lethe_lib.errors import InputError
from lethe_lib.structure import edge_homophily
from lethe_lib.study.edge_audit import CONTROLS, HEADLINE, EdgeAuditConfiguration
from lethe_lib.study.membership import COUNTS, posteriors_frame
from lethe_lib.study.store import RecordStore
from lethe_lib.study.tables import read_table

LARGEST_LISTED_POOL = 1000
"""Of larger pools, single edges are published for the controls alone."""


def estimate_of(record: dict, arrays: dict[str, np.ndarray], adversary: str) -> Estimate:
    """The AUC of an adversary as a record keeps it."""
    return Estimate(record["metrics"][f"{adversary}_sum_auc"], arrays[f"without_{adversary}"], len(arrays["member"]))


def memory_frame(configs: list[EdgeAuditConfiguration], store: RecordStore) -> pd.DataFrame:
    """Residual memory of every run over unlinking in the same setting, per adversary.

    ``adversary`` ``before_after`` reads the posteriors of the original on B, and how far those of the released model are from
    them: what the two have in common, such as the seed of their training, then drops out. There the yardstick is what the
    original alone tells, and Gold stands beside the methods, as an exact answer differs from the original too.

    Returns:
        One row a (run, adversary): ``key``, ``method``, ``auc``, ``low``, ``high``; ``residual`` with ``residual_low`` and
        ``residual_high`` (nan where there is nothing to remove, no run of ``utu``, or priors that differ between edges, so
        that the AUC is not one half without memory); ``to_remove``. Of the headline also
        ``detectable``, the smallest residual memory that the test against tossed coins would have found with probability 0.8,
        and for runs on a low pool ``gap`` with its ends, the AUC above that on the high pool, where it was run: the pools
        share coins and seeds, so trials are left out in common. Of ``before_after`` the ``gain`` over the original alone and
        ``beyond``, the AUC above Gold's, each with its ends.
    """
    estimates = {}
    for config in configs:
        record, arrays = store.read(config.key), store.arrays(config.key)
        if arrays:
            estimates[config] = {adversary: estimate_of(record, arrays, adversary) for adversary in ADVERSARIES}
    by_setting: dict[tuple, list[EdgeAuditConfiguration]] = {}
    for config in estimates:
        by_setting.setdefault(config.setting, []).append(config)
    rows = []
    for members in by_setting.values():
        unlinked = next((config for config in members if config.method == "utu"), None)
        rows += [_row(one, name, estimates, unlinked, store) for one in members for name in ADVERSARIES]
        if unlinked is not None:
            rows += _before_and_after(members, unlinked, estimates[unlinked]["posteriors"], store)
    return pd.DataFrame(rows)


def _row(
    config: EdgeAuditConfiguration,
    adversary: str,
    estimates: dict[EdgeAuditConfiguration, dict[str, Estimate]],
    unlinked: EdgeAuditConfiguration | None,
    store: RecordStore,
) -> dict:
    """The row of a run and an adversary, held against unlinking in the same setting."""
    found = estimates[config][adversary]
    row = {**_of(config, adversary, found), "to_remove": False}
    row |= dict.fromkeys(("residual", "residual_low", "residual_high"), np.nan)
    if unlinked is not None and not config.spread:
        other = estimates[unlinked][adversary]
        left = residual_memory(found, other)
        row |= {"residual": left.value, "residual_low": left.low, "residual_high": left.high}
        row["to_remove"] = left.to_remove
        if adversary == HEADLINE and left.to_remove:
            error = store.read(config.key)["metrics"]["null_error"]
            row["detectable"] = smallest_detectable(error) / (other.auc - 0.5)
    high = replace(config, pool="high")
    if adversary == HEADLINE and config.pool == "low" and high in estimates:
        row |= _difference("gap", found, estimates[high][HEADLINE])
    return row


def _of(config: EdgeAuditConfiguration, adversary: str, found: Estimate) -> dict:
    """Run, adversary and AUC with its interval."""
    low, high = found.interval()
    return {
        "key": config.key,
        "method": config.method,
        "adversary": adversary,
        "auc": found.auc,
        "low": low,
        "high": high,
    }


def _difference(name: str, one: Estimate, other: Estimate) -> dict[str, float]:
    """One AUC minus another with its interval, trials left out in common."""
    value, half = one.auc - other.auc, jackknife_width(one.without - other.without)
    return {name: value, f"{name}_low": value - half, f"{name}_high": value + half}


def _before_and_after(
    members: list[EdgeAuditConfiguration], unlinked: EdgeAuditConfiguration, alone: Estimate, store: RecordStore
) -> list[dict]:
    """The rows of the adversary who reads both models, for Gold and the methods of one setting."""
    count, arrays = len(POSTERIORS), store.arrays(unlinked.key)
    before, found = arrays["statistics"][:, :count], {}
    for config in members:
        if config.method not in CONTROLS or config.method == "gold":
            change = store.arrays(config.key)["statistics"][:, :count] - before
            found[config] = estimate(np.concatenate([before, change], axis=1), arrays["member"])
    gold = next((both for config, both in found.items() if config.method == "gold"), None)
    rows = []
    for config, both in found.items():
        row = {**_of(config, "before_after", both), "to_remove": False} | _difference("gain", both, alone)
        if gold is not None and config.method != "gold":
            row |= _difference("beyond", both, gold)
        rows.append(row)
    return rows


def trial_statistics(config: EdgeAuditConfiguration, store: RecordStore) -> xr.Dataset:
    """Everything that the trials of a finished run saw, with named axes.

    Returns:
        ``statistics`` (trial, statistic, edge), ``member`` (trial, edge) and ``prior`` (edge), with the names of the
        statistics and the ends ``u`` and ``v`` of the edges as coordinates.

    Raises:
        KeyError: the store has no record of the run.
    """
    arrays = store.arrays(config.key)
    return xr.Dataset(
        {
            "statistics": (("trial", "statistic", "edge"), arrays["statistics"]),
            "member": (("trial", "edge"), arrays["member"]),
            "prior": ("edge", arrays["prior"]),
        },
        coords={
            "statistic": list(statistic_names(config.toggle)),
            "u": ("edge", arrays["ends"][0]),
            "v": ("edge", arrays["ends"][1]),
        },
    )


def edges_frame(configs: list[EdgeAuditConfiguration], store: RecordStore) -> pd.DataFrame:
    """Every edge of a run: its own AUC, the error counts of the test at LEVEL, and its place in the graph.

    The place is that of the arrays of :func:`pool_arrays`, and ``homophily``, see ``structure.edge_homophily``, for which the
    graph of the run is loaded.

    Methods that are no controls are left out where the pool has more than LARGEST_LISTED_POOL edges.
    """
    frames, homophily = [], {}
    for config in configs:
        arrays = store.arrays(config.key)
        if not arrays or (config.method not in CONTROLS and len(arrays["prior"]) > LARGEST_LISTED_POOL):
            continue
        columns = {name: arrays[name] for name in ("centrality", "smaller_degree", "larger_degree")}
        columns |= {name: arrays[name] for name in ("same_label", "training_ends", "edge_auc")}
        if config.setting not in homophily:  # methods share their pool
            homophily[config.setting] = edge_homophily(config.graph(), arrays["ends"]).astype(np.float32)
        columns["homophily"] = homophily[config.setting]
        columns |= dict(zip(COUNTS, arrays["counts"], strict=True))
        frames.append(
            pd.DataFrame(
                {
                    "key": config.key,
                    "edge": np.arange(len(arrays["prior"]), dtype=np.int32),
                    "u": arrays["ends"][0],
                    "v": arrays["ends"][1],
                    "prior": arrays["prior"].astype(np.float32),
                    **columns,
                }
            )
        )
    return pd.concat(frames, ignore_index=True).astype({"key": "category"})


def frames(configs: list[EdgeAuditConfiguration], store: RecordStore) -> dict[str, pd.DataFrame]:
    """The tables beside the records, by the last part of their name."""
    edges = edges_frame(configs, store)
    return {"memory": memory_frame(configs, store), "edges": edges, "posteriors": posteriors_frame(edges)}


def load_audited_edges(keys=None) -> pd.DataFrame:
    """The published edges of the study with their posteriors.

    Args:
        keys: of runs; None for all.

    Returns:
        The columns of :func:`edges_frame`; the posterior of (eps_L, eps_R) in ratio form (columns as in
        ``membership.posteriors_frame``); ``log_odds`` of the prior. Add ``log_odds`` to the right parameter and subtract
        it from the left one for the odds form.

    Raises:
        InputError: nothing is published.
    """
    path = paths.results() / "edge_audit_edges.parquet"
    if not path.exists():
        raise InputError(f"{path} does not exist: compute it with `python -m lethe_lib run edge_audit --publish`")
    edges = read_table(path, filters=None if keys is None else [("key", "in", list(keys))])
    edges["log_odds"] = np.log(edges["prior"].astype(float)) - np.log1p(-edges["prior"].astype(float))
    return edges.merge(read_table(paths.results() / "edge_audit_posteriors.parquet"), on=COUNTS, how="left")
