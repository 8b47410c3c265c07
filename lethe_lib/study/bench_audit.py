"""Time of the audit of all nodes of Cora: quadrature, one PyMC model for all nodes, and one PyMC model per node.

simulate counts of 2,708 nodes from the audit's model
once: import and compile (not timed)
quadrature: all nodes. One model: MODEL_NODES nodes. Loop: LOOP_NODES nodes, one model each, built and compiled anew
scale the two samplers to all nodes linearly, and compare their means and 90 % quantiles with those of the quadrature
"""

from time import process_time

import numpy as np
import pandas as pd

from lethe_lib.bmp import audit
from lethe_lib.bmp.audit_calibration import simulate

NODES, RUNS = 2708, 64  # nodes of Cora; runs with and runs without each node
MODEL_NODES, LOOP_NODES = 50, 3
SETTINGS = {"chains": 2, "tune": 500, "draws": 500}


def audit_speeds(nodes: int = NODES, model_nodes: int = MODEL_NODES, loop_nodes: int = LOOP_NODES) -> pd.DataFrame:
    """CPU seconds of the three ways, for all nodes, and how far the samplers are from the quadrature.

    Args:
        nodes: nodes to audit.
        model_nodes, loop_nodes: how many of them the samplers get; their times are scaled up linearly, which favours the one
            model, since its trajectories get longer with more nodes.

    Returns:
        One row a way: ``measured`` nodes, CPU ``seconds`` for all nodes, ``ratio`` to the quadrature, ``mean_error`` and
        ``quantile_error`` (largest over nodes and both parameters, of the mean and of the 5 % and 95 % points) and
        ``mean_z`` (root mean square error of the mean in Monte Carlo standard errors: about 1 when all is well).
    """
    counts = simulate(nodes, RUNS, RUNS, 0).counts
    audit(*counts[:2].T, 0.5, draws=0), audit(*counts[:1].T, 0.5, "pymc", chains=2, tune=5, draws=5)
    start = process_time()
    grid = audit(*counts.T, 0.5)
    rows = [{"way": "quadrature", "measured": nodes, "seconds": process_time() - start}]

    start = process_time()
    model = audit(*counts[:model_nodes].T, 0.5, "pymc", **SETTINGS)
    seconds = (process_time() - start) * nodes / model_nodes
    rows.append({"way": "one PyMC model", "measured": model_nodes, "seconds": seconds} | distance([model], grid))

    start = process_time()
    loop = [audit(*counts[[node]].T, 0.5, "pymc", **SETTINGS) for node in range(loop_nodes)]
    seconds = (process_time() - start) * nodes / loop_nodes
    rows.append({"way": "PyMC model per node", "measured": loop_nodes, "seconds": seconds} | distance(loop, grid))
    table = pd.DataFrame(rows)
    return table.assign(ratio=table["seconds"] / table["seconds"][0])


def distance(results, grid) -> dict[str, float]:
    """How far sampled posteriors of the first nodes are from those of the grid, whatever their status."""
    draws = np.concatenate([result.draws for result in results], axis=2)
    flat, nodes = draws.reshape(-1, *draws.shape[2:]), draws.shape[2]
    size = np.concatenate([result.convergence["ess"] for result in results])[:, None]
    error = flat.mean(0) - grid.mean("ratio")[:nodes]
    ends = [np.quantile(flat, q, axis=0) - grid.quantile(q, "ratio")[:nodes] for q in (0.05, 0.95)]
    return {
        "mean_error": np.abs(error).max(),
        "quantile_error": np.abs(ends).max(),
        "mean_z": np.sqrt(np.mean((error / (flat.std(0) / np.sqrt(size))) ** 2)),
    }


def bench() -> None:
    """Print the times, and the agreement beside them."""
    table = audit_speeds()
    print(
        f"audit of {NODES} nodes, {RUNS} runs with and without each; CPU seconds, samplers scaled up from fewer nodes"
    )
    print(table.to_string(index=False, float_format=lambda value: f"{value:,.3g}", na_rep=""))
    print(f"quadrature is {table['ratio'].iloc[-1]:,.0f}x as fast as the loop (target 1,000x)")


if __name__ == "__main__":
    bench()
