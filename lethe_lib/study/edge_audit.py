"""The randomised edge audit as a study: trials as resumable records, and what they say of every method and edge.

    one run = (graph, backbone, pool, method, preset, T, ...):
        T trials in parts of PART, each part kept as it is finished; originals from a cache that all methods share
        statistics (trial, statistic, edge), coins (trial, edge), AUCs without groups of trials for every adversary
    published:
        edge_audit.parquet             a row per run: AUCs with intervals over trials, null, utility, cost
        edge_audit_memory.parquet      a row per run and adversary: residual memory over unlinking, paired over trials
        edge_audit_edges.parquet       a row per run and edge: AUC of its own, error counts, its place in the graph
        edge_audit_posteriors.parquet  a row per distinct vector of counts: posterior of (eps_L, eps_R), ratio form

The design is in ``attacks/edge_design.py``, the attack in ``attacks/edge_membership.py``.
"""

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch_geometric.data import Data

from lethe_lib import paths
from lethe_lib.attacks.edge_design import EdgeDesign, edge_design, release, rising_prior
from lethe_lib.attacks.edge_membership import (
    Estimate,
    edge_auc,
    edge_aucs,
    edge_scores,
    estimate,
    jackknife_width,
    level_test,
    null_aucs,
    pooled_scores,
    residual_memory,
    smallest_detectable,
)
from lethe_lib.attacks.edge_statistics import ADVERSARIES, POSTERIORS, edge_statistics, statistic_names
from lethe_lib.attacks.edge_toggle import EdgeToggles
from lethe_lib.attacks.rates import tpr_at_fpr
from lethe_lib.data import Split, canonical, node_features, split_nodes, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.evaluation import accuracy
from lethe_lib.models import predict
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import edge_homophily, edge_positions, forget_set, remove_edges, walk_centrality
from lethe_lib.study.configuration import Configuration, Measurement, preset_settings
from lethe_lib.study.membership import COUNTS, posteriors_frame
from lethe_lib.study.store import RecordStore
from lethe_lib.study.tables import read_table
from lethe_lib.study.trained import graph, trained

PART = 8
"""Trials in a part: what a killed run loses at most."""

HEADLINE = "toggle"
"""The adversary behind the headline: answers on B, and with the pair put back. Statistics are added up."""

NULL_DRAWS = 60
"""Tosses of the coins behind the standard error without memory, which they give to about 9 %."""

FITS = ("sum", "joint")
LEVEL = 0.1
POOLS = ("low", "high", "random")
AUDITED_POOLS = {"cora": POOLS, "citeseer": POOLS, "dblp": POOLS, "photo": ("low",), "pubmed": POOLS}
"""Graph -> pools on which all methods are audited; of any other graph that is asked for, all of them."""
VARIATIONS = {
    "cora": {
        "epochs": (25, 50, 100, 200, 400, 800),
        "hidden": (16, 32, 128, 256),
        "weight_decay": (0.0, 5e-5, 5e-3),
        "feature_share": (0.1, 0.3),
        "projection": (64, 256),
        "edge_share": (0.25, 0.5),
        "train_share": (0.1, 0.3),
        "fraction": (0.01, 0.2),
    },
    "dblp": {
        "epochs": (50, 200, 800),
        "hidden": (16, 128),
        "weight_decay": (0.0, 5e-3),
        "feature_share": (0.1,),
        "projection": (64,),
        "edge_share": (0.25,),
        "train_share": (0.1,),
        "fraction": (0.01, 0.2),
    },
    "photo": {"epochs": (50, 200)},
}
"""Graph -> what is varied -> its values; of any other graph those of DBLP. On Photo, which remembers next to nothing, little."""

