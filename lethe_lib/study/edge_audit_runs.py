"""Which runs the edge audit publishes: graphs, pools, methods, and what is varied for unlinking alone."""

from dataclasses import replace

from lethe_lib.study.configuration import Configuration, preset_settings
from lethe_lib.study.edge_audit import CONTROLS, EdgeAuditConfiguration

POOLS = ("low", "high", "random")
GRAPHS = ("cora", "citeseer", "dblp", "photo", "pubmed")
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
}
VARIATIONS["photo"] = {**VARIATIONS["dblp"], "hidden": (16,), "weight_decay": (0.0,)}
"""Graph -> what is varied -> its values; of any other graph those of DBLP. On Photo, where wide models take long, fewer."""
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
OTHER_BACKBONES = ("sgc", "sage", "gin", "gat")
"""Audited on the low pools of Cora and Photo beside the GCN."""

LONG = (("epochs", 200), ("patience", 200), ("always_restore", False), ("dropout", 0.0))
"""A schedule without early stopping and dropout, under which models fit their training nodes far more closely."""

CERTIFIED_SGC = ("cgu", "scalegun")
"""Methods for SGC alone."""

WITHIN = 1e-3
"""A ridge with which they serve such a request within their budget; with that of the preset they train again."""

TIGHTER = (("ridge", WITHIN), ("epsilon", 0.5), ("noise", 0.2))
"""The same with half the epsilon, whose bound on the AUC unlinking exceeds: a certificate that the audit could refute."""

BEST = ("fine_tuning", "l1_sparse", "fisher", "idea", "scrub")
"""What left least under the GCN, excesses added up over all settings that can tell (chapter 15): run with every backbone."""

EVERYWHERE = ("fine_tuning", "l1_sparse")
"""The two methods that left least on the low and random pools of Cora and CiteSeer: they are run first, and on every pool."""


def edge_audit(graphs=GRAPHS) -> list[Configuration]:
    """What methods leave of the memory of edges, the most telling runs first.

    1. GCN, every pool: the controls and the methods ``EVERYWHERE``, then all methods. 2. The low pools of Cora and Photo: the
    controls and the methods ``BEST`` with ``OTHER_BACKBONES``, the controls with preset ``published``, and one training seed.
    3. The low pool of Cora with a long schedule (its unlinking on every pool), and with priors that rise with WalkCentrality;
    one training seed on its other pools; three more methods with other backbones; the methods that exist for SGC alone, also
    with the ridge ``WITHIN`` and with ``TIGHTER``. T = 64 under GCN on Cora and CiteSeer, 32 elsewhere.
    """
    graphs = tuple(graphs)
    configs = [run for name in graphs for pool in POOLS for run in _runs(name, pool, (*CONTROLS, *EVERYWHERE))]
    for methods in (FIRST_METHODS, LATER_METHODS):
        configs += [run for name in graphs for pool in POOLS for run in _runs(name, pool, methods)]
    for name in (name for name in ("cora", "photo") if name in graphs):
        for backbone in OTHER_BACKBONES:
            configs += _runs(name, "low", (*CONTROLS, *BEST), backbone=backbone)
        configs += _runs(name, "low", CONTROLS, preset="published")
        configs += _runs(name, "low", ("utu", "untrained"), same_seed=True)
    if "cora" in graphs:
        configs += _runs("cora", "low", (*CONTROLS, *FIRST_METHODS), training=LONG)
        configs += [run for pool in ("high", "random") for run in _runs("cora", pool, ("utu", "gold"), training=LONG)]
        configs += [
            run for pool in ("high", "random") for run in _runs("cora", pool, ("utu", "untrained"), same_seed=True)
        ]
        configs += _runs("cora", "low", ("utu", "gold"), spread=0.25)
        for backbone in OTHER_BACKBONES:
            configs += _runs("cora", "low", ("gif", "neg_grad", "ceu"), backbone=backbone)
        certified = _runs("cora", "low", CERTIFIED_SGC, backbone="sgc")
        configs += [
            replace(run, settings=tuple({**dict(run.settings), **dict(other)}.items()))
            for other in ((), (("ridge", WITHIN),), TIGHTER)
            for run in certified
        ]
    return list(dict.fromkeys(configs))


def edge_audit_variations(graphs=("cora", "dblp", "photo")) -> list[Configuration]:
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
