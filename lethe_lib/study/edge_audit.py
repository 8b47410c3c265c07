"""The randomised edge audit as a study: trials as resumable records.

    one run = (graph, backbone, pool, method, preset, T, ...):
        T trials in parts of PART, each part kept as it is finished; originals from a cache that all methods share
        statistics (trial, statistic, edge), coins (trial, edge), AUCs without groups of trials for every adversary

The design is in ``attacks/edge_design.py``, the attack in ``attacks/edge_membership.py``; what is made of the records in
``edge_audit_tables.py``, which of them are published in ``edge_audit_runs.py``.
"""

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.attacks.edge_design import EdgeDesign, edge_design, release, rising_prior
from lethe_lib.attacks.edge_membership import (
    edge_auc,
    edge_aucs,
    edge_scores,
    estimate,
    level_test,
    null_aucs,
    pooled_scores,
)
from lethe_lib.attacks.edge_statistics import ADVERSARIES, edge_statistics, statistic_names
from lethe_lib.attacks.edge_toggle import EdgeToggles
from lethe_lib.attacks.rates import tpr_at_fpr
from lethe_lib.data import Split, canonical, node_features, split_nodes, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.evaluation import accuracy
from lethe_lib.models import predict
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import edge_positions, forget_set, remove_edges, walk_centrality
from lethe_lib.study.configuration import Configuration, Measurement
from lethe_lib.study.store import RecordStore
from lethe_lib.study.trained import graph, trained

PART = 8
"""Trials in a part: what a killed run loses at most."""

HEADLINE = "toggle"
"""The adversary behind the headline: answers on B, and with the pair put back. Statistics are added up."""

NULL_DRAWS = 60
"""Tosses of the coins behind the standard error without memory, which they give to about 9 %."""

FITS = ("sum", "joint")
LEVEL = 0.1
CONTROLS = ("utu", "gold", "untrained", "memoriser")


@dataclass(frozen=True)
class EdgeAuditConfiguration(Configuration):
    """All trials of one method in one setting.

    Attributes:
        backbone, method: registry names.
        pool, fraction, hops: kind of the forget set that is the pool, its share of all edges, k of WalkCentrality.
        trials: T.
        prior, spread: inclusion probability, rising with WalkCentrality from ``prior - spread`` to ``prior + spread``.
        same_seed: train every original from one seed.
        toggle: whether the statistics of the edge toggle are computed (one forward a pair but for two layers).
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