CONTROLS = ("utu", "gold", "untrained", "memoriser")
FIRST_METHODS = ("fine_tuning", "gif", "neg_grad", "scrub", "ceu", "idea", "npo", "l1_sparse")
LATER_METHODS = (
    "adv_neg_grad",
    "unsir",
    "bad_teaching",
    "fisher",
    "ssd",
    "salun",
    "adv_neg_grad_matched",
    "ssd_edge_diff",
    "salun_edge_diff",
    "gnn_delete",
)
LONG = (("epochs", 200), ("patience", 200), ("always_restore", False), ("dropout", 0.0))
"""A schedule without early stopping and dropout, under which models fit their training nodes far more closely."""

CERTIFIED_SGC = ("cgu", "scalegun")
"""Methods for SGC alone."""

WITHIN = 1e-3
"""A ridge with which they serve such a request within their budget; with that of the preset they train again."""

TIGHTER = (("ridge", WITHIN), ("epsilon", 0.5), ("noise", 0.2))
"""The same with half the epsilon, whose bound on the AUC unlinking exceeds: a certificate that the audit could refute."""

EVERYWHERE = ("fine_tuning", "l1_sparse")
"""The two methods that left least on the low and random pools of Cora and CiteSeer: they are run first, and on every pool."""

LARGEST_LISTED_POOL = 1000
"""Of larger pools, single edges are published for the controls alone."""


@dataclass(frozen=True)
class EdgeAuditConfiguration(Configuration):
    """All trials of one method in one setting.

    Attributes:
        backbone, method: registry names.
        pool, fraction, hops: kind of the forget set that is the pool, its share of all edges, k of WalkCentrality.
        trials: T.
        prior, spread: inclusion probability, rising with WalkCentrality from ``prior - spread`` to ``prior + spread``.
        same_seed: train every original from one seed.
        toggle: whether the statistics of the edge toggle are computed (one forward a pair for GAT).
        training, settings: replacements for the preset's training and method settings, as (name, value) pairs.
        edge_share, feature_share: shares of the edges and features that the graph keeps, at random.
        projection: width of a random projection of the features, 0 for none.
        train_share: share of the training nodes that stay training nodes.
        source: hash of the file that registered the method, empty for the methods of the library.
    """

    backbone: str = "gcn"
    method: str = "utu"
    pool: str = "low"
    fraction: float = 0.05
    hops: int = 2
    trials: int = 64
    prior: float = 0.5
    spread: float = 0.0
    same_seed: bool = False
    toggle: bool = True
    training: tuple[tuple[str, object], ...] = ()
    settings: tuple[tuple[str, object], ...] = ()
    edge_share: float = 1.0
    feature_share: float = 1.0
    projection: int = 0
    train_share: float = 1.0
    source: str = ""

    @property
    def setting(self) -> tuple:
        """All but the method: runs with equal settings share graph, coins and originals."""
        return tuple((k, v) for k, v in asdict(self).items() if k not in ("method", "settings", "source"))

    @property
    def group(self) -> tuple:
        """Runs that share originals; the controls form a group of their own, so that they can all come first."""
        return (*self.setting, self.method in CONTROLS)

    def measure(self, models: Path | None, device: str) -> Measurement:
        """Run the trials that are not kept yet, and attack; parts are kept beside the folder ``models``."""
        data = self.graph()
        design = self.design(data)
        toggles = EdgeToggles(design.base, design.pool) if self.toggle else None
        parts = None if models is None else RecordStore(models.parent / "edge_audit_parts")
        outcomes, blocks = [], []
        for first in range(0, self.trials, PART):
            trials = range(first, min(first + PART, self.trials))
            key = f"{self.key}_{first:04d}"
            if parts is None or not parts.finished(key):
                found, statistics = self._part(design, trials, toggles, models, device)
                if found[0]["status"] == "unsupported":
                    return Measurement("unsupported", found[0]["reason"], {})
                if parts is not None:
                    parts.write(key, {"outcomes": found}, {"statistics": statistics})
            else:
                found, statistics = parts.read(key)["outcomes"], parts.arrays(key)["statistics"]
            outcomes += found
            blocks.append(statistics)
        statistics = np.concatenate(blocks)
        metrics, arrays = audit_figures(statistics, design.member, design.prior, statistic_names(self.toggle))
        status, reason = _most_common([outcome["status"] for outcome in outcomes])
        metrics |= _means(outcomes)
        arrays |= {"statistics": statistics, "member": design.member, "prior": design.prior}
        arrays |= pool_arrays(data, design.pool, self.split(data), self.hops)
        return Measurement(status, reason, metrics, arrays)

    def graph(self) -> Data:
        """The graph G of the setting."""
        return varied_graph(graph(self.data), self.edge_share, self.feature_share, self.projection, self.seed)

    def split(self, data: Data) -> Split:
        """The nodes for training, validation and test, the same in every trial."""
        split = split_nodes(data, self.seed, self.preset)
        if self.train_share == 1.0:
            return split
        count = max(1, round(self.train_share * len(split.train)))
        order = numpy_generator(self.seed, "edge audit", "training share").permutation(len(split.train))
        return replace(split, train=split.train[torch.from_numpy(np.sort(order[:count]))])

    def design(self, data: Data) -> EdgeDesign:
        """The coins of the setting."""
        pool = forget_set(data, self.pool, self.fraction, self.seed, self.hops)
        prior = rising_prior(data, pool, self.prior, self.spread, self.hops)
        return edge_design(data, pool, self.trials, prior, self.seed, self.same_seed)

    def _part(
        self, design: EdgeDesign, trials: range, toggles: EdgeToggles | None, models: Path | None, device: str
    ) -> tuple[list[dict], np.ndarray]:
        """Train, unlearn and question in some trials."""
        data, split, rows, outcomes = design.data, self.split(design.data), [], []
        for trial in trials:
            seed = design.training_seeds[trial]
            original = trained(
                design.graph(trial), self.backbone, seed, self.preset, dict(self.training), models, device, split
            )
            result = release(design, trial, original, self.method, self.preset, **dict(self.settings))
            outcome = {"status": result.status, "reason": result.reason, "seconds": result.seconds}
            outcome |= {
                "original_seconds": original.training_run.seconds,
                "original_epochs": original.training_run.epochs,
                "forwards": result.steps.forwards,
                "backwards": result.steps.backwards,
            }
            certificate = result.steps.certificate
            outcome["certified_epsilon"] = math.nan if certificate is None else certificate.epsilon
            outcome["retrained"] = math.nan if certificate is None else float(certificate.retrainings > 0)
            if result.status != "unsupported":
                logits = predict(result.model, design.base)
                outcome["accuracy_test"] = accuracy(logits, data.y, split.test)
                outcome["accuracy_train"] = accuracy(logits, data.y, split.train)
                rows.append(edge_statistics(result.model, design.base, design.pool, toggles))
            outcomes.append(outcome)
            if result.status == "unsupported":
                return outcomes, np.empty((0, 0, 0), np.float32)
        return outcomes, np.stack(rows)


