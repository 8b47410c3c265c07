"""How much each weight matters to a set of nodes: the mean of squared per-node gradients, exact or estimated.

    exact:      I = 1/m sum_v (grad loss_v)^2                                              m backwards
    probes:     I = 1/(K m) sum_k (grad sum_v s_kv loss_v)^2, signs s_kv = +-1             K backwards
    minibatch:  I = mean over batches of (grad of the batch's mean loss)^2                 m / B backwards
    published:  I = 1/m (grad of the mean loss)^2                                          1 backward

With independent signs the cross terms of the second line have mean zero, so probes (Hutchinson, 1990) estimate the first
line without bias. The other two are other quantities: they square sums, so gradients that cancel between nodes vanish.
Minibatch is what the code of Foster, Schoepf, Brintrup, AAAI 2024, computes; the last line is the benchmark's.

Every line is a sum of squares of (cotangent times Jacobian), so one function does all the work. Random signs are dealt
to the nodes in an order that their numbering does not change; and two sets that share a node share its sign, so that
their ratio is less noisy.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.seeding import torch_generator


def squared_gradients(
    outputs: torch.Tensor, parameters: list[torch.Tensor], cotangents: Iterable[torch.Tensor]
) -> list[torch.Tensor]:
    """Sum over the cotangents c of (d<c, outputs> / d parameter)^2, elementwise.

    Args:
        outputs: a tensor that depends on the parameters.
        parameters: tensors with respect to which to differentiate.
        cotangents: tensors of the shape of ``outputs``.

    Returns:
        One float64 tensor per parameter, of its shape, non-negative.
    """
    total = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
    for cotangent in cotangents:
        gradients = torch.autograd.grad(
            outputs, parameters, cotangent.to(outputs), retain_graph=True, materialize_grads=True
        )
        for sum_, gradient in zip(total, gradients, strict=True):
            sum_ += gradient.double().square()
    return total


def node_order(data: Data, logits: torch.Tensor) -> torch.Tensor:
    """Rank of every node, (n,), in an order that does not depend on how the nodes are numbered.

    By a random projection of the node's own features, among equal features by its first logit. Nodes that agree in both
    keep the order of their numbers.

    Args:
        data: the graph. logits: (n, C) outputs on it.
    """
    direction = torch.randn(data.x.shape[1], generator=torch_generator(0, "unlearning", "node order"))
    x = data.x.cpu()
    # Row by row, not by a dense product, whose rounding may depend on where a row stands.
    projected = (x * direction).sum(1) if x.layout == torch.strided else x @ direction
    order = np.lexsort((logits.detach().cpu()[:, 0].numpy(), projected.numpy()))
    ranks = torch.empty(len(order), dtype=torch.int64)
    ranks[torch.from_numpy(order)] = torch.arange(len(order))
    return ranks


def signs(shape: tuple[int, ...], seed: int, *purpose: object) -> torch.Tensor:
    """Independent fair signs, +1 or -1, float32."""
    draws = torch.randint(0, 2, shape, generator=torch_generator(seed, "unlearning", *purpose))
    return draws.float() * 2 - 1


def loss_importance(
    losses: torch.Tensor,
    nodes: torch.Tensor,
    ranks: torch.Tensor,
    parameters: list[torch.Tensor],
    estimator: str,
    seed: int,
    probes: int = 64,
    batch: int = 32,
) -> tuple[list[torch.Tensor], int]:
    """Importance of every weight to a per-node loss.

    Args:
        losses: (m,) losses of ``nodes``, with their graph.
        nodes: (m,) node indices. ranks: (n,) from :func:`node_order`.
        parameters: the weights.
        estimator: ``exact``, ``probes``, ``minibatch`` or ``published``.
        seed: of the signs or of the batches. probes: number K. batch: nodes in a batch.

    Returns:
        One float64 tensor per parameter, non-negative, and the number of backwards.

    Raises:
        InputError: no node, or an unknown estimator.
    """
    m = len(losses)
    if m == 0:
        raise InputError("importance over no nodes: this mapping leaves nothing to measure; choose another mapping")
    if probes < 1 or batch < 1:
        raise InputError(f"probes={probes} and batch={batch} must be at least 1")
    if estimator == "exact":
        cotangents, weight = _one_by_one(m), 1.0 / m
    elif estimator == "probes":
        drawn = signs((len(ranks), probes), seed, "importance signs")[ranks[nodes]]
        cotangents, weight = drawn.T, 1.0 / (probes * m)
    elif estimator == "minibatch":
        shuffled = torch.randperm(len(ranks), generator=torch_generator(seed, "unlearning", "importance batches"))
        cotangents = _batch_means(torch.argsort(shuffled[ranks[nodes]]).split(batch), m)
        weight = 1.0 / len(cotangents)
    elif estimator == "published":
        cotangents, weight = [torch.full((m,), 1.0 / m)], 1.0 / m
    else:
        raise InputError(f"estimator={estimator!r} is unknown: choose exact, probes, minibatch or published")
    backwards = m if estimator == "exact" else len(cotangents)
    return [s * weight for s in squared_gradients(losses, parameters, cotangents)], backwards


def fisher_diagonal(
    logits: torch.Tensor,
    nodes: torch.Tensor,
    ranks: torch.Tensor,
    parameters: list[torch.Tensor],
    estimator: str,
    seed: int,
    probes: int = 16,
) -> tuple[list[torch.Tensor], int]:
    """Diagonal of the Fisher information: mean over nodes, expectation over the model's own labels.

        F_i = 1/m sum_v sum_y p_vy (d log p_vy / d theta_i)^2

    No label is read. ``exact`` takes m C backwards; ``probes`` K, with a sign for every node and class, unbiased;
    ``published`` C: for every class y the gradient of sum_v p_vy log p_vy, with the weights p_vy held fixed, is squared, and
    the sum over classes divided by m, so products of different nodes' gradients enter, and it is no Fisher information.

    Args:
        logits: (n, C) of all nodes, with their graph.
        nodes: (m,) the nodes to average over. ranks: (n,) from :func:`node_order`.
        parameters: the weights. estimator: as above. seed: of the signs. probes: number K.

    Returns:
        One float64 tensor per parameter, non-negative, and the number of backwards.
    """
    if len(nodes) == 0:
        raise InputError("a Fisher information over no nodes: this mapping leaves nothing; choose another mapping")
    if probes < 1:
        raise InputError(f"probes={probes} must be at least 1")
    log_p = torch.log_softmax(logits, dim=1)[nodes.to(logits.device)]
    p = log_p.detach().exp()
    m, classes = log_p.shape
    if estimator == "exact":
        cotangents = (one.view(m, classes) * p.sqrt() for one in _one_by_one(m * classes, p.device))
        weight, backwards = 1.0 / m, m * classes
    elif estimator == "probes":
        drawn = signs((probes, len(ranks), classes), seed, "fisher signs")[:, ranks[nodes]]
        cotangents = (s.to(p) * p.sqrt() for s in drawn)
        weight, backwards = 1.0 / (probes * m), probes
    elif estimator == "published":
        cotangents = (p * of_class for of_class in torch.eye(classes, device=p.device))
        weight, backwards = 1.0 / m, classes
    else:
        raise InputError(f"estimator={estimator!r} is unknown: choose exact, probes or published")
    return [s * weight for s in squared_gradients(log_p, parameters, cotangents)], backwards


def _one_by_one(count: int, device: torch.device | str = "cpu") -> Iterator[torch.Tensor]:
    for position in range(count):
        one = torch.zeros(count, device=device)
        one[position] = 1.0
        yield one


def _batch_means(batches: tuple[torch.Tensor, ...], count: int) -> list[torch.Tensor]:
    means = []
    for batch in batches:
        mean = torch.zeros(count)
        mean[batch] = 1.0 / len(batch)
        means.append(mean)
    return means
