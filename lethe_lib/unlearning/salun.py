"""SalUn: random labels for the forget samples, on the weights that the forget loss depends on most.

    mask = the ``share`` of weights with the largest |grad sum_{v in D_f} loss(f_theta(G)_v, y_v)|, without dropout
    theta' = theta
    repeat E epochs: draw labels y'_v != y_v for v in D_f
        L = (sum_{v in D_f} loss(f_theta'(G)_v, y'_v) + a sum_{v in train} loss(f_theta'(G_r)_v, y_v)) / (|D_f| + |train|)
        theta' <- theta' - step of grad L;   theta' <- theta outside the mask

Fan, Liu, Zhang, Wong, Wei, Liu, "SalUn: empowering machine unlearning via gradient-based weight saliency in both image
classification and generation", ICLR 2024. Weights outside the mask are put back after every step: masking gradients
alone would let weight decay and momentum move them. Weight decay as the original's.

An endpoint is taught y' in its old view and y in its new one. That is a wrong-label attack on the endpoints, so it can
forget too much, which shows as well. ``alternate=True`` takes two steps an epoch, one on each mean loss; the means give
few forget nodes as much weight as all retained ones.

The entry ``salun_edge_diff`` is our variant for edges: the mask comes from grad sum [loss_v(G) - loss_v(G_r)], the
influence of the edges.

``published``: one epoch of two Adam steps, every node near the request, then all others, both on G.
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.seeding import torch_generator
from lethe_lib.unlearning.importance import node_order
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog


@dataclass(frozen=True)
class SalUnSettings:
    """Settings.

    Attributes:
        epochs: rounds of new labels. optimiser: ``adam`` or ``sgd``. learning_rate: of the optimiser.
        momentum: of ``sgd``.
        share: share of the weights that may move, in [0, 1].
        retain_weight: a, the weight of a retain node beside a forget node.
        exclude_true: never draw the true label.
        alternate: two steps an epoch, first forget then retain, instead of one on their union.
    """

    epochs: int = 10
    optimiser: str = "adam"
    learning_rate: float = 1e-4
    momentum: float = 0.0
    share: float = 0.5
    retain_weight: float = 1.0
    exclude_true: bool = True
    alternate: bool = False

    def __post_init__(self):
        if not 0.0 <= self.share <= 1.0:
            raise InputError(f"share={self.share} must lie in [0, 1]")


def relabel(model: Backbone, request: EdgeRequest, settings: SalUnSettings, seed: int) -> tuple[Backbone, StepLog]:
    """Run the epochs on ``model`` in place.

    Cost: one forward and one backward for the mask, then 2E forwards and 2E backwards. Without forget samples the retain
    term runs on all weights. The log's rows hold the loss on the drawn labels, the forget loss and the retain loss.
    """
    return _relabel(model, request, settings, seed, edge_difference=False)


def relabel_by_edges(
    model: Backbone, request: EdgeRequest, settings: SalUnSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """The variant for edges: the mask from the difference of the two views' losses, twice the cost for it."""
    return _relabel(model, request, settings, seed, edge_difference=True)


