"""The published studies: for each, the list of its runs.

A study is a name and a list of configurations. Adding one is one function and one registry line.
"""

from collections.abc import Iterable

from lethe_lib.registry import Registry
from lethe_lib.study.attack_controls import FORGET, attack_controls
from lethe_lib.study.centrality_rank import centrality_rank
from lethe_lib.study.certified_requests import certified_requests
from lethe_lib.study.configuration import (
    Configuration,
    DisplacementConfiguration,
    UnlearningConfiguration,
    preset_settings,
)
from lethe_lib.study.cost import CentralityCostConfiguration
from lethe_lib.study.edge_audit_runs import OTHER_BACKBONES, edge_audit, edge_audit_variations
from lethe_lib.study.membership import membership
from lethe_lib.study.one_node import one_node
from lethe_lib.study.tuning import tuning
from lethe_lib.unlearning import UNLEARNERS

REAL_GRAPHS = ("cora", "citeseer", "pubmed", "dblp", "photo", "computers")
PRESETS = ("corrected", "published")
SEEDS = (0, 1, 2)
CONTROLS = (("original", 0), ("gold", 0), ("gold", 1), ("gold", 2), ("utu", 0), ("untrained", 0))
"""Name and number of the seed: 0 is the original's own."""
GENERIC = (
    "fine_tuning",
    "neg_grad",
    "adv_neg_grad",
    "unsir",
    "bad_teaching",
    "scrub",
    "fisher",
    "ssd",
    "salun",
)
GRAPH_NATIVE = {
    "gcn": ("ceu", "idea", "gif", "gnn_delete"),
    "sgc": ("ceu", "idea", "gif", "cgu", "scalegun"),
}
"""Backbone -> graph-native methods that are measured on it."""

PUBLISHED_EDGES = {"cgu": {"random_edges": 20}, "scalegun": {"most": 20}}
"""What the published preset of two methods takes one by one in 20 steps of 100 and 500: each may train again."""

COLLAPSE_EPOCHS = (10, 100)
COLLAPSE_LONGER = {"cora": (400,)}
"""Graph -> numbers of epochs beyond these, where they take seconds."""

CELLS = {
    ("citeseer", "gcn"): FORGET,
    **{(data, "gcn"): ("random", "community") for data in ("cora", "dblp", "photo", "computers", "pubmed")},
    **{(data, other): ("low", "high") for data in ("cora", "citeseer") for other in OTHER_BACKBONES},
    **{(data, other): FORGET for data in ("dblp", "photo") for other in OTHER_BACKBONES},
}
"""(graph, backbone) -> forget sets of the study ``benchmark_cells``: those that no earlier study holds with all methods."""

ADDITIONS = ("adv_neg_grad_matched", "ssd_edge_diff", "salun_edge_diff", "npo", "l1_sparse")


def first_slice(graphs: Iterable[str] = REAL_GRAPHS) -> list[Configuration]:
    """GCN on low, high and random 5 % sets, both presets, three seeds, five methods, three attacks.

    Gold runs three times beside each original: from the original's initial weights and from two others.
    """
    return [
        UnlearningConfiguration(
            data,
            seed,
            preset,
            method=method,
            forget=forget,
            method_seed=seed + 1000 * offset if offset else None,
            settings=written_out(method, preset),
        )
        for data in graphs
        for preset in PRESETS
        for seed in SEEDS
        for forget in ("low", "high", "random")
        for method, offset in (*CONTROLS, ("fine_tuning", 0))
    ]


def written_out(method: str, preset: str) -> tuple[tuple[str, object], ...]:
    """The settings that a tuned method has now, so that a preset that is changed later makes other runs."""
    tuned = GENERIC + ADDITIONS + sum(GRAPH_NATIVE.values(), ())
    return preset_settings(method, preset) if method in tuned else ()


