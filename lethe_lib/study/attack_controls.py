"""Attacks beside their controls: one released model, many questions.

    train the original, let one method release a model
    for every attack, every rung of the attacker's knowledge, uniform and matched negatives:
        AUC with its interval, true-positive rate at 1 % false positives, AUC within hop classes of the retained graph
    Gold with two seeds, UtU (the original's weights), Untrained and Memoriser stand beside four methods, on three graphs
    beside all methods that the GCN has

At most a thousand forgotten edges are asked about, the same for every method; UtU asked on the full graph is the Original
as its provider served it. Where the attack cannot tell the Memoriser, which keeps every edge, from Gold, its silence about
other methods means nothing: it is called blind there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from lethe_lib.attacks import ATTACKS, AttackResult, attack, auc
from lethe_lib.attacks.strata import STRATA, auc_within, retained_hops, stratify
from lethe_lib.evaluation import excesses_over_gold, utility
from lethe_lib.models import predict
from lethe_lib.study.configuration import Configuration, Measurement, preset_settings, released
from lethe_lib.study.edge_audit_runs import FIRST_METHODS, LATER_METHODS
from lethe_lib.study.store import RecordStore

MOST = 1000
RUNGS = ("none", "partial", "retained", "original")
MAIN = tuple(
    (name, query, negatives)
    for name in ("link_teller", "link_stealing", "link_stealing_supervised", "edge_toggle")
    for query in RUNGS
    for negatives in ("uniform", "matched")
    if not (name == "edge_toggle" and query == "original")
) + tuple(("e_umia", query, "") for query in RUNGS)
"""(attack, query, negatives): what every model is asked."""

TREND = tuple(
    ("trend_attack", query, negatives) for query in ("retained", "original") for negatives in ("uniform", "matched")
)
EDGES = tuple(("e_umia_edges", "retained", negatives) for negatives in ("kept edges", "matched"))
TEMPORAL = tuple(
    (name, "retained", negatives) for name in ("link_teller", "link_stealing") for negatives in ("uniform", "matched")
)
KEPT = ("accuracy", "auc_loss", "auc_labelled", "auc_members", "auc_all", "auc_shadow")
"""Extras of attacks that records keep."""

CONTROLS = (("gold", 0), ("gold", 1), ("utu", 0), ("untrained", 0), ("memoriser", 0))
METHODS = ("fine_tuning", "scrub", "gif", "gnn_delete")
TREND_METHODS = (*METHODS, "ceu", "neg_grad")
"""Asked by TrendAttack: the two last are victims of its paper too."""

OTHER_METHODS = tuple(name for name in FIRST_METHODS + LATER_METHODS if name not in METHODS)
WIDER = ("cora", "citeseer", "dblp")
"""Graphs on which the ``OTHER_METHODS`` are asked too."""

SEEDS = {"cora": 3, "citeseer": 2, "dblp": 2, "pubmed": 2, "photo": 2, "computers": 1}
"""Graph -> seeds. Retraining takes up to a minute a run on the last ones, so they have fewer."""

FORGET = ("low", "high", "random", "community")
FEWER = {"photo": ("low", "high", "community"), "computers": ("low", "high")}
TRENDS = {"cora": 2, "citeseer": 2}
"""Graph -> seeds with TrendAttack, which trains a shadow model for each."""

GENERATED = "arxiv-like"


@dataclass(frozen=True)
class AttackControlsConfiguration(Configuration):
    """One released model and the attacks on it.

    Attributes:
        backbone, method, forget, fraction, hops, method_seed, training, settings: as for an unlearning run.
        asked: (attack, query, negatives), the questions; negatives are empty for an attack on nodes.
        most: at most this many forgotten edges are asked about; the toggle takes its own, smaller number.
    """

    backbone: str = "gcn"
    method: str = "utu"
    forget: str = "low"
    fraction: float = 0.05
    hops: int = 2
    method_seed: int | None = None
    asked: tuple[tuple[str, str, str], ...] = MAIN
    most: int = MOST
    training: tuple[tuple[str, object], ...] = ()
    settings: tuple[tuple[str, object], ...] = ()

    @property
    def group(self) -> tuple:
        return (self.data, self.preset, self.seed, self.backbone, self.training)

    def measure(self, models: Path | None, device: str) -> Measurement:
        data, pairs, original, result = released(self, models, device)
        metrics = {"forgotten_pairs": pairs.shape[1], "seconds": result.seconds}
        if result.status in ("unsupported", "diverged"):
            return Measurement(result.status, result.reason, metrics)
        split = original.training_run.split
        metrics |= utility(predict(result.model, result.request.retained), data.y, split)
        arrays, hops = {}, {}
        for name, query, negatives in self.asked:
            found = attack(
                name, result.model, data, pairs, self.seed, self.preset, query=query, **self._chosen(name, negatives)
            )
            tag = question(name, query, negatives)
            metrics |= {
                f"{tag}_{key}": value for key, value in summary(found, data, pairs, original.depth, hops).items()
            }
            arrays[f"{tag}_scores"] = found.scores
            arrays[f"{tag}_labels"] = found.labels
        return Measurement(result.status, result.reason, metrics, arrays)

    def _chosen(self, name: str, negatives: str) -> dict[str, object]:
        if ATTACKS[name].targets == "nodes":
            return {}
        if name == "edge_toggle":
            return {"negatives": negatives}
        chosen = {"negatives": negatives, "most": self.most}
        if name == "trend_attack":  # the attacker knows the method; what was never trained passes for unlinked
            guessed = "utu" if self.method == "untrained" else self.method
            chosen |= {"method": guessed, "method_preset": self.preset, "backbone": self.backbone}
        return chosen


def question(name: str, query: str, negatives: str) -> str:
    """How records call an attack under a rung of knowledge with a kind of negatives."""
    return ".".join(part for part in (name, query, negatives) if part)


def summary(
    found: AttackResult, data: Data, pairs: torch.Tensor, depth: int, known_hops: dict[bytes, np.ndarray]
) -> dict[str, float]:
    """Numbers of one attack: AUC, true-positive rate at 1 %, hop classes on the retained graph, kept extras.

    ``known_hops`` keeps the distances of pairs that several attacks are asked about.
    """
    numbers = {"auc": found.auc, "tpr": found.tpr_at_one_percent, "positives": float(found.labels.sum())}
    numbers |= {name: value for name, value in found.extras.items() if name in KEPT}
    if found.targets.ndim == 2 and found.query == "retained":
        asked = found.targets.tobytes()
        if asked not in known_hops:
            known_hops[asked] = retained_hops(found, data, pairs)
        hops = known_hops[asked]
        strata = stratify(found.scores, found.labels, hops)
        numbers |= {"auc_stratified": strata.auc, "compared": strata.compared}
        numbers["auc_within_depth"] = auc_within(found.scores, found.labels, hops, depth)
        numbers["auc_near"] = float(  # of the bare flag "within the depth of the network"
            0.5 + 0.5 * ((hops[found.labels] <= depth).mean() - (hops[~found.labels] <= depth).mean())
        )
        for name in STRATA.values():
            numbers |= {f"forgotten_{name}": strata.forgotten[name], f"negatives_{name}": strata.negatives[name]}
            numbers[f"auc_{name}"] = strata.areas.get(name, np.nan)
    return numbers


def attack_controls(graphs: Iterable[str] = (*SEEDS, GENERATED)) -> list[Configuration]:
    """All questions under GCN, preset ``corrected``, then TrendAttack on the small graphs and years on a generated one.

    ``METHODS`` everywhere, ``OTHER_METHODS`` on the graphs ``WIDER``; of TrendAttack, which trains a shadow a method,
    ``TREND_METHODS``. E-UMIA on edges has runs of its own, as it was added later, and none on community sets: they take the
    edges of whole classes, so that hardly a kept edge has ends of the same labels.
    """
    graphs = tuple(graphs)
    configs = [
        _config(data, seed, method, offset, forget, asked)
        for data, seeds in SEEDS.items()
        if data in graphs
        for seed in range(seeds)
        for forget in FEWER.get(data, FORGET)
        for method, offset in (*CONTROLS, *((name, 0) for name in METHODS + OTHER_METHODS * (data in WIDER)))
        for asked in ((MAIN,) if forget == "community" else (MAIN, EDGES))
    ]
    configs += [  # a community found in the graph, without training again
        _config(data, seed, method, 0, "community_louvain")
        for data in ("cora", "citeseer", "dblp")
        if data in graphs
        for seed in range(SEEDS[data])
        for method in ("utu", "untrained")
    ]
    configs += [
        _config(data, seed, method, offset, forget, TREND)
        for data, seeds in TRENDS.items()
        if data in graphs
        for seed in range(seeds)
        for forget in ("low", "high")
        for method, offset in (*CONTROLS, *((name, 0) for name in TREND_METHODS))
    ]
    configs += [  # a few epochs: LinkTeller does not depend on the weights, and the graph is large
        _config(GENERATED, 0, method, 0, forget, TEMPORAL, (("epochs", 10),))
        for forget in ("low", "high", "random", "temporal")
        for method in ("utu", "untrained")
        if GENERATED in graphs
    ]
    return configs


def _config(
    data: str, seed: int, method: str, offset: int, forget: str, asked: tuple = MAIN, training: tuple = ()
) -> AttackControlsConfiguration:
    chosen = preset_settings(method, "corrected") if method in METHODS + OTHER_METHODS else ()
    other = seed + 1000 * offset if offset else None
    return AttackControlsConfiguration(
        data, seed, method=method, forget=forget, method_seed=other, asked=asked, training=training, settings=chosen
    )


def is_blind(excess_low: float) -> bool:
    """Whether an attack cannot tell the Memoriser, which kept every edge, from Gold, which saw none.

    Args:
        excess_low: lower end of the interval of the Memoriser's AUC minus Gold's, on one setting.

    Example:
        >>> is_blind(-0.01), is_blind(0.2)
        (True, False)
    """
    return not excess_low > 0.0


def frames(configs: list[AttackControlsConfiguration], store: RecordStore) -> dict[str, pd.DataFrame]:
    """The table ``excess``: for every graph, forget set, question and method the AUC in excess of Gold's.

    Columns: ``auc``, ``gold_auc``, ``excess``, ``seeds``, on the retained graph also ``excess_low`` and ``excess_high``
    (bootstrap over pairs and seeds) and ``gold_spread``; means over the runs of ``tpr`` and ``auc_stratified``;
    ``excess_stratified``, the latter minus Gold's; on the retained graph ``memoriser_low``, the lower end of the Memoriser's
    excess, and ``blind`` (:func:`is_blind`).
    """
    cells: dict[tuple, list[AttackControlsConfiguration]] = {}
    for config in configs:
        cells.setdefault((config.data, config.forget, config.asked), []).append(config)
    rows = []
    for (data, forget, asked), members in cells.items():
        if not any(config.method == "gold" for config in members):
            continue
        records = {config.key: store.read(config.key) for config in members}
        members = [config for config in members if f"{question(*asked[0])}_auc" in records[config.key]["metrics"]]
        arrays = {config.key: store.arrays(config.key) for config in members}
        for name, query, negatives in asked:
            tag = question(name, query, negatives)
            scores: dict[str, dict[int, list]] = {}
            for config in members:
                own = arrays[config.key]
                scores.setdefault(config.method, {}).setdefault(config.seed, []).append(
                    (own[f"{tag}_scores"], own[f"{tag}_labels"])
                )
            found = _excesses(scores, query)
            low = found["memoriser"].get("excess_low", np.nan)
            for method, numbers in found.items():
                own = [records[c.key]["metrics"] for c in members if c.method == method]
                golds = [records[c.key]["metrics"] for c in members if c.method == "gold"]
                row = {"data": data, "forget": forget, "attack": name, "query": query, "negatives": negatives}
                row |= {"method": method, **numbers, "tpr": float(np.mean([m[f"{tag}_tpr"] for m in own]))}
                if f"{tag}_auc_stratified" in own[0]:
                    mine, theirs = (
                        pd.Series([m[f"{tag}_auc_stratified"] for m in side]).mean() for side in (own, golds)
                    )
                    row |= {"auc_stratified": float(mine), "excess_stratified": float(mine - theirs)}
                rows.append(row | ({"memoriser_low": low, "blind": is_blind(low)} if query == "retained" else {}))
    return {"excess": pd.DataFrame(rows)}


def _excesses(scores: dict[str, dict[int, list]], query: str) -> dict[str, dict[str, float]]:
    """Excesses over Gold; with intervals on the retained graph, where claims are decided, else means over seeds alone."""
    golds = scores["gold"]
    if query == "retained":
        return excesses_over_gold(scores, golds, replicates=REPLICATES)
    found = {}
    for method, by_seed in scores.items():
        area, gold = (
            float(np.mean([np.mean([auc(*run) for run in side[seed]]) for seed in by_seed]))
            for side in (by_seed, golds)
        )
        found[method] = {"auc": area, "gold_auc": gold, "excess": area - gold, "seeds": float(len(by_seed))}
    return found


REPLICATES = 200
"""Draws of the bootstrap of every row with an interval."""
