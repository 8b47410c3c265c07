"""The training objective as a function of one flat weight vector: gradients, Hessian and Gauss-Newton products.

    L(theta) = 1/m sum_{i in train} loss_i(theta; graph) + ridge/2 |theta|^2 + b^T theta          (mean scale)
    Hessian product       H v   = d/dtheta (grad L^T v)                                  one more backward through grad L
    Gauss-Newton product  N v   = 1/m sum_i J_i^T (diag p_i - p_i p_i^T) J_i v + ridge v,    J_i = d logits_i / d theta

Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 1994; Schraudolph, "Fast curvature
matrix-vector products for second-order gradient descent", Neural Computation 2002. N is positive semi-definite by
construction, and equals H where the logits are linear in theta (SGC).

Scales. Papers write influence with a mean loss (CEU, IDEA) or a sum of losses (CGU, GIF, and the published codes of CEU
and IDEA). With L_sum = m L, Hessians, gradients, residuals and the standard deviation of b are m times larger, and

    - H^-1 (1/m) Delta g   =   - (m H)^-1 Delta g,      Delta g = sum over touched nodes of (new - old gradient),

so the step is the same. A Hessian of the sum together with a 1/m in front makes it m times too small. Everything here is
on the mean scale; a ``scale`` or a residual from a paper on the sum scale is divided by m first.

Weight decay. Adam adds ``weight_decay * theta`` to the gradient, for all parameters, biases included: its stationary
points are those of L with ridge = weight_decay. Gradients are taken in evaluation mode, so for models with dropout L is
not what training saw.
"""

from collections.abc import Callable

import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.models import Backbone
from lethe_lib.unlearning.steps import StepLog

Product = Callable[[torch.Tensor], torch.Tensor]
"""A symmetric matrix, known by what it does to a vector."""


def flat_weights(model: Backbone, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A copy of all weights in one vector, (p,), in the order of ``named_parameters``."""
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    return weights.clone() if dtype is None else weights.to(dtype)


@torch.no_grad()
def set_weights(model: Backbone, theta: torch.Tensor) -> None:
    """Write a flat vector into the model, in the model's own dtype."""
    parameters = list(model.parameters())
    for parameter, part in zip(parameters, theta.split([p.numel() for p in parameters]), strict=True):
        parameter.copy_(part.view_as(parameter))


class Objective:
    """L on one graph (module docstring). Its dtype is that of the vectors given to it.

    Args:
        model: gives architecture and parameter shapes; its weights are not read and not changed.
        data: the graph.
        nodes: the m training nodes; no other label is read.
        ridge: on the mean scale.
        noise: b, (p,), the linear term of objective perturbation; None for none.
        log: where forwards and backwards are counted; a product counts as two backwards.
    """

    def __init__(
        self,
        model: Backbone,
        data: Data,
        nodes: torch.Tensor,
        ridge: float = 0.0,
        noise: torch.Tensor | None = None,
        log: StepLog | None = None,
    ):
        self.model = model.eval()
        self.data = data
        self.nodes = nodes
        self.ridge = ridge
        self.noise = noise
        self.log = StepLog() if log is None else log
        self.shapes = {name: parameter.shape for name, parameter in model.named_parameters()}

    def logits(self, theta: torch.Tensor) -> torch.Tensor:
        """Logits of every node, (n, C), differentiable in ``theta``."""
        self.log.forwards += 1
        parts = theta.split([shape.numel() for shape in self.shapes.values()])
        weights = {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}
        return functional_call(self.model, weights, (self.data,))

    def losses(self, theta: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of each of some nodes, (len(nodes),), in nats."""
        labels = self.data.y[nodes].to(theta.device)
        return cross_entropy(self.logits(theta)[nodes.to(theta.device)], labels, reduction="none")

    def value(self, theta: torch.Tensor) -> torch.Tensor:
        """L, a scalar."""
        value = self.losses(theta, self.nodes).mean() + self.ridge / 2 * theta.square().sum()
        return value if self.noise is None else value + self.noise @ theta

    def gradient(self, theta: torch.Tensor) -> torch.Tensor:
        """grad L, (p,). Its norm is 0 exactly at a stationary point."""
        theta = theta.detach().requires_grad_()
        self.log.backwards += 1
        return torch.autograd.grad(self.value(theta), theta)[0]

    def summed_gradient(self, theta: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Gradient of the SUM of some nodes' losses, (p,), without ridge and noise."""
        theta = theta.detach().requires_grad_()
        self.log.backwards += 1
        return torch.autograd.grad(self.losses(theta, nodes).sum(), theta)[0]

    def hessian(self, theta: torch.Tensor) -> Product:
        """v -> H v at ``theta``. Indefinite where the model is not convex."""
        theta = theta.detach().requires_grad_()
        self.log.backwards += 1
        gradient = torch.autograd.grad(self.value(theta), theta, create_graph=True)[0]

        def product(v: torch.Tensor) -> torch.Tensor:
            self.log.backwards += 2
            return torch.autograd.grad(gradient, theta, v, retain_graph=True)[0]

        return product

    def gauss_newton(self, theta: torch.Tensor) -> Product:
        """v -> N v at ``theta``, positive semi-definite."""
        theta = theta.detach().requires_grad_()
        self.log.backwards += 1
        logits = self.logits(theta)[self.nodes.to(theta.device)]
        p = logits.detach().softmax(dim=1)
        # J^T u is linear in u, and its derivative in u is J: two reverse passes give J v for every backbone.
        u = torch.zeros_like(logits, requires_grad=True)
        pulled_back = torch.autograd.grad(logits, theta, u, create_graph=True)[0]

        def product(v: torch.Tensor) -> torch.Tensor:
            self.log.backwards += 2
            pushed = torch.autograd.grad(pulled_back, u, v, retain_graph=True)[0]
            weighted = p * (pushed - (p * pushed).sum(dim=1, keepdim=True)) / len(self.nodes)
            return torch.autograd.grad(logits, theta, weighted, retain_graph=True)[0] + self.ridge * v

        return product