def displacement(graphs: Iterable[str] = REAL_GRAPHS) -> list[Configuration]:
    """Endpoint displacement of low, high and random 5 % sets under GCN, both presets, three seeds."""
    return [
        DisplacementConfiguration(data, seed, preset, forget=forget)
        for data in graphs
        for preset in PRESETS
        for seed in SEEDS
        for forget in ("low", "high", "random")
    ]


def edge_removal(graphs: Iterable[str] = REAL_GRAPHS) -> list[Configuration]:
    """Retraining after 1 % to 50 % of the edges are gone: random sets with five seeds, both halves with three."""
    random = [("random", seed, share) for seed in range(5) for share in (0.01, 0.05, 0.20, 0.50)]
    graded = [(kind, seed, 0.50) for kind in ("low", "high") for seed in SEEDS]
    return [
        UnlearningConfiguration(data, seed, method="gold", forget=kind, fraction=share, attacks=())
        for data in graphs
        for kind, seed, share in random + graded
    ]


def centrality_cost(graphs: Iterable[str] = ("generated",)) -> list[Configuration]:
    """Time of WalkCentrality on generated graphs of 100 thousand to 10 million edges."""
    return [
        CentralityCostConfiguration(data, seed=seed, edges=edges, hops=hops)
        for data in graphs
        for seed in SEEDS
        for edges in (100_000, 1_000_000, 10_000_000)
        for hops in (2, 4)
    ]


def generic_unlearning(graphs: Iterable[str] = ("photo", "computers", "dblp", "cora", "pubmed")) -> list[Configuration]:
    """The generic methods and the additions on low and high 5 % sets, three seeds, three attacks, beside the controls.

    GCN with the presets that a method has, on every graph; GAT, GIN, SAGE and SGC with preset ``corrected`` on Cora. The
    controls of the GCN are runs of ``first_slice`` and are taken over from there.
    """
    graphs = tuple(graphs)
    cells = [(data, "gcn", preset) for data in graphs for preset in PRESETS]
    cells += [("cora", backbone, "corrected") for backbone in OTHER_BACKBONES if "cora" in graphs]
    configs = []
    for data, backbone, preset in cells:
        methods = [method for method in GENERIC + ADDITIONS if preset in UNLEARNERS[method].settings]
        for seed in SEEDS:
            for forget in ("low", "high"):
                cell = {"data": data, "seed": seed, "preset": preset, "backbone": backbone, "forget": forget}
                for method, offset in CONTROLS:
                    other = seed + 1000 * offset if offset else None
                    configs.append(UnlearningConfiguration(method=method, method_seed=other, **cell))
                for method in methods:
                    chosen = written_out(method, preset)
                    configs.append(UnlearningConfiguration(method=method, settings=chosen, **cell))
    return configs


def benchmark_cells(graphs: Iterable[str] = REAL_GRAPHS) -> list[Configuration]:
    """What the benchmark needs beside ``generic_unlearning``: preset ``corrected``, three seeds, three attacks, ``CELLS``.

    All methods that take the backbone beside the controls and the planted memoriser.
    """
    cells = [(data, backbone, forget) for (data, backbone), kinds in CELLS.items() for forget in kinds]
    graphs = tuple(graphs)
    return [
        UnlearningConfiguration(
            data,
            seed,
            method=method,
            backbone=backbone,
            forget=forget,
            method_seed=seed + 1000 * offset if offset else None,
            settings=written_out(method, "corrected"),
        )
        for data, backbone, forget in cells
        if data in graphs
        for seed in SEEDS
        for method, offset in _cell_methods(backbone)
    ]


def _cell_methods(backbone: str) -> list[tuple[str, int]]:
    """Name and number of the seed of what runs in every cell of a backbone."""
    approximate = (*GENERIC, *ADDITIONS, "gif", "gnn_delete", "ceu", "idea", "cgu", "scalegun")
    takes = {name: UNLEARNERS[name].backbones for name in (*approximate, "memoriser")}
    own = [name for name, backbones in takes.items() if backbones is None or backbone in backbones]
    return [*CONTROLS, *((name, 0) for name in own)]