def varied_graph(
    data: Data, edge_share: float = 1.0, feature_share: float = 1.0, projection: int = 0, seed: int = 0
) -> Data:
    """A graph with fewer edges or other features, at random: what memory may depend on.

    Args:
        data: a canonical graph; returned itself where nothing is varied.
        edge_share, feature_share: shares in (0, 1] that stay.
        projection: features become X R with Gaussian R of this width, scaled to keep lengths; 0 leaves them.
        seed: of the draws.
    """
    for name, share in (("edge_share", edge_share), ("feature_share", feature_share)):
        if not 0 < share <= 1:
            raise InputError(f"{name} = {share} must lie above 0 and be at most 1")
    if edge_share < 1:
        edges = undirected_edges(data)
        count = round((1 - edge_share) * edges.shape[1])
        gone = numpy_generator(seed, "edge audit", "edge share").choice(edges.shape[1], count, replace=False)
        data = remove_edges(data, edges[:, torch.from_numpy(np.sort(gone))])
    if feature_share == 1 and not projection:
        return data
    x = node_features(data)
    if feature_share < 1:
        count = max(1, round(feature_share * x.shape[1]))
        kept = numpy_generator(seed, "edge audit", "feature share").choice(x.shape[1], count, replace=False)
        x = x[:, np.sort(kept)]
    if projection:
        generator = numpy_generator(seed, "edge audit", "projection")
        x = x @ (generator.standard_normal((x.shape[1], projection)) / np.sqrt(projection))
    dense = x if isinstance(x, np.ndarray) else x.toarray()
    changed = Data(x=torch.from_numpy(dense.astype(np.float32)), edge_index=data.edge_index, y=data.y)
    return canonical(changed, data.name, data.num_classes)


