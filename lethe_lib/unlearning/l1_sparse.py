"""l1-sparse unlearning: fine-tuning with a penalty on the size of the weights that fades out.

    theta' = theta
    for t = 0 ... S - 1:
        gamma_t = gamma (1 - t / (S - S_0)) while t < S - S_0, then 0
        theta' <- theta' - step of grad [mean_{v in train} loss(f_theta'(G_r)_v, y_v) + gamma_t |theta'|_1]

Jia, Liu, Ram, Yao, Liu, Liu, Sharma, Liu, "Model sparsity can simplify machine unlearning", NeurIPS 2023. Fewer weights
in use leave less room for what was learned from the removed data, so fine-tuning reaches further; the last S_0 free
steps mend what the penalty broke. As in fine-tuning, the request enters only through G_r.

The penalty's subgradient (0 at 0) makes small weights swing around zero by about one step instead of resting on it. So a
weight counts as zero when it is smaller than ``ZERO``; the share of such weights is logged before and after.
Differences from the paper: full-batch steps in place of epochs, weight decay as the original's.
"""

from dataclasses import dataclass

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.unlearning.request import EDGE_REPLACE, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog

ZERO = 1e-3
"""A weight smaller than this in size counts as zero."""


@dataclass(frozen=True)
class L1SparseSettings:
    """Settings.

    Attributes:
        steps: full-batch steps S. free_steps: S_0, the last steps, without penalty; at most ``steps``.
        optimiser: ``adam`` or ``sgd``. learning_rate: of the optimiser.
        gamma: weight of |theta|_1 at the first step; 0 is fine-tuning.
    """

    steps: int = 20
    free_steps: int = 5
    optimiser: str = "adam"
    learning_rate: float = 1e-3
    gamma: float = 1e-4

    def __post_init__(self):
        if not 0 <= self.free_steps <= self.steps:
            raise InputError(f"free_steps={self.free_steps} must lie between 0 and steps={self.steps}")


def fine_tune_sparsely(
    model: Backbone, request: EdgeRequest, settings: L1SparseSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Run the steps on ``model`` in place; cost S forwards and S backwards.

    The log's rows hold gamma_t, the retain loss and |theta|_1 before the step; a last row holds the share of weights
    that count as zero, before and after the run.
    """
    decay = model.training_run.settings["weight_decay"]
    engine = StepEngine(model, settings.optimiser, settings.learning_rate, decay, seed)
    graph, nodes = request.retain_graph, request.retain_nodes
    before = zero_share(model)
    for number in range(settings.steps):
        gamma = penalty_weight(number, settings)
        loss = retain_loss = engine.cross_entropy(engine.forward(graph), graph, nodes)
        size = sum(parameter.abs().sum() for parameter in model.parameters())
        if gamma > 0:
            loss = loss + gamma * size
        engine.step(loss, gamma=gamma, retain_loss=float(retain_loss.detach()), l1_norm=float(size.detach()))
    engine.log.rows.append({"zero_share_before": before, "zero_share_after": zero_share(model)})
    return model, engine.finish()


def penalty_weight(number: int, settings: L1SparseSettings) -> float:
    """gamma_t of step ``number``, counted from 0: falls linearly from gamma, 0 in the free steps.

    Example:
        >>> [round(penalty_weight(t, L1SparseSettings(steps=5, free_steps=1, gamma=1.0)), 2) for t in range(5)]
        [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    penalised = settings.steps - settings.free_steps
    return settings.gamma * (1.0 - number / penalised) if number < penalised else 0.0


def zero_share(model: Backbone) -> float:
    """Share of the weights that are smaller in size than ``ZERO``, in [0, 1]."""
    small = sum(int((parameter.detach().abs() < ZERO).sum()) for parameter in model.parameters())
    return small / sum(parameter.numel() for parameter in model.parameters())


L1_SPARSE = Unlearner(
    fine_tune_sparsely,
    # Chosen by the published search of the study "tuning".
    {"corrected": L1SparseSettings(steps=30, free_steps=10, learning_rate=3e-3, gamma=3e-4)},
    "addition",
    "Jia, Liu, Ram, Yao, Liu, Liu, Sharma, Liu, NeurIPS 2023",
    mapping={"corrected": EDGE_REPLACE},
)