def graph_native(graphs: Iterable[str] = ("cora", "dblp", "photo", "computers", "pubmed")) -> list[Configuration]:
    """The graph-native methods on low and high 5 % sets, three attacks, beside the controls, GCN and SGC, both presets.

    A method runs with every preset that it has. The certified heads of preset ``published`` train again at nearly every
    edge, so they run once, on Cora, with ``PUBLISHED_EDGES``. The controls of the GCN are those of ``first_slice``.
    """
    configs = []
    for data in graphs:
        for seed in SEEDS:
            for backbone, methods in GRAPH_NATIVE.items():
                for preset in PRESETS:
                    for forget in ("low", "high"):
                        cell = {"data": data, "seed": seed, "preset": preset, "backbone": backbone, "forget": forget}
                        configs += _native_cell(cell, methods)
    return configs


def _native_cell(cell: dict, methods: tuple[str, ...]) -> list[Configuration]:
    """The controls, the memoriser and the methods of one cell."""
    configs, preset = [], cell["preset"]
    for method, offset in (*CONTROLS, ("memoriser", 0)):
        other = cell["seed"] + 1000 * offset if offset else None
        configs.append(UnlearningConfiguration(method=method, method_seed=other, **cell))
    for method in methods:
        if preset not in UNLEARNERS[method].settings:
            continue
        settings = dict(written_out(method, preset))
        if preset == "published" and method in PUBLISHED_EDGES:
            if (cell["data"], cell["seed"], cell["forget"]) != ("cora", 0, "low"):
                continue
            settings |= PUBLISHED_EDGES[method]
        configs.append(UnlearningConfiguration(method=method, settings=tuple(settings.items()), **cell))
    return configs


def gnn_delete_collapse(graphs: Iterable[str] = ("cora", "dblp", "photo", "computers")) -> list[Configuration]:
    """GNNDelete over initial operators and epochs, all else as the presets have it, GCN, high 5 % sets, no attack.

    UtU stands beside it: what the same model does without operators.
    """
    configs = []
    for data, seed in [(data, seed) for seed in SEEDS for data in graphs]:
        for preset in PRESETS:
            cell = {"data": data, "seed": seed, "preset": preset, "forget": "high", "attacks": ()}
            configs.append(UnlearningConfiguration(method="utu", **cell))
            for start in ("ones", "identity"):
                for epochs in COLLAPSE_EPOCHS + COLLAPSE_LONGER.get(data, ()):
                    settings = {**dict(written_out("gnn_delete", preset)), "start": start, "epochs": epochs}
                    configs.append(
                        UnlearningConfiguration(method="gnn_delete", settings=tuple(settings.items()), **cell)
                    )
    return configs


STUDIES = Registry(
    "study",
    {
        "first_slice": first_slice,
        "displacement": displacement,
        "edge_removal": edge_removal,
        "centrality_cost": centrality_cost,
        "tuning": tuning,
        "generic_unlearning": generic_unlearning,
        "graph_native": graph_native,
        "gnn_delete_collapse": gnn_delete_collapse,
        "certified_requests": certified_requests,
        "benchmark_cells": benchmark_cells,
        "centrality_rank": centrality_rank,
        "attack_controls": attack_controls,
        "membership": membership,
        "one_node": one_node,
        "edge_audit": edge_audit,
        "edge_audit_variations": edge_audit_variations,
    },
)

OWN_STUDIES = {
    "sampling_priors": "lethe_lib.study.sampling_priors",
    "audit_calibration": "lethe_lib.study.audit_calibration",
}
"""Studies that are not lists of runs: name -> module with its own ``add_arguments`` and ``main``."""


def require_study(name: str) -> None:
    """Refuse a name that is no study of either kind; the InputError lists all of them."""
    Registry("study", {**STUDIES, **OWN_STUDIES})[name]
