"""The randomised edge audit: the same edge, the same query graph, and membership decided by a coin.

    pool P of candidate edges of G, base graph B = G without P
    for trial t = 1 .. T:
        s_te ~ Bernoulli(gamma_e) for every e in P, all independent         which edges are in
        original_t  <- trained on B and the edges with s_te = 1, from a seed of its own
        released_t  <- the unlearner, asked to forget the edges with s_te = 1
        x_te        <- what released_t says of e when it is asked on B      the same graph in every trial
    attack: tell s_te from x_te, calibrated for every edge on the other trials

Whether a pair was an edge is decided by a coin and not by the graph, and every answer is read off the same graph B. So
nothing that the graph shows can score: what is read off a model that never saw the pool does not depend on the coins, its AUC
is one half in expectation (but for a bias of the scores with few trials, see ``edge_membership.LEAST_TRIALS``), and what is
above it is memory in the weights. It is the form for edges of the randomised tests of membership and of unlearning
in N. Carlini et al., arXiv:2112.03570, and J. Hayes et al., arXiv:2403.01218.

The training, validation and test nodes are the same in every trial. Which nodes carry a training label is public here; if
it changed, its large effect on the answers at both ends would hide that of the edge. The coins, the training seeds and the
pool come from generators of their own, so none of them tells anything about another.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.seeding import derive_seed, numpy_generator
from lethe_lib.structure import check_pairs, edge_positions, remove_edges, walk_centrality
from lethe_lib.unlearning import UnlearningResult, unlearn

LEAST_TRIALS = 4


@dataclass(frozen=True, eq=False)
class EdgeDesign:
    """The coins of an audit, and the graphs that follow from them.

    Attributes:
        data: the graph G with all edges.
        pool: int64 (2, m), the candidate edges, i < j, sorted.
        prior: gamma_e, the probability that an edge is in, (m,) float64 in (0, 1).
        member: s_te, (T, m) bool.
        training_seeds: one for every trial; all equal for an adversary who knows the seed of the training.
    """

    data: Data
    pool: torch.Tensor
    prior: np.ndarray
    member: np.ndarray
    training_seeds: tuple[int, ...]

    @property
    def trials(self) -> int:
        return len(self.member)

    @cached_property
    def base(self) -> Data:
        """The graph B without any edge of the pool, on which every released model is asked."""
        return remove_edges(self.data, self.pool)

    def included(self, trial: int) -> torch.Tensor:
        """The edges of the pool that are in, (2, k): what the original is trained with, and the request to forget."""
        return self.pool[:, torch.from_numpy(self.member[trial])]

    def graph(self, trial: int) -> Data:
        """The training graph of the original: B and the included edges."""
        return remove_edges(self.data, self.pool[:, torch.from_numpy(~self.member[trial])])


def edge_design(
    data: Data, pool: torch.Tensor, trials: int = 64, prior=0.5, seed: int = 0, same_training_seed: bool = False
) -> EdgeDesign:
    """Toss the coins of an audit.

    Args:
        data: a canonical graph.
        pool: (2, m) edges of the graph, for example a forget set; at least one, and not all edges of the graph.
        trials: T, at least 4. The coins and seeds of a trial do not depend on how many trials there are.
        prior: gamma, one number or (m,), strictly between 0 and 1, in the order of the sorted pool.
        seed: of coins and training seeds.
        same_training_seed: train every original from one seed: the adversary who knows the randomness of the training.

    Raises:
        InputError: naming what cannot be used.

    Example:
        >>> from lethe_lib.data import load_graph
        >>> from lethe_lib.structure import forget_set
        >>> graph = load_graph("synthetic-tiny")
        >>> design = edge_design(graph, forget_set(graph, "random"), trials=8)
        >>> design.member.shape, design.base.num_edges
        ((8, 18), 684)
    """
    pool = check_pairs(data, pool)
    count = pool.shape[1]
    if count == 0 or 2 * count == data.edge_index.shape[1]:
        raise InputError(
            f"the pool has {count} of the {data.edge_index.shape[1] // 2} edges of {data.name!r}: at least one edge must be "
            "in it, and one outside"
        )
    if isinstance(trials, bool) or not isinstance(trials, int | np.integer) or trials < LEAST_TRIALS:
        raise InputError(f"trials is {trials!r}: at least {LEAST_TRIALS} are needed, and a few dozen to see anything")
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape not in ((), (count,)):
        raise InputError(
            f"prior has shape {prior.shape}: give one number, or one for each of the {count} edges of the pool"
        )
    prior = np.broadcast_to(prior, count).copy()
    bad = ~((prior > 0) & (prior < 1))
    if bad.any():
        raise InputError(
            f"prior is {prior[bad][0]:g} for edge {np.argmax(bad)} of the pool: it must lie between 0 and 1"
        )
    return EdgeDesign(
        data,
        pool,
        prior,
        np.stack(
            [numpy_generator(seed, "edge audit", "coins", trial).random(count) < prior for trial in range(trials)]
        ),
        tuple(
            derive_seed(seed, "edge audit", "training", "same" if same_training_seed else trial)
            for trial in range(trials)
        ),
    )


def rising_prior(data: Data, pool: torch.Tensor, middle: float = 0.5, spread: float = 0.25, k: int = 2) -> np.ndarray:
    """Inclusion probabilities that rise with the rank of an edge's WalkCentrality, linearly around ``middle``.

    Args:
        data: a canonical graph. pool: (2, m) edges of it.
        middle: mean of the probabilities.
        spread: the edge of lowest rank has ``middle - spread``, that of highest rank ``middle + spread``.
        k: steps of the walks.

    Returns:
        (m,) float64, in the order of the sorted pool; edges of equal centrality share the mean of their ranks.
    """
    pool = check_pairs(data, pool)
    centrality = walk_centrality(data, k)[edge_positions(data, pool)]
    order = np.sort(centrality)
    rank = (np.searchsorted(order, centrality, "left") + np.searchsorted(order, centrality, "right") - 1) / 2
    place = rank / max(len(rank) - 1, 1) if len(rank) > 1 else np.full(1, 0.5)
    return middle + spread * (2 * place - 1)


def release(
    design: EdgeDesign, trial: int, original: Backbone, method: str, preset: str = "corrected", **settings
) -> UnlearningResult:
    """Ask an unlearner to forget the included edges of a trial.

    Args:
        design: the coins.
        trial: its number, from 0.
        original: the model trained on ``design.graph(trial)``.
        method, preset, settings: as :func:`lethe_lib.unlearning.unlearn` takes them; the method's seed is the training
            seed of the trial, so that it is known where that is.

    Returns:
        The result; its model is to be asked on ``design.base``, whatever graph the method serves.
    """
    seed = design.training_seeds[trial]
    return unlearn(method, original, design.graph(trial), design.included(trial), seed, preset, **settings)
