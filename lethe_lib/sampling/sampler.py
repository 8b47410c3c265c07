"""What a sampler is made of, and the training subgraph that one draw defines.

Every sampler is written twice. ``plain`` is the algorithm in ordinary Python, with every random decision made through
``pick``; the exact law is enumerated from it. ``kernel`` is the same algorithm compiled, for many draws. The tests
compare the two in law.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lethe_lib.errors import InputError
from lethe_lib.registry import changed

INDUCED, VISITED = "induced", "visited"


@dataclass(frozen=True)
class Sampler:
    """One way to draw the nodes of a training graph.

    Attributes:
        name: its name in ``SAMPLERS``.
        settings: frozen dataclass of its settings. A field ``edges`` ("induced" or "visited") means that the sampler
            walks along edges and can leave only those to training; samplers without it always train on the induced
            subgraph.
        prepare: ``(graph, ratio, settings) -> tuple``, the kernel's parameters; refuses what cannot be sampled.
        kernel: compiled ``(row_start, neighbours, target, parameters, state, sampled, order, scratch, crossed) ->
            (size, starts)``. Fills ``order[:size]`` with the sampled nodes and sets their ``sampled``, all False at
            entry; marks in ``crossed``, unless it has length 0, the positions in ``neighbours`` of the edges used.
        plain: ``(graph, ratio, settings, pick) -> (nodes, pairs)``, with ``pick(weights) -> position``.
        law: ``(graph, ratio, settings) -> {frozenset: Fraction}`` where it does not come from enumerating ``plain``.
        exact_priors: ``(graph, ratio, settings) -> (prior, 1 - prior, method)``, (n,) float64 each, where known.
        fixed_size: whether a draw with fewer nodes than the target has starved.
    """

    name: str
    settings: type
    prepare: Callable
    kernel: Callable
    plain: Callable
    law: Callable | None = None
    exact_priors: Callable | None = None
    fixed_size: bool = True

    def configure(self, settings: dict[str, Any]):
        """The settings object of this sampler from keyword arguments; unknown names are refused."""
        return changed(f"sampler {self.name!r}", self.settings(), settings)


@dataclass(frozen=True)
class TrainingSample:
    """One draw: the sampled nodes and the edges that training may use.

    Attributes:
        nodes: (s,) int64, sorted.
        edges: (2, e) int64 pairs i < j, sorted: all edges between sampled nodes ("induced"), or those that the
            exploration looked at ("visited"). Only snowball's ``published`` preset can name a node outside ``nodes``.
        kind: "induced" or "visited".
        target: the number of nodes asked for, floor(r n).
        starts: how many nodes the sampler started from (seeds, walks, fires or egos; 0 where it does not explore).
        starved: the exploration ran dry, and the sample has fewer nodes than asked for.
    """

    nodes: torch.Tensor
    edges: torch.Tensor
    kind: str
    target: int
    starts: int
    starved: bool

    @property
    def edge_index(self) -> torch.Tensor:
        """(2, 2e) int64: the training edges in both directions, sorted, for message passing."""
        both = torch.cat([self.edges, self.edges.flip(0)], dim=1)
        rows, columns = both.numpy()
        return both[:, torch.from_numpy(np.lexsort((columns, rows)))]


def check_edges(edges: str) -> None:
    """Refuse a kind of training edges that is neither "induced" nor "visited"."""
    if edges not in (INDUCED, VISITED):
        raise InputError(f"edges must be {INDUCED!r} or {VISITED!r}, not {edges!r}")


def check_count(name: str, value, least: int = 1) -> None:
    """Refuse a setting that is not an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}, not {value!r}")


def pick_one(pick, items):
    """One item, uniformly, for the plain programs."""
    return items[pick([1] * len(items))]


def pick_ordered(pick, items, count):
    """``count`` distinct items in random order, uniformly, for the plain programs."""
    left, chosen = list(items), []
    for _ in range(count):
        chosen.append(left.pop(pick([1] * len(left))))
    return chosen
