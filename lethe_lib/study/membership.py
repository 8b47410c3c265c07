"""Membership leakage of every node on real graphs: samplers, ratios, backbones, edge access and noise.

    for every graph, backbone, sampler and ratio:
        200 shadow models, each on its own sample, each queried under every release (edge access, noise)
        per release: likelihood-ratio test of every node at level 0.1, leaving out the scored model
            -> error counts per node                                           -> membership_nodes.parquet
            -> AUC over all (model, node), accuracy, generalisation gap        -> membership.parquet
    every distinct vector of counts -> posterior of (eps_L, eps_R)             -> membership_posteriors.parquet

The posterior in ratio form depends on the counts alone, so a few thousand posteriors serve millions of nodes; the odds
form adds the log prior odds of the node.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lethe_lib import paths
from lethe_lib.attacks import global_threshold_test, likelihood_ratio, likelihood_ratio_test, unit_status
from lethe_lib.attacks.auc import auc
from lethe_lib.attacks.rates import tpr_at_fpr
from lethe_lib.bmp import audit
from lethe_lib.errors import InputError
from lethe_lib.shadow import Release, ShadowTraining, train_shadows
from lethe_lib.structure import node_homophily
from lethe_lib.study.configuration import Configuration, Measurement
from lethe_lib.study.sampling_priors import load_sampling_priors, structure_of
from lethe_lib.study.store import RecordStore
from lethe_lib.study.tables import read_table
from lethe_lib.study.trained import graph

GRAPHS = ("cora", "citeseer", "photo", "pubmed")
SAMPLERS = ("uniform", "snowball")
RATIOS = (0.1, 0.5)
MODELS = 200
LEVEL = 0.1
FOLDS = 5
"""Of the scores behind the pooled AUC; the tests behind the counts leave out one model at a time."""

COUNTS = ["n_out", "false_positives", "n_in", "false_negatives"]

RELEASES = (
    Release("split"),
    Release("full"),
    Release("none"),
    Release("full", "weights", 0.01),
    Release("full", "weights", 0.1),
    Release("full", "logits", 1.0),
)


@dataclass(frozen=True)
class MembershipConfiguration(Configuration):
    """Shadow models of one setting, the attack on every node under every release, and the errors it makes.

    Attributes:
        backbone: registry name. sampler, ratio: of the training samples.
        edges: "induced" or "visited" for samplers that have the choice, "" for the sampler's own.
        models: number of shadow models. level: of the test behind the error counts.
        epochs: of each model's training; 0 is the untrained control.
    """

    backbone: str = "gcn"
    sampler: str = "uniform"
    ratio: float = 0.5
    edges: str = ""
    models: int = MODELS
    level: float = LEVEL
    epochs: int = ShadowTraining().epochs

    @property
    def group(self) -> tuple:
        """Nothing is shared between settings."""
        return (self.key,)

    def measure(self, models: Path | None, device: str) -> Measurement:
        """Train, attack and count; finished parts of the shadow models are kept beside the folder ``models``."""
        data = graph(self.data)
        shadows = train_shadows(
            data,
            self.sampler,
            self.ratio,
            self.models,
            self.backbone,
            self.seed,
            releases=RELEASES,
            training=ShadowTraining(epochs=self.epochs),
            sampler_settings={"edges": self.edges} if self.edges else {},
            folder=None if models is None else models.parent / "shadows",
            device=device,
        )
        member = shadows.member.values
        metrics = {"sample_size": float(shadows["size"].mean())}
        arrays = {}
        for number, release in enumerate(RELEASES):
            confidence = shadows.confidence.values[:, number].astype(np.float64)
            counts = likelihood_ratio_test(confidence, member, self.level)
            arrays[release.label] = np.stack(counts.arrays).astype(np.int16)
            metrics |= {f"{release.label}: {k}": v for k, v in attack_figures(confidence, member, counts).items()}
            for group, accuracy in zip(("members", "others"), shadows.accuracy.values[:, number].T, strict=True):
                metrics[f"{release.label}: accuracy of {group}"] = float(accuracy.mean())
        return Measurement("ok", "", metrics, arrays)


def attack_figures(confidence: np.ndarray, member: np.ndarray, counts) -> dict[str, float]:
    """What a report without single nodes would say of the attack.

    Args:
        confidence: (T, n). member: (T, n) bool. counts: errors of the test at its level.

    Returns:
        ``usable``, share of nodes that the test can judge, and its ``balanced accuracy`` on those; on the nodes with enough
        models on either side in every fold, which are fewer: ``auc`` and ``tpr at 1% fpr`` of the likelihood ratio over all
        (model, node), ``raw auc`` of the confidence without calibration, ``threshold balanced accuracy`` of one threshold
        for all nodes.
    """
    ok = unit_status(confidence, member, FOLDS) == "ok"
    if not ok.any():
        raise InputError("no node was in and out of enough samples: train more models, or use another ratio")
    scores = likelihood_ratio(confidence[:, ok], member[:, ok], folds=FOLDS)
    inside = member[:, ok].ravel()
    one_threshold = global_threshold_test(confidence[:, ok], member[:, ok])
    return {
        "usable": float(counts.ok.mean()),
        "auc": float(auc(scores.ravel(), inside)),
        "tpr at 1% fpr": tpr_at_fpr(scores.ravel(), inside, 0.01),
        "balanced accuracy": balanced_accuracy(counts),
        "raw auc": float(auc(confidence[:, ok].ravel(), inside)),
        "threshold balanced accuracy": balanced_accuracy(one_threshold),
    }


def balanced_accuracy(counts) -> float:
    """Mean of the true-positive and the true-negative rate over all decisions, in [0, 1]; 0.5 by guessing."""
    n_out, false_positives, n_in, false_negatives = (part.sum() for part in counts.arrays)
    return float(1.0 - 0.5 * (false_positives / n_out + false_negatives / n_in))


def membership(graphs: Iterable[str] = GRAPHS) -> list[Configuration]:
    """Uniform and snowball samples of a tenth and of half of the nodes: a GCN on every graph, other backbones on Cora.

    Cora also has snowball samples with all edges between their nodes instead of those visited. Every setting stands beside
    an untrained control: what is told of its members is told by the query graph, not by the model.
    """
    cells = [(name, "gcn", sampler, "") for name in graphs for sampler in SAMPLERS]
    if "cora" in graphs:
        cells += [("cora", backbone, sampler, "") for backbone in ("sage", "gat") for sampler in SAMPLERS]
        cells.append(("cora", "gcn", "snowball", "induced"))
    return [
        MembershipConfiguration(name, backbone=backbone, sampler=sampler, ratio=ratio, edges=edges, epochs=epochs)
        for name, backbone, sampler, edges in cells
        for ratio in RATIOS
        for epochs in (ShadowTraining().epochs, 0)
    ]


def nodes_frame(configs: list[MembershipConfiguration], store: RecordStore) -> pd.DataFrame:
    """The error counts of every node under every setting and release; noisy releases for trained GCNs alone."""
    frames = []
    for config in configs:
        arrays = store.arrays(config.key)
        for release in RELEASES:
            if release.noise != "none" and (config.backbone != "gcn" or config.epochs == 0):
                continue
            frames.append(
                pd.DataFrame(
                    {
                        "graph": config.data,
                        "backbone": config.backbone,
                        "sampler": config.sampler,
                        "edges": config.edges,
                        "ratio": config.ratio,
                        "epochs": config.epochs,
                        "release": release.label,
                        "node": np.arange(arrays[release.label].shape[1], dtype=np.int32),
                        **dict(zip(COUNTS, arrays[release.label], strict=True)),
                    }
                )
            )
    categories = ("graph", "backbone", "sampler", "edges", "release")
    return pd.concat(frames, ignore_index=True).astype(dict.fromkeys(categories, "category"))


def frames(configs: list[MembershipConfiguration], store: RecordStore) -> dict[str, pd.DataFrame]:
    """The tables beside the records, by the last part of their name."""
    nodes = nodes_frame(configs, store)
    positions = positions_frame(dict.fromkeys(config.data for config in configs))
    return {"nodes": nodes, "posteriors": posteriors_frame(nodes), "positions": positions}


def posteriors_frame(nodes: pd.DataFrame) -> pd.DataFrame:
    """The posterior of every distinct vector of counts, in ratio form, by quadrature.

    Returns:
        One row a vector: the counts; for eps_L (``left``) and eps_R (``right``) the posterior mean and 5, 50 and 95 %
        points of the region model (``eps_...``) and of the corner (``corner_...``).
    """
    distinct = nodes.loc[nodes["n_in"] > 0, COUNTS].drop_duplicates().sort_values(COUNTS, ignore_index=True)
    found = audit(*(distinct[name].to_numpy(np.int64) for name in COUNTS), np.full(len(distinct), 0.5), draws=0)
    table = found.frame("ratio").drop(columns=["prior", "evidence"]).reset_index(drop=True)
    table = table.astype({name: np.float32 for name in table.columns if name != "status"})
    return pd.concat([distinct, table], axis=1)


def positions_frame(graphs: Iterable[str]) -> pd.DataFrame:
    """Where each node stands in its graph, one row a (graph, node).

    Returns:
        ``degree``; ``core`` (core number); ``homophily``, the share of neighbours with the node's own label (missing for
        isolated nodes).
    """
    frames = []
    for name in graphs:
        data = graph(name)
        degree = np.bincount(data.edge_index[0].numpy(), minlength=data.num_nodes)
        frames.append(
            pd.DataFrame(
                {
                    "graph": name,
                    "node": np.arange(data.num_nodes, dtype=np.int32),
                    "degree": degree.astype(np.int32),
                    "core": structure_of(data)["core"],
                    "homophily": node_homophily(data).astype(np.float32),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def load_membership(**axes) -> pd.DataFrame:
    """The published counts of every node, with the node's prior, place in the graph and posterior.

    Args:
        **axes: what to keep, by column of :func:`nodes_frame`: a value, or a tuple of values, for example
            ``graph="cora", backbone=("gcn", "sage"), release="full"``. Nothing keeps everything, which is large.

    Returns:
        One row a (setting, release, node): the columns of :func:`nodes_frame`, ``log_odds`` and ``prior`` of the node
        under the sampler and ratio, the columns of :func:`positions_frame`, ``advantage`` (true- minus false-positive
        rate of the test, in [-1, 1]), and the posterior in ratio form. Add ``log_odds`` to the right parameter and
        subtract it from the left one for the odds form. Nodes without enough models have counts of 0 and no posterior.

    Raises:
        InputError: nothing is published, or nothing is left; the message says what to do.
    """
    folder = paths.results()
    path = folder / "membership_nodes.parquet"
    if not path.exists():
        raise InputError(f"{path} does not exist: compute it with `python -m lethe_lib run membership --publish`")
    wanted = {name: value if isinstance(value, tuple) else (value,) for name, value in axes.items()}
    nodes = read_table(path, filters=[(name, "in", list(values)) for name, values in wanted.items()] or None)
    if nodes.empty:
        raise InputError(f"the published membership records have no setting with {axes}")
    plain = {"graph": str, "sampler": str}
    nodes = nodes.astype(plain)
    priors = load_sampling_priors(graphs=sorted(nodes["graph"].unique()))
    known = priors["exact_log_odds"].notna()
    priors["log_odds"] = priors["log_odds"].where(~known, priors["exact_log_odds"])
    priors["prior"] = priors["prior"].where(~known, priors["exact_prior"])
    keys = ["graph", "sampler", "ratio", "node"]
    priors = priors[[*keys, "prior", "log_odds"]].astype(plain)
    nodes = nodes.merge(priors, on=keys, how="left", validate="many_to_one")
    nodes = nodes.merge(read_table(folder / "membership_positions.parquet"), on=["graph", "node"], how="left")
    with np.errstate(invalid="ignore"):
        nodes["advantage"] = 1 - nodes["false_negatives"] / nodes["n_in"] - nodes["false_positives"] / nodes["n_out"]
    return nodes.merge(read_table(folder / "membership_posteriors.parquet"), on=COUNTS, how="left")


def settings_frame(records: pd.DataFrame) -> pd.DataFrame:
    """The records of the study with one row a setting and release, and the figures of the attack as columns."""
    rows = []
    for record in records.to_dict("records"):
        setting = {name: record[name] for name in ("backbone", "sampler", "edges", "ratio", "epochs", "sample_size")}
        for release in RELEASES:
            prefix = f"{release.label}: "
            figures = {name[len(prefix) :]: value for name, value in record.items() if name.startswith(prefix)}
            rows.append({"graph": record["data"], **setting, "release": release.label, **figures})
    return pd.DataFrame(rows)