def audit_figures(
    statistics: np.ndarray, member: np.ndarray, prior: np.ndarray, names: tuple[str, ...]
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Everything that the trials of one method say without those of another.

    Args:
        statistics: (T, S, m). member: (T, m) bool. prior: (m,). names: of the S statistics.

    Returns:
        Metrics: for every adversary ``<adversary>_sum_auc`` with ``_low`` and ``_high``, the same of the joint fit without
        an interval, and for both ``_tpr_1`` and ``_tpr_01``, the true-positive rates at 1 % and 0.1 % false positives;
        ``single_<statistic>_auc``; for the headline the control of tossed coins (``null_auc``, ``null_error``,
        ``p_value``), quantiles of the AUCs of single edges, and ``pooled_auc`` without calibration. Arrays: AUCs without
        groups of trials (``without_<adversary>``), AUCs of edges (``edge_auc``) and error ``counts``.
    """
    metrics, arrays = {}, {}
    place = {name: number for number, name in enumerate(names)}
    for adversary, wanted in ADVERSARIES.items():
        read = statistics[:, [place[name] for name in wanted if name in place]]
        found = estimate(read, member)
        arrays[f"without_{adversary}"] = found.without
        low, high = found.interval()
        metrics |= {f"{adversary}_sum_auc_low": low, f"{adversary}_sum_auc_high": high}
        for fit in FITS:
            scores = edge_scores(read, member, fit)
            metrics[f"{adversary}_{fit}_auc"] = edge_auc(scores)
            for name, rate in (("1", 0.01), ("01", 0.001)):
                metrics[f"{adversary}_{fit}_tpr_{name}"] = tpr_at_fpr(
                    scores.values.ravel(), scores.member.ravel(), rate
                )
        metrics["usable_edges"] = float(len(scores.edges))
    for name in names:
        metrics[f"single_{name}_auc"] = edge_auc(edge_scores(statistics[:, [place[name]]], member))

    read = statistics[:, [place[name] for name in ADVERSARIES[HEADLINE] if name in place]]
    null = null_aucs(read, prior, NULL_DRAWS)
    metrics |= {
        "null_auc": float(null.mean()),
        "null_error": float(null.std(ddof=1)),
        "null_draws": float(len(null)),
        "p_value": float((1 + np.sum(null >= metrics[f"{HEADLINE}_sum_auc"])) / (1 + len(null))),
        "pooled_auc": edge_auc(pooled_scores(read, member)),
    }
    own, edges = edge_aucs(read, member)
    metrics |= {f"edge_auc_{level}": float(np.quantile(own, level / 100)) for level in (5, 25, 50, 75, 95)}
    every = np.full(member.shape[1], np.nan, np.float32)
    every[edges] = own
    arrays |= {"edge_auc": every, "counts": np.stack(level_test(read, member, LEVEL).arrays).astype(np.int16)}
    return metrics, arrays


def pool_arrays(data: Data, pool: torch.Tensor, split: Split, hops: int) -> dict[str, np.ndarray]:
    """The place of every edge of the pool in the graph G: ends, WalkCentrality, degrees, labels, training nodes."""
    degree = np.bincount(data.edge_index[0].numpy(), minlength=data.num_nodes)
    ends = pool.numpy()
    trained_on = np.isin(ends, split.train.numpy())
    return {
        "ends": ends.astype(np.int32),
        "centrality": walk_centrality(data, hops)[edge_positions(data, pool)].astype(np.float32),
        "smaller_degree": degree[ends].min(0).astype(np.int32),
        "larger_degree": degree[ends].max(0).astype(np.int32),
        "same_label": (data.y[pool[0]] == data.y[pool[1]]).numpy(),
        "training_ends": trained_on.sum(0).astype(np.int8),
    }


def _most_common(statuses: list[str]) -> tuple[str, str]:
    """The status of most trials, and how many had another one; trials without a request count as ``ok``."""
    counts = Counter("ok" if status == "noop" else status for status in statuses)
    status, count = counts.most_common(1)[0]
    others = ", ".join(f"{name} in {number}" for name, number in counts.most_common()[1:])
    return status, f"{status} in {count} of {len(statuses)} trials, {others}" if others else ""


def _means(outcomes: list[dict]) -> dict[str, float]:
    numbers = (
        "certified_epsilon",
        "retrained",
        "seconds",
        "original_seconds",
        "original_epochs",
        "forwards",
        "backwards",
        "accuracy_test",
        "accuracy_train",
    )
    means = {name: float(np.mean([outcome[name] for outcome in outcomes])) for name in numbers}
    shares = Counter(outcome["status"] for outcome in outcomes)
    return means | {f"share_{name}": shares[name] / len(outcomes) for name in ("collapsed", "diverged")}


def estimate_of(record: dict, arrays: dict[str, np.ndarray], adversary: str) -> Estimate:
    """The AUC of an adversary as a record keeps it."""
    return Estimate(record["metrics"][f"{adversary}_sum_auc"], arrays[f"without_{adversary}"])


def memory_frame(configs: list[EdgeAuditConfiguration], store: RecordStore) -> pd.DataFrame:
    """Residual memory of every run over unlinking in the same setting, per adversary.

    ``adversary`` ``before_after`` reads the posteriors of the released model beside those of the original, both on B. There
    the yardstick is what the original alone tells: ``gain`` is the AUC above it, what the unlearning itself gives away.

    Returns:
        One row a (run, adversary): ``key``, ``method``, ``auc``, ``low``, ``high``; ``residual`` with ``residual_low`` and
        ``residual_high`` (nan where there is nothing to remove, or no run of ``utu``); ``to_remove``; ``detectable``, the
        smallest residual memory that the trials would have shown with probability 0.8 (headline only).
    """
    unlinked = {}
    for config in configs:
        if config.method == "utu" and store.arrays(config.key):
            unlinked.setdefault(config.setting, config)
    rows = []
    for config in configs:
        record, arrays = store.read(config.key), store.arrays(config.key)
        if not arrays:
            continue
        reference = unlinked.get(config.setting)
        theirs = None if reference is None else (store.read(reference.key), store.arrays(reference.key))
        for adversary in ADVERSARIES:
            found = estimate_of(record, arrays, adversary)
            row = {"key": config.key, "method": config.method, "adversary": adversary, "to_remove": False}
            row |= {"auc": found.auc, **dict(zip(("low", "high"), found.interval(), strict=True))}
            if theirs is not None:
                other = estimate_of(*theirs, adversary)
                left = residual_memory(found, other)
                row |= {"residual": left.value, "residual_low": left.low, "residual_high": left.high}
                row["to_remove"] = left.to_remove
                if adversary == HEADLINE and left.to_remove:
                    row["detectable"] = smallest_detectable(record["metrics"]["null_error"]) / (other.auc - 0.5)
            rows.append(row)
        if theirs is not None and config.method not in CONTROLS:
            count, before = len(POSTERIORS), estimate_of(*theirs, "posteriors")
            both = np.concatenate([part["statistics"][:, :count] for part in (arrays, theirs[1])], axis=1)
            found = estimate(both, arrays["member"])
            row = {"key": config.key, "method": config.method, "adversary": "before_after", "to_remove": False}
            row |= {"auc": found.auc, **dict(zip(("low", "high"), found.interval(), strict=True))}
            gain, half = found.auc - before.auc, jackknife_width(found.without - before.without)
            rows.append({**row, "gain": gain, "gain_low": gain - half, "gain_high": gain + half})
    return pd.DataFrame(rows)


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


def edge_audit(graphs=tuple(AUDITED_POOLS)) -> list[Configuration]:
    """What methods leave of the memory of edges, the most telling runs first.

    1. GCN: the controls and the methods ``EVERYWHERE`` on every pool, then all methods on ``AUDITED_POOLS``: on Photo, which
    remembers next to nothing, the low one, and its controls under preset ``published``. 2. The low pool of Cora with a long
    schedule (its unlinking on every pool), with the published one, from one training seed, and with priors that rise with
    WalkCentrality. 3. The other backbones on it: the controls and some methods, with SGC the two that exist for it alone, these
    also with the ridge ``WITHIN`` and with ``TIGHTER``. T = 64 under GCN on Cora and CiteSeer, 32 elsewhere.
    """
    graphs = tuple(graphs)
    configs = [run for name in graphs for pool in POOLS for run in _runs(name, pool, (*CONTROLS, *EVERYWHERE))]
    for methods in (FIRST_METHODS, LATER_METHODS):
        audited = [(name, pool) for name in graphs for pool in AUDITED_POOLS.get(name, POOLS)]
        configs += [run for name, pool in audited for run in _runs(name, pool, methods)]
    configs += _runs("photo", "low", CONTROLS, preset="published") if "photo" in graphs else []
    if "cora" in graphs:
        configs += _runs("cora", "low", (*CONTROLS, *FIRST_METHODS), training=LONG)
        configs += [run for pool in ("high", "random") for run in _runs("cora", pool, ("utu", "gold"), training=LONG)]
        configs += _runs("cora", "low", CONTROLS, preset="published")
        configs += [run for pool in POOLS for run in _runs("cora", pool, ("utu", "untrained"), same_seed=True)]
        configs += _runs("cora", "low", ("utu", "gold"), spread=0.25)
        some = FIRST_METHODS[:5]
        for backbone, methods in (("sgc", CERTIFIED_SGC + some), ("sage", some), ("gin", some), ("gat", some)):
            configs += _runs("cora", "low", (*CONTROLS, *methods), backbone=backbone)
        within = _runs("cora", "low", CERTIFIED_SGC, backbone="sgc")
        configs += [
            replace(run, settings=tuple({**dict(run.settings), **dict(other)}.items()))
            for other in ((("ridge", WITHIN),), TIGHTER)
            for run in within
        ]
    return list(dict.fromkeys(configs))


def edge_audit_variations(graphs=tuple(VARIATIONS)) -> list[Configuration]:
    """Unlinking alone, one thing varied at a time: where does memory live?

    The things and values of ``VARIATIONS``; random pools, T = 32. The first run of a graph is the setting from which the others
    depart.
    """
    configs = []
    for name in graphs:
        varied = VARIATIONS.get(name, VARIATIONS["dblp"])
        changes = [{}, *(_changed(what, value) for what, values in varied.items() for value in values)]
        configs += [EdgeAuditConfiguration(name, pool="random", trials=32, **change) for change in changes]
    return configs


def _changed(name: str, value: float) -> dict[str, object]:
    """The fields of a configuration with one thing varied."""
    if name == "epochs":  # a fixed number of epochs, the last one kept
        return {"training": (("epochs", value), ("patience", value), ("always_restore", False))}
    return {"training": ((name, value),)} if name in ("hidden", "weight_decay") else {name: value}


def _runs(name: str, pool: str, methods: tuple[str, ...], preset: str = "corrected", **fields) -> list[Configuration]:
    """One run a method, with its settings written out, so that a preset that is changed later makes other runs."""
    trials = 64 if name in ("cora", "citeseer") and fields.get("backbone", "gcn") == "gcn" else 32
    return [
        EdgeAuditConfiguration(
            name,
            preset=preset,
            method=method,
            pool=pool,
            trials=trials,
            settings=preset_settings(method, preset),
            **fields,
        )
        for method in methods
    ]
