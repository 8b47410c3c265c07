"""The one form that every graph of the library has, and the checks that stand before it.

A canonical graph is simple and undirected, with both directions of every edge stored and sorted, without self-loops;
isolated nodes stay. It carries a content hash, so that two routes to the same graph are seen to be the same graph.

    refuse what cannot be used (NaN features, labels of the wrong shape, indices out of range, ...)
    x -> float32, dense or sparse CSR;   y -> int64 (n,)
    edges: union with their reverses, loops and duplicates dropped, sorted by (row, column)
    node_hash    = sha256(shape of x, x as dense little-endian float32 rows, y)
    content_hash = sha256(node_hash, undirected edges i < j as little-endian int64)
"""

import hashlib
import warnings
from collections.abc import Iterator

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError

_HASH_ROWS = 4096  # rows of sparse features made dense at a time while hashing


def canonical(data: Data, name: str | None = None, num_classes: int | None = None) -> Data:
    """The canonical form of any homogeneous graph with features and labels (module docstring).

    Directed edges are symmetrised; self-loops, duplicates, edge weights, edge features and masks are dropped. Sparse
    features (COO, CSC or CSR) become CSR, dense ones stay dense. The argument is not changed; ``x`` and ``y`` are
    shared with it where they need no conversion. Applying the function again changes nothing.

    Args:
        data: graph with ``x`` (n, F), ``edge_index`` (2, E), ``y`` (n,) or (n, 1), and optionally ``node_year`` (n,).
        name: how records call the graph; the default is the graph's own name, else ``"unnamed"``.
        num_classes: number of classes; the default is the graph's own number, else the largest label plus one.

    Returns:
        A new graph on the CPU with ``x``, ``y``, ``edge_index``, ``name``, ``num_classes``, ``node_hash``,
        ``content_hash``, and ``node_year`` and ``provenance`` where the argument has them.

    Raises:
        InputError: naming the part of the graph that cannot be used.

    Example:
        >>> triangle = Data(x=torch.eye(3), y=torch.tensor([0, 1, 1]), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
        >>> canonical(triangle).edge_index.tolist()
        [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    """
    if not isinstance(data, Data):
        raise InputError(f"a graph must be a torch_geometric.data.Data, not {type(data).__name__}")
    x = _features(data.get("x"))
    y = _node_integers(data.get("y"), len(x), "y (the labels)")
    if len(y) and int(y.min()) < 0:
        raise InputError(f"y has the negative label {int(y.min())}: drop unlabelled nodes or give them a class")
    largest = int(y.max()) if len(y) else -1
    if num_classes is None:
        num_classes = data.get("num_classes", largest + 1)
    if num_classes <= largest:
        raise InputError(f"num_classes is {num_classes}, but y has the label {largest}")

    graph = Data(x=x, y=y)
    graph.name = str(name or data.get("name") or "unnamed")
    graph.num_classes = int(num_classes)
    if "node_year" in data:
        graph.node_year = _node_integers(data.node_year, len(x), "node_year")
    if "provenance" in data:
        graph.provenance = dict(data.provenance)
    graph.node_hash = _node_hash(x, y)
    return _set_edges(graph, _edges(data.get("edge_index"), len(x)))


def with_edges(data: Data, edge_index: torch.Tensor) -> Data:
    """The same canonical nodes (tensors shared) with other edges, already canonical, and the content hash renewed."""
    graph = Data()
    for key in data.keys():
        if key not in ("edge_index", "content_hash"):
            graph[key] = data[key]
    return _set_edges(graph, edge_index)


def check_canonical(data: Data) -> None:
    """Raise InputError for a graph that did not come from :func:`canonical` or a loader."""
    if not isinstance(data, Data) or "content_hash" not in data:
        raise InputError("the graph is not in canonical form: load it with load_graph, or pass it through canonical()")


def undirected_edges(data: Data) -> torch.Tensor:
    """Every undirected edge once: int64 (2, m), i < j, sorted lexicographically."""
    check_canonical(data)
    return data.edge_index[:, data.edge_index[0] < data.edge_index[1]]


def adjacency(data: Data, dtype: type = np.float64) -> scipy.sparse.csr_matrix:
    """The adjacency matrix as scipy CSR, (n, n), a one for each stored direction, indices sorted."""
    check_canonical(data)
    rows, columns = data.edge_index.numpy()
    n, index = data.num_nodes, np.int32 if data.edge_index.shape[1] < 2**31 else np.int64
    # Edges are sorted, so the row pointers are cumulated degrees, and no sorting conversion from COO is needed.
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(index)
    matrix = scipy.sparse.csr_matrix((np.ones(len(columns), dtype), columns.astype(index), pointers), shape=(n, n))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


def node_features(data: Data) -> np.ndarray | scipy.sparse.csr_array:
    """The features as they are stored: a NumPy array or a scipy CSR array, (n, F); memory is shared with ``data.x``."""
    check_canonical(data)
    return _array(data.x)