def _relabel(
    model: Backbone, request: EdgeRequest, settings: SalUnSettings, seed: int, edge_difference: bool
) -> tuple[Backbone, StepLog]:
    decay = model.training_run.settings["weight_decay"]
    engine = StepEngine(model, settings.optimiser, settings.learning_rate, decay, seed, momentum=settings.momentum)
    forget_graph, retain_graph = request.forget_graph, request.retain_graph
    forget, retain = request.forget_nodes, request.retain_nodes
    if len(forget) == 0:
        for _ in range(settings.epochs):
            loss = engine.cross_entropy(engine.forward(retain_graph), retain_graph, retain)
            engine.step(loss, retain_loss=float(loss.detach()))
        return model, engine.finish()
    mask, ranks = _saliency(engine, request, settings.share, edge_difference)
    frozen = [(p, ~kept, p.detach().clone()) for p, kept in zip(model.parameters(), mask, strict=True)]
    generator = torch_generator(seed, "unlearning", "labels")
    place, truth = forget.to(engine.device), request.data.y[forget]
    natural = len(forget) + len(retain)

    def forget_loss() -> tuple[torch.Tensor, dict[str, float]]:
        """Loss on wrong labels to descend; for the log also that on the true ones, the forget loss."""
        labels = random_labels(truth, ranks, int(request.data.num_classes), settings.exclude_true, generator)
        logits = engine.forward(forget_graph)[place]
        wrong = cross_entropy(logits, labels.to(engine.device))
        true = cross_entropy(logits.detach(), truth.to(engine.device))
        return wrong, {"relabelled_loss": float(wrong.detach()), "forget_loss": float(true)}

    def retain_loss() -> torch.Tensor:
        return engine.cross_entropy(engine.forward(retain_graph), retain_graph, retain)

    def step(loss: torch.Tensor, backwards: int, **logged: float) -> None:
        engine.step(loss, backwards, **logged)
        with torch.no_grad():
            for parameter, still, original in frozen:
                parameter.copy_(torch.where(still, original, parameter))

    for _ in range(settings.epochs):
        wrong, logged = forget_loss()
        if settings.alternate:
            step(wrong, 1, **logged)
            right = retain_loss()
            step(settings.retain_weight * right, 1, retain_loss=float(right.detach()))
        else:
            right = retain_loss()
            union = (len(forget) * wrong + settings.retain_weight * len(retain) * right) / natural
            step(union, 2, retain_loss=float(right.detach()), **logged)
    return model, engine.finish()


def _saliency(
    engine: StepEngine, request: EdgeRequest, share: float, edge_difference: bool
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The mask at theta, and the ranks of the forget nodes among themselves in the order of ``node_order``."""
    nodes, parameters = request.forget_nodes, list(engine.model.parameters())
    place = nodes.to(engine.device)

    def total(graph: Data) -> tuple[torch.Tensor, torch.Tensor]:
        logits = engine.forward(graph, dropout=False)
        return cross_entropy(logits[place], graph.y.to(engine.device)[place], reduction="sum"), logits

    loss, logits = total(request.forget_graph)
    engine.log.backwards += 1
    if edge_difference:
        loss = loss - total(request.retained)[0]
        engine.log.backwards += 1
    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
    ranks = torch.argsort(torch.argsort(node_order(request.forget_graph, logits)[nodes]))
    return saliency_mask(gradients, share), ranks


def saliency_mask(gradients: tuple[torch.Tensor, ...], share: float) -> list[torch.Tensor]:
    """The floor(share n) weights with the largest absolute gradient of all, ties to the earlier weight.

    Args:
        gradients: one tensor per parameter. share: in [0, 1].

    Returns:
        One boolean tensor per parameter; True where the weight may move.
    """
    sizes = torch.cat([g.detach().abs().flatten() for g in gradients])
    kept = torch.zeros(len(sizes), dtype=torch.bool, device=sizes.device)
    kept[torch.argsort(sizes, descending=True, stable=True)[: int(share * len(sizes))]] = True
    return [part.view_as(g) for part, g in zip(kept.split([g.numel() for g in gradients]), gradients, strict=True)]


def random_labels(
    truth: torch.Tensor, ranks: torch.Tensor, classes: int, exclude_true: bool, generator: torch.Generator
) -> torch.Tensor:
    """Uniform labels, (m,), over all classes or over all but the true one; the r-th draw goes to the node of rank r."""
    if not exclude_true:
        return torch.randint(0, classes, truth.shape, generator=generator)[ranks]
    if classes < 2:
        raise InputError("random labels other than the true one need at least two classes: use exclude_true=False")
    shift = 1 + torch.randint(0, classes - 1, truth.shape, generator=generator)[ranks]
    return (truth + shift) % classes


SALUN = Unlearner(
    relabel,
    {
        # Chosen by the published search of the study "tuning".
        "corrected": SalUnSettings(learning_rate=3e-4, share=0.2, retain_weight=1.0),
        "published": SalUnSettings(epochs=1, learning_rate=1e-3, alternate=True),
    },
    "generic",
    "Fan, Liu, Zhang, Wong, Wei, Liu, ICLR 2024",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
    uses_forget_samples=True,
)

SALUN_EDGE_DIFF = Unlearner(
    relabel_by_edges,
    {"corrected": SalUnSettings(learning_rate=3e-4, share=0.2, retain_weight=1.0)},  # chosen by the search as well
    "addition",
    "ours, on SalUn",
    mapping={"corrected": EDGE_REPLACE},
    uses_forget_samples=True,
)
