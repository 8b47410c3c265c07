"""GIF: graph influence function, one influence step by LiSSA.

    T       = training nodes whose output the removal can change
    v       = 1/m sum_{i in T} grad loss_i(theta; G_r) - grad loss_i(theta; G)
    h       = LiSSA on the curvature of the mean training loss:  h_{t+1} = v + (1 - d) h_t - H h_t / s
    theta'  = theta - h_T / s

Wu, Yang, Qian, Sui, Wang, He, "GIF: a general graph unlearning strategy via influence function", WWW 2023.

Differences from the paper:

1. Curvature on G_r and by Gauss and Newton; the paper takes the Hessian on G, which off an optimum is indefinite, and
   LiSSA diverges along every negative eigenvalue below - d s. ``hessian="old", curvature="hessian"`` is the paper's.
2. s is the largest curvature, measured. A scale set by hand is either too small, and LiSSA diverges, or too large, and
   the step is (T + 1) / s times the gradient, next to nothing: see ``solvers``. Both are reported.
3. The step length is safeguarded where the model is not convex (``influence``).
4. The ridge of training, Adam's weight decay, belongs to the curvature.
"""

from dataclasses import dataclass

from lethe_lib.models import Backbone
from lethe_lib.unlearning.curvature import Objective, flat_weights, set_weights
from lethe_lib.unlearning.influence import (
    InfluenceSettings,
    add_note,
    chunks,
    influence_step,
    ridge_of,
    touched_training_nodes,
    working_dtype,
)
from lethe_lib.unlearning.request import EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepLog


@dataclass(frozen=True)
class GifSettings(InfluenceSettings):
    """The settings of the shared step, by LiSSA on the Gauss-Newton matrix.

    Attributes:
        chunk_size: edges removed in one step, with everything evaluated anew in between; None removes all at once.
    """

    curvature: str = "gauss_newton"
    solver: str = "lissa"
    chunk_size: int | None = None


def graph_influence(
    model: Backbone, request: EdgeRequest, settings: GifSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Take the step in place; cost about 10 forwards and 2 backwards a product, 120 products by default."""
    log, theta = StepLog(), flat_weights(model, working_dtype(model))
    for before, after, pairs in chunks(request, settings.chunk_size, seed):
        touched = touched_training_nodes(model, before, pairs)
        old, new = (Objective(model, graph, request.split.train, ridge_of(model), log=log) for graph in (before, after))
        step = influence_step(old, new, theta, touched, settings)
        theta = step.theta
        log.rows.append(step.row)
        add_note(log, step.note)
    set_weights(model, theta)
    return model, log


GIF = Unlearner(
    graph_influence,
    {"corrected": GifSettings()},
    "addition",
    "Wu, Yang, Qian, Sui, Wang, He, WWW 2023",
)
