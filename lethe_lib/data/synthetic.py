"""Generated graphs: a degree-corrected block model with node features, for use without any download.

    label of a node: drawn with skewed class sizes; weight of a node: log-normal, capped
    repeat until there are enough distinct edges:
        draw one endpoint by weight; with probability h the other by weight inside its community, else outside
    features: each community prefers some words; a node takes a word if a uniform number is below its rate
              (or dense Gaussian features around the community's mean)
    a small share of nodes shows another label than its community's, as in real data; no model can reach accuracy 1

Karrer, Newman, "Stochastic blockmodels and community structure in networks", Physical Review E 2011. Sizes: ``tiny``
for tests, ``small`` for chapters, ``photo-like`` and ``arxiv-like`` with the size, density and label homophily of the
real graphs, for scaling. Look-alikes are not stand-ins: results on them say nothing about the real graphs.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.data.canonical import canonical
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator


@dataclass(frozen=True)
class BlockModel:
    """Settings of a generated graph.

    Attributes:
        nodes, edges, features, classes: counts; edges undirected.
        community_share: probability that an edge is drawn inside a community.
        spread: standard deviation of the log of node weights; larger gives larger hubs.
        skew: class c (from 0) has size proportional to (c + 1)^-skew.
        wrong_labels: share of nodes whose label is drawn anew from the others.
        words: mean share of words that a node has; None for dense Gaussian features.
        topic: how many times more often a community's own words occur; for Gaussian features, the distance scale of
            the community means.
        years: first and last ``node_year``, each year 1.2 times as frequent as the one before; None: no years.
    """

    nodes: int
    edges: int
    features: int
    classes: int
    community_share: float
    spread: float
    skew: float
    wrong_labels: float
    words: float | None
    topic: float
    years: tuple[int, int] | None


SIZES = {
    "tiny": BlockModel(120, 360, 60, 3, 0.88, 0.6, 0.2, 0.05, 0.10, 4.0, (2000, 2020)),
    "small": BlockModel(1_000, 4_000, 300, 5, 0.94, 0.8, 0.3, 0.08, 0.05, 2.5, (1990, 2020)),
    "photo-like": BlockModel(7_650, 119_081, 745, 8, 0.88, 1.2, 0.5, 0.03, 0.347, 1.5, None),
    "arxiv-like": BlockModel(169_343, 1_157_799, 128, 40, 0.72, 1.1, 0.8, 0.05, None, 0.25, (1971, 2020)),
}


def synthetic(size: str = "small", seed: int = 0) -> Data:
    """A generated graph in canonical form (module docstring).

    Args:
        size: ``tiny``, ``small``, ``photo-like`` or ``arxiv-like``.
        seed: the same seed gives the same graph.

    Returns:
        The graph, named as in the registry of data sets; with ``node_year`` except for ``photo-like``.

    Raises:
        InputError: for an unknown size.
    """
    if size not in SIZES:
        raise InputError(f"unknown size {size!r} of the generated graph: choose one of {', '.join(SIZES)}")
    name = {"tiny": "synthetic-tiny", "small": "synthetic"}.get(size, size)
    return generate(SIZES[size], numpy_generator(seed, "synthetic", size), name)


def generate(model: BlockModel, generator: np.random.Generator, name: str) -> Data:
    """One draw from a block model, in canonical form."""
    share = (1.0 + np.arange(model.classes)) ** -model.skew
    # Sorted communities turn drawing inside a community into drawing from an interval of cumulated weights.
    community = np.sort(generator.choice(model.classes, model.nodes, p=share / share.sum()))
    weight = np.minimum(np.exp(model.spread * generator.standard_normal(model.nodes)), 0.01 * model.nodes)
    edges = _draw_edges(model, community, weight, generator)
    x = _draw_words(model, community, generator) if model.words else _draw_vectors(model, community, generator)
    y = community.copy()
    wrong = generator.random(model.nodes) < model.wrong_labels
    y[wrong] = (y[wrong] + generator.integers(1, model.classes, wrong.sum())) % model.classes

    shuffled = generator.permutation(model.nodes)  # node -> new id, so that ids say nothing about communities
    order = np.argsort(shuffled)
    data = Data(
        x=torch.from_numpy(x[order]), y=torch.from_numpy(y[order]), edge_index=torch.from_numpy(shuffled[edges])
    )
    if model.years:
        years = np.arange(model.years[0], model.years[1] + 1)
        frequency = 1.2 ** (years - years[0])
        data.node_year = torch.from_numpy(generator.choice(years, model.nodes, p=frequency / frequency.sum()))
    return canonical(data, name=name, num_classes=model.classes)


def _draw_edges(
    model: BlockModel, community: np.ndarray, weight: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    cumulated = np.concatenate([[0.0], np.cumsum(weight)])
    bounds = np.searchsorted(community, np.arange(model.classes + 1))
    start, end = cumulated[bounds[:-1]][community], cumulated[bounds[1:]][community]
    keys = np.empty(0, np.int64)
    while len(keys) < model.edges:
        count = int(1.2 * (model.edges - len(keys))) + 16
        first = _locate(cumulated, generator.random(count) * cumulated[-1])
        inside = generator.random(count) < model.community_share
        length = np.where(inside, end[first] - start[first], cumulated[-1] - (end[first] - start[first]))
        # Inside: an interval of its own. Outside: the circle of all weights, begun where the community ends.
        position = np.where(inside, start[first], end[first]) + generator.random(count) * length
        second = _locate(cumulated, position % cumulated[-1])
        proper = first != second
        low, high = np.minimum(first, second)[proper], np.maximum(first, second)[proper]
        keys = np.union1d(keys, low * model.nodes + high)
    keys = generator.choice(keys, model.edges, replace=False)
    return np.stack([keys // model.nodes, keys % model.nodes])


def _locate(cumulated: np.ndarray, position: np.ndarray) -> np.ndarray:
    return np.minimum(np.searchsorted(cumulated, position, side="right") - 1, len(cumulated) - 2)


def _draw_words(model: BlockModel, community: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    rate = np.exp(0.5 * generator.standard_normal(model.features))
    rates = rate * np.where(generator.random((model.classes, model.features)) < 0.2, model.topic, 1.0)
    rates = np.minimum(rates * (model.words / rates.mean()), 0.95)
    return (generator.random((model.nodes, model.features), np.float32) < rates[community]).astype(np.float32)


def _draw_vectors(model: BlockModel, community: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    means = model.topic * generator.standard_normal((model.classes, model.features), np.float32)
    return means[community] + generator.standard_normal((model.nodes, model.features), np.float32)