def graph_statistics(data: Data) -> dict[str, float]:
    """The numbers by which data sets are known.

    Returns:
        ``nodes``, ``edges`` (undirected), ``features``, ``classes``, ``homophily`` (share of edges whose endpoints have
        the same label, in [0, 1]; NaN without edges) and ``isolated`` (nodes without edges).
    """
    edges = undirected_edges(data)
    same = data.y[edges[0]] == data.y[edges[1]]
    return {
        "nodes": data.num_nodes,
        "edges": edges.shape[1],
        "features": data.x.shape[1],
        "classes": data.num_classes,
        "homophily": float(same.double().mean()),
        "isolated": data.num_nodes - len(torch.unique(edges)),
    }


def _set_edges(graph: Data, edge_index: torch.Tensor) -> Data:
    graph.edge_index = edge_index
    digest = hashlib.sha256(bytes.fromhex(graph.node_hash))
    digest.update(_bytes(edge_index[:, edge_index[0] < edge_index[1]].numpy(), "<i8"))
    graph.content_hash = digest.hexdigest()
    return graph


def _features(x: object) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        raise InputError(f"x must be a torch tensor with a row of features for every node{_instead_of(x)}")
    if x.dim() != 2 or x.shape[0] == 0 or x.shape[1] == 0:
        raise InputError(f"x has shape {tuple(x.shape)}: one row per node and at least one node and one feature needed")
    if x.is_complex():
        raise InputError("x is complex: features must be real numbers")
    x = x.detach().cpu()
    if x.layout == torch.strided:
        x = x.to(torch.float32).contiguous()
        values = x
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            x = x.to(torch.float32).to_sparse_coo().coalesce().to_sparse_csr()
        values = x.values()
    if not bool(torch.isfinite(values).all()):
        bad = int((~torch.isfinite(values)).sum())
        raise InputError(f"x has {bad} entries that are NaN or infinite: repair or drop those features")
    return x


def _node_integers(values: object, n: int, what: str) -> torch.Tensor:
    if not isinstance(values, torch.Tensor):
        raise InputError(f"{what} must be a torch tensor of integers{_instead_of(values)}")
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise InputError(f"{what} has type {values.dtype}: integers needed")
    if tuple(values.shape) not in ((n,), (n, 1)):
        raise InputError(f"{what} has shape {tuple(values.shape)}: one integer for each of the {n} nodes needed")
    return values.detach().cpu().to(torch.int64).reshape(n)


def _edges(edge_index: object, n: int) -> torch.Tensor:
    if not isinstance(edge_index, torch.Tensor):
        raise InputError(f"edge_index must be a torch tensor of integers, of shape (2, E){_instead_of(edge_index)}")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise InputError(f"edge_index has shape {tuple(edge_index.shape)}: (2, E) needed")
    if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool:
        raise InputError(f"edge_index has type {edge_index.dtype}: integers needed")
    rows, columns = edge_index.detach().cpu().as_subclass(torch.Tensor).to(torch.int64).numpy()
    if len(rows):
        low, high = min(rows.min(), columns.min()), max(rows.max(), columns.max())
        if low < 0 or high >= n:
            raise InputError(f"edge_index names the node {low if low < 0 else high}, but nodes are 0 to {n - 1}")
    proper = rows != columns
    rows, columns = rows[proper], columns[proper]
    keys = np.concatenate([rows * n + columns, columns * n + rows])
    keys.sort()  # then unique by comparing neighbours: several times faster than np.unique on large graphs
    keys = keys[np.diff(keys, prepend=-1) > 0]
    return torch.from_numpy(np.stack([keys // n, keys % n]))


def _instead_of(value: object) -> str:
    """The end of a message: what the graph has in the place of a tensor, and how to mend it."""
    if value is None:
        return ", and the graph has none"
    hint = ": use torch.from_numpy" if isinstance(value, np.ndarray) else ""
    return f", not {type(value).__name__}{hint}"


def _node_hash(x: torch.Tensor, y: torch.Tensor) -> str:
    digest = hashlib.sha256(_bytes(np.array(x.shape), "<i8"))
    for rows in _dense_blocks(x):
        digest.update(_bytes(rows + np.float32(0), "<f4"))  # + 0 turns -0.0, which equals 0.0, into 0.0
    digest.update(_bytes(y.numpy(), "<i8"))
    return digest.hexdigest()


def _dense_blocks(x: torch.Tensor) -> Iterator[np.ndarray]:
    """The rows of x in dense blocks, so that dense and sparse forms of the same features hash alike."""
    matrix = _array(x)
    for start in range(0, matrix.shape[0], _HASH_ROWS):
        block = matrix[start : start + _HASH_ROWS]
        yield block.toarray() if scipy.sparse.issparse(block) else block


def _array(x: torch.Tensor) -> np.ndarray | scipy.sparse.csr_array:
    if x.layout == torch.strided:
        return x.numpy()
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_array(parts, shape=tuple(x.shape))


def _bytes(array: np.ndarray, dtype: str) -> memoryview:
    return np.ascontiguousarray(array, dtype=dtype).reshape(-1).view(np.uint8).data
