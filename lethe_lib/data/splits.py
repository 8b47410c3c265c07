"""Node splits: 72 % training, 8 % validation, 20 % test, at random.

    order = random permutation of the nodes
    first 80 % -> cut again: 10 % of it validation, the rest training;   last 20 % -> test

Preset ``corrected`` draws the permutation from the seed. Preset ``published`` draws one permutation from the name of
the partition, the same for every seed, as the Lethe benchmark does; no variation over splits is then seen.
"""

from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator

_PARTITION = "train_0"


@dataclass(frozen=True)
class Split:
    """Node indices of the three parts: sorted int64 tensors that are disjoint and together all nodes."""

    train: torch.Tensor
    val: torch.Tensor
    test: torch.Tensor


def split_nodes(data: Data, seed: int, preset: str = "corrected") -> Split:
    """Cut the nodes of a graph into training, validation and test nodes (module docstring).

    Args:
        data: graph of at least three nodes; only their number matters, so removing edges never moves a node.
        seed: seed of the permutation; without effect under ``published``.
        preset: ``corrected`` or ``published``.

    Returns:
        The split; every part has at least one node.

    Raises:
        InputError: for fewer than three nodes or an unknown preset.
    """
    if preset not in ("corrected", "published"):
        raise InputError(f"unknown preset {preset!r}: choose corrected or published")
    n = data.num_nodes
    if n < 3:
        raise InputError(f"a graph of {n} nodes cannot be split into training, validation and test nodes")
    generator = numpy_generator(seed, "split") if preset == "corrected" else numpy_generator(0, _PARTITION)
    order = torch.from_numpy(generator.permutation(n))
    test = max(1, round(0.2 * n))
    val = max(1, round(0.1 * (n - test)))
    train = n - test - val
    parts = order.split([val, train, test])
    return Split(val=parts[0].sort().values, train=parts[1].sort().values, test=parts[2].sort().values)
