"""Negative preference optimisation: push the forget samples away, less and less the further they are.

    p_o(v) = softmax(f_theta(G)_v)[y_v], fixed;   theta' = theta
    repeat S times:
        L_f = 2/beta mean_{v in D_f} log(1 + (p_theta'(v) / p_o(v))^beta),  p_theta'(v) on G too
        L_r = mean_{v in train} loss(f_theta'(G_r)_v, y_v)
        theta' <- theta' - step of grad (w_retain L_r + w_forget L_f)

Zhang, Lin, Bai, Mei, "Negative preference optimization: from catastrophic collapse to effective unlearning", 2024,
arXiv:2404.05868, made for language models. The gradient of L_f is NegGrad's with every sample weighted by
2 r^beta / (1 + r^beta), r = p_theta'(v) / p_o(v): 1 at the start, and towards 0 as the sample is forgotten. So the first
step is NegGrad's, beta -> 0 is NegGrad throughout, and a larger beta lets go sooner. The ascent slows down by itself,
but slow ascent still wrecks a model in time, hence the retain term; ``w_retain=0`` leaves it out.

Differences from the paper: edges in place of documents (the old views of the training endpoints are the forget samples),
full-batch steps, weight decay as the original's. The reference p_o is taken without dropout, the student has dropout.
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import log_softmax, softplus

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.unlearning.request import EDGE_REPLACE, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog


@dataclass(frozen=True)
class NpoSettings:
    """Settings.

    Attributes:
        steps: full-batch steps. optimiser: ``adam`` or ``sgd``. learning_rate: of the optimiser.
        beta: inverse temperature, positive; how soon a sample that is being forgotten is let go.
        w_retain, w_forget: weights of the two losses; 0 leaves out the term with its forward.
    """

    steps: int = 10
    optimiser: str = "adam"
    learning_rate: float = 1e-3
    beta: float = 1.0
    w_retain: float = 1.0
    w_forget: float = 0.3

    def __post_init__(self):
        if not self.beta > 0:
            raise InputError(f"beta={self.beta} must be positive; its limit 0 is the method neg_grad")


def prefer_not(model: Backbone, request: EdgeRequest, settings: NpoSettings, seed: int) -> tuple[Backbone, StepLog]:
    """Run the steps on ``model`` in place.

    Cost: one forward for the reference, then 2S forwards and 2S backwards. Without forget samples the retain term alone
    remains. The log's rows hold both losses and the mean weight of the forget samples, in [0, 2].
    """
    decay = model.training_run.settings["weight_decay"]
    engine = StepEngine(model, settings.optimiser, settings.learning_rate, decay, seed)
    forget, weights = request.forget_nodes.to(engine.device), request.forget_weights.to(engine.device)
    labels = request.data.y.to(engine.device)[forget]
    forgetting = settings.w_forget != 0 and len(forget) > 0
    reference = _log_likelihood(engine.observe(model, request.forget_graph), forget, labels) if forgetting else None
    for _ in range(settings.steps):
        terms, logged = [], {}
        if settings.w_retain:
            graph = request.retain_graph
            retain_loss = engine.cross_entropy(engine.forward(graph), graph, request.retain_nodes)
            terms.append(settings.w_retain * retain_loss)
            logged["retain_loss"] = float(retain_loss.detach())
        if forgetting:
            student = _log_likelihood(engine.forward(request.forget_graph), forget, labels)
            losses = preference_loss(student, reference, settings.beta)
            terms.append(settings.w_forget * (losses * weights).sum() / weights.sum())
            logged["forget_loss"] = float(-(student.detach() * weights).sum() / weights.sum())
            logged["mean_weight"] = float(gradient_weight(student.detach(), reference, settings.beta).mean())
        if not terms:
            break
        engine.step(sum(terms), backwards=len(terms), **logged)
    return model, engine.finish()


def preference_loss(student: torch.Tensor, reference: torch.Tensor, beta: float) -> torch.Tensor:
    """2/beta log(1 + (p / p_o)^beta) of every sample, at least 0.

    Args:
        student, reference: (m,) log-likelihoods log p and log p_o of the true labels.
        beta: inverse temperature, positive.
    """
    return 2.0 / beta * softplus(beta * (student - reference))


def gradient_weight(student: torch.Tensor, reference: torch.Tensor, beta: float) -> torch.Tensor:
    """d ``preference_loss`` / d log p = 2 r^beta / (1 + r^beta), in [0, 2]: 1 where p = p_o, towards 0 as p falls."""
    return 2.0 * torch.sigmoid(beta * (student - reference))


def _log_likelihood(logits: torch.Tensor, nodes: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return log_softmax(logits[nodes], dim=1).gather(1, labels[:, None]).squeeze(1)


NPO = Unlearner(
    prefer_not,
    # Chosen by the published search of the study "tuning".
    {"corrected": NpoSettings(steps=20, learning_rate=3e-4, beta=1.0, w_forget=1.0)},
    "addition",
    "Zhang, Lin, Bai, Mei, 2024",
    mapping={"corrected": EDGE_REPLACE},
    uses_forget_samples=True,
)
