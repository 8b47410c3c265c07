"""What certified removal costs: lazy push against propagation, CG against a dense solve, blocks against single edges."""

import statistics
import time

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.data import load_graph, split_nodes
from lethe_lib.models import build, scipy_propagation
from lethe_lib.models.backbone import TrainingRun
from lethe_lib.structure import forget_set, remove_edges
from lethe_lib.unlearning.certified_head import prepared_features
from lethe_lib.unlearning.cgu import CguSettings, open_session
from lethe_lib.unlearning.lazy_push import LazyPush
from lethe_lib.unlearning.ovr_logistic import hessian, newton_step, row_gradient

EDGES = 200
"""Removed one by one with push."""

SAMPLE = 5
"""Of which so many with full propagation."""


def bench(data: Data | None = None, threshold: float = 1e-7) -> dict[str, float]:
    """Measure, check and print.

    Push: random edges of ``arxiv-like`` are removed one by one, two hops, features scaled to norm 1; full propagation
    on scipy's sparse product is timed on the graph without the first few of them, matrix included. Both start from the
    graph before the edge, and the graph's own bookkeeping is in both. Solver and blocks: CGU on ``photo-like``.

    Args:
        data: another graph for the push.
        threshold: of the push.

    Returns:
        ``push`` and ``propagation`` (seconds an edge, medians), ``push_ratio``, ``error`` (largest absolute difference
        of a smoothed feature after all edges), ``bound`` (of the sum of those differences, largest column);
        ``cg``, ``dense`` (seconds of one step) and ``cg_ratio``; ``block`` and ``single`` (seconds an edge),
        ``block_ratio``.
    """
    found = _push(load_graph("arxiv-like") if data is None else data, threshold)
    found |= _head(load_graph("photo-like") if data is None else data)
    return found


def _push(data: Data, threshold: float) -> dict[str, float]:
    features = prepared_features(data, standardise=False, normalise=True)[0]
    edges = forget_set(data, "random", 0.05)
    edges = edges[:, torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(0))[:EDGES]]
    lazy = LazyPush(data, features, 2, threshold)
    lazy.remove(edges[:, :1])  # compiles
    push = []
    for column in range(1, edges.shape[1]):
        start = time.perf_counter()
        lazy.remove(edges[:, column : column + 1])
        push.append(time.perf_counter() - start)

    full = []
    for last in range(1, SAMPLE + 1):
        start = time.perf_counter()
        graph = remove_edges(data, edges[:, :last])
        matrix = scipy_propagation(graph, "sym")
        matrix @ (matrix @ features)
        full.append(time.perf_counter() - start)

    matrix = scipy_propagation(remove_edges(data, edges), "sym")
    error = float(np.abs(matrix @ (matrix @ features) - lazy.z).max())
    found = {
        "push": statistics.median(push),
        "propagation": statistics.median(full),
        "push_ratio": statistics.median(full) / statistics.median(push),
        "error": error,
        "bound": float(lazy.residue_sum.max()),
    }
    print(
        f"Smoothed features of {data.name} after one removed edge ({torch.get_num_threads()} thread(s))\n"
        f"  lazy push, threshold {threshold:.0e}     {1e3 * found['push']:10.2f} ms an edge (mean {1e3 * np.mean(push):.2f})\n"
        f"  full propagation              {1e3 * found['propagation']:10.1f} ms an edge\n"
        f"  ratio                         {found['push_ratio']:10.0f}   (target 20)\n"
        f"  after {edges.shape[1]} edges: largest error {error:.1e}, features have norm at most 1; column sums of errors "
        f"at most {found['bound']:.1e}"
    )
    return found


def _head(data: Data) -> dict[str, float]:
    model = build(data, "sgc")
    model.training_run = TrainingRun("sgc", 0, "corrected", {}, split_nodes(data, 0))
    edges = forget_set(data, "random", 0.01)
    settings = CguSettings(ridge=1e-2)
    head = open_session(model, data, settings, 0)
    head.rows.remove(edges)
    z = torch.from_numpy(head.rows.rows[head.train.numpy()])
    change = row_gradient(head.z, head.y, head.weights) - row_gradient(z, head.y, head.weights)
    start = time.perf_counter()
    step, left, products = newton_step(hessian(z, head.weights, settings.ridge), change, 1e-8)
    cg = time.perf_counter() - start
    start = time.perf_counter()
    s = torch.sigmoid(z @ head.weights)
    ridge = settings.ridge * len(z) * torch.eye(z.shape[1], dtype=z.dtype)
    exact = torch.stack(
        [torch.linalg.solve(z.T @ (c[:, None] * z) + ridge, v) for c, v in zip((s * (1 - s)).T, change.T, strict=True)],
        dim=1,
    )
    dense = time.perf_counter() - start
    difference = float((step - exact).norm() / exact.norm())

    single, whole = open_session(model, data, settings, 0), open_session(model, data, settings, 0)
    start = time.perf_counter()
    for column in range(SAMPLE):
        single.remove(edges[:, column : column + 1])
    per_edge = (time.perf_counter() - start) / SAMPLE
    start = time.perf_counter()
    whole.remove(edges)
    block = (time.perf_counter() - start) / edges.shape[1]
    found = {
        "cg": cg,
        "dense": dense,
        "cg_ratio": dense / cg,
        "cg_difference": difference,
        "block": block,
        "single": per_edge,
        "block_ratio": per_edge / block,
    }
    print(
        f"CGU's step on {data.name}: {len(z):,} training nodes, {z.shape[1]} features, {change.shape[1]} classes\n"
        f"  dense Hessians and solves     {dense:10.2f} s\n"
        f"  conjugate gradient            {cg:10.2f} s ({products} products; solutions differ by {difference:.1e})\n"
        f"  ratio                         {found['cg_ratio']:10.1f}\n"
        f"  {edges.shape[1]} edges in one block      {1e3 * block:10.2f} ms an edge, bound {whole.log[-1]['step_bound']:.1e}\n"
        f"  edge by edge                  {1e3 * per_edge:10.1f} ms an edge, bound of {SAMPLE} edges "
        f"{sum(row['step_bound'] for row in single.log):.1e}\n"
        f"  ratio                         {found['block_ratio']:10.0f}"
    )
    return found
