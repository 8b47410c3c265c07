"""What a sampler sees of a graph: neighbours in rows, labels, and how many nodes a ratio asks for."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from numbers import Rational

import numpy as np

from lethe_lib.errors import InputError


@dataclass(frozen=True)
class SamplingGraph:
    """A simple undirected graph in compressed rows.

    Attributes:
        row_start: (n + 1,) int64; the neighbours of node i are ``neighbours[row_start[i]:row_start[i + 1]]``.
        neighbours: (2m,) int64, sorted within each row.
        labels: (n,) int64 class of each node, or None where the graph has no labels.
        num_classes: number of classes, empty ones included; 0 without labels.
    """

    row_start: np.ndarray
    neighbours: np.ndarray
    labels: np.ndarray | None
    num_classes: int

    @property
    def num_nodes(self) -> int:
        return len(self.row_start) - 1

    @property
    def degrees(self) -> np.ndarray:
        """(n,) int64 number of neighbours."""
        return np.diff(self.row_start)

    def neighbours_of(self, node: int) -> list[int]:
        """The sorted neighbours of one node, as plain integers."""
        return self.neighbours[self.row_start[node] : self.row_start[node + 1]].tolist()


def sampling_graph(data) -> SamplingGraph:
    """The rows of a canonical graph.

    Args:
        data: a canonical graph (``edge_index`` sorted, both directions stored, no self-loops), or a ``SamplingGraph``,
            which is returned as it is: build it once to draw many samples of one graph.

    Raises:
        InputError: the graph is empty, or its edges are not in canonical form.
    """
    if isinstance(data, SamplingGraph):
        return data
    nodes = int(data.num_nodes)
    if nodes == 0:
        raise InputError("the graph has no nodes: there is nothing to sample")
    source, sink = data.edge_index.cpu().numpy().astype(np.int64)
    keys = source * nodes + sink
    if len(keys) and (source.min() < 0 or sink.min() < 0 or max(source.max(), sink.max()) >= nodes):
        raise InputError(f"edge_index names nodes outside 0..{nodes - 1}: pass the graph through canonical(data)")
    if (np.diff(keys) <= 0).any() or (source == sink).any() or not np.array_equal(np.sort(sink * nodes + source), keys):
        raise InputError("edge_index is not sorted, simple and undirected: pass the graph through canonical(data)")
    row_start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(source, minlength=nodes), out=row_start[1:])
    labels = getattr(data, "y", None)
    if labels is None:
        return SamplingGraph(row_start, sink, None, 0)
    labels = labels.cpu().numpy().astype(np.int64)
    classes = int(data.num_classes) if "num_classes" in data else int(labels.max()) + 1
    return SamplingGraph(row_start, sink, labels, classes)


def exact(value) -> Fraction:
    """A setting as the fraction that its decimal digits spell: 0.1 is 1/10, not the nearest binary number."""
    return Fraction(value) if isinstance(value, Rational) else Fraction(repr(float(value)))


def target_size(graph: SamplingGraph, ratio) -> int:
    """The number of nodes floor(r n) that a ratio r in (0, 1] asks for.

    The product is taken in decimal fractions, so 0.29 of 100 nodes is 29 (binary arithmetic would give 28).

    Raises:
        InputError: the ratio is outside (0, 1], or asks for less than one node.

    Example:
        With the 2,708 nodes of Cora, ratio 0.1 asks for 270 nodes and ratio 0.5 for 1,354.
    """
    try:
        share = exact(ratio)
    except (TypeError, ValueError) as error:
        raise InputError(f"ratio must be a number in (0, 1], not {ratio!r}") from error
    if not 0 < share <= 1:
        raise InputError(f"ratio must be in (0, 1], not {ratio!r}: it is the share of all nodes to sample")
    size = floor(share * graph.num_nodes)
    if size < 1:
        raise InputError(
            f"ratio {ratio!r} of {graph.num_nodes} nodes is less than one node: use at least {1 / graph.num_nodes:.2g}"
        )
    return size
