"""One-vs-rest logistic regression with a linear noise term: the convex head of the certified methods.

    L_b(W; Z) = sum_k [ sum_i log(1 + exp(-y_ik w_k . z_i)) + ridge m / 2 |w_k|^2 + b_k . w_k ],   y_ik = 1 or -1
    gradient  = -Z^T (Y o s(-Y o Z W)) + ridge m W + B                    s: the sigmoid;  i runs over m training nodes
    H_k       =  Z^T diag(s (1 - s)) Z + ridge m I,  s = s(Z w_k): no class sees another's weights

All of it is on the scale of the summed loss: Hessian, gradient, residual and noise are m times those of the mean.

One Newton step on new rows Z' cancels the change of the gradient up to the third derivative of the loss. With D the
step of one class and g the largest third derivative, the gradient that is left is

    |sum_i (l''(somewhere) - l''(w)) (z_i . D) z_i|  <=  g max_i |z_i| |Z'|_2 |D| |Z' D|,

the data-dependent bound of Chien, Pan, Milenkovic, "Efficient model updates for approximate unlearning of
graph-structured data", ICLR 2023, after Guo et al., ICML 2020. Since |z . D| <= |z| |D| is given away for every row,
:func:`pointwise_bound` is always smaller: g / 2 |Z'|_2 | (Z' D) o (Z' D) |_2.
"""

import numpy as np
import scipy.sparse.linalg
import torch

from lethe_lib.errors import TrainingDiverged
from lethe_lib.unlearning.curvature import Product
from lethe_lib.unlearning.solvers import conjugate_gradient

LARGEST_THIRD_DERIVATIVE = 1.0 / (6.0 * 3.0**0.5)
"""Of log(1 + exp(-t)), at s = (3 +- sqrt 3) / 6: 0.0962. Published code uses 1/4, the bound of the second one."""

NORM_MARGIN = 1e-3
"""An iterative norm comes from below. Lanczos stops far inside this relative margin, which is added to it."""


def signs(labels: torch.Tensor, classes: int) -> torch.Tensor:
    """Y: float64, (m, classes), 1 at a node's own class and -1 elsewhere."""
    return 2.0 * torch.nn.functional.one_hot(labels, classes).double() - 1.0


def row_gradient(z: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Sum over some rows of the gradient of the loss, without ridge and noise.

    Args:
        z: (r, F) rows. y: (r, C) signs. w: (F, C) weights.

    Returns:
        (F, C).
    """
    return -z.T @ (y * torch.sigmoid(-y * (z @ w)))


def gradient(z: torch.Tensor, y: torch.Tensor, w: torch.Tensor, ridge: float, noise: torch.Tensor) -> torch.Tensor:
    """Gradient of L_b, (F, C); its norm is the residual that a certificate is about.

    Args:
        z: (m, F) rows of the training nodes. y: (m, C) signs. w: (F, C) weights.
        ridge: of the mean loss. noise: B, (F, C).
    """
    return row_gradient(z, y, w) + ridge * len(z) * w + noise


def hessian(z: torch.Tensor, w: torch.Tensor, ridge: float) -> Product:
    """V -> H V for flat vectors of F * C numbers, all classes at once; positive definite for ridge > 0."""
    s = torch.sigmoid(z @ w)
    curvature = s * (1.0 - s)

    def product(v: torch.Tensor) -> torch.Tensor:
        v = v.view_as(w)
        return (z.T @ (curvature * (z @ v)) + ridge * len(z) * v).flatten()

    return product


def newton_step(product: Product, change: torch.Tensor, tolerance: float) -> tuple[torch.Tensor, float, int]:
    """H^-1 change.

    Args:
        product: H. change: (F, C), the gradient that has to be cancelled. tolerance: relative residual of the solver.

    Returns:
        The step, (F, C); the norm of what the solver left, which belongs into the bound; the number of products.
    """
    v = change.flatten()
    solution = conjugate_gradient(product, v, tolerance=tolerance, iterations=1000)
    return solution.x.view_as(change), float((product(solution.x) - v).norm()), solution.iterations


def fit(
    z: torch.Tensor, y: torch.Tensor, ridge: float, noise: torch.Tensor, tolerance: float = 1e-10, most: int = 100
) -> tuple[torch.Tensor, float]:
    """Minimise L_b from W = 0 by Newton steps, each halved until the gradient is shorter.

    Args:
        z, y, ridge, noise: see :func:`gradient`.
        tolerance: stop when the gradient is at most this share of the one at W = 0.
        most: largest number of Newton steps.

    Returns:
        W, (F, C), and the norm of the gradient there.

    Raises:
        TrainingDiverged: no step shortens the gradient while it is still large.
    """
    w = torch.zeros_like(noise)
    left = gradient(z, y, w, ridge, noise)
    goal = tolerance * float(left.norm())
    for _ in range(most):
        size = float(left.norm())
        if size <= goal:
            break
        step = conjugate_gradient(hessian(z, w, ridge), left.flatten(), tolerance=1e-4, iterations=1000).x.view_as(w)
        for halving in range(30):
            moved = w - step / 2**halving
            shorter = gradient(z, y, moved, ridge, noise)
            if float(shorter.norm()) < size:
                break
        else:
            if size <= 1e3 * goal:  # rounding ends the descent here
                break
            raise TrainingDiverged(f"the logistic head stopped at a gradient of {size:.1e}, far from 0")
        w, left = moved, shorter
    return w, float(left.norm())


def spectral_norm(z: torch.Tensor) -> float:
    """|Z|_2 with ``NORM_MARGIN`` on top, so that it is not below the true one. Deterministic."""
    if min(z.shape) < 3 or not bool(z.any()):
        return float(torch.linalg.matrix_norm(z, 2))
    matrix = z.numpy()
    square = scipy.sparse.linalg.LinearOperator(
        (matrix.shape[1],) * 2, matvec=lambda v: matrix.T @ (matrix @ v), dtype=np.float64
    )
    start = np.abs(matrix).sum(axis=0) + 1.0
    largest = scipy.sparse.linalg.eigsh(square, k=1, v0=start, tol=1e-6, return_eigenvectors=False)[0]
    return float(np.sqrt(largest)) * (1.0 + NORM_MARGIN)


def step_bound(
    z: torch.Tensor,
    step: torch.Tensor,
    norm: float,
    third: float = LARGEST_THIRD_DERIVATIVE,
    longest: float | None = None,
) -> torch.Tensor:
    """The published bound of what one Newton step leaves of the gradient, for every class, (C,).

    Args:
        z: (m, F) new rows. step: (F, C). norm: at least |Z|_2. third: g of the module docstring.
        longest: what is taken for the longest row's norm; None measures it. The paper presumes 1.
    """
    longest = z.norm(dim=1).max() if longest is None else longest
    return third * longest * norm * step.norm(dim=0) * (z @ step).norm(dim=0)


def pointwise_bound(
    z: torch.Tensor, step: torch.Tensor, norm: float, third: float = LARGEST_THIRD_DERIVATIVE
) -> torch.Tensor:
    """A smaller bound of the same, (C,): the rows' own products with the step instead of the largest possible ones."""
    return third / 2.0 * norm * (z @ step).square().norm(dim=0)
