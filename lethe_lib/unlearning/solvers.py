"""Linear systems with a matrix that is known by its products only: conjugate gradient and LiSSA; Newton's method on top.

    CG:     Krylov iterate for (H + eta I) x = v from x_0 = 0; stops where p^T (H + eta I) p <= 0 and says so
    LiSSA:  h_0 = v,  h_{t+1} = v + (1 - d) h_t - H h_t / s,  result x = h_T / s

Hestenes and Stiefel 1952; Agarwal, Bullins, Hazan, "Second-order stochastic optimization for machine learning in linear
time", JMLR 2017, as used by Koh and Liang, ICML 2017.

What LiSSA returns is known in closed form: along an eigenvector of H with eigenvalue mu,

    x = f(mu) v,    f(mu) = (1 - rho^{T+1}) / (mu + d s),    rho = 1 - d - mu / s.

So its limit is (H + d s I)^-1 v, with an effective damping of d times s; it converges iff |rho| < 1 for every mu; and
along flat directions, mu << s / T, it multiplies v by (T + 1) / s whatever H is. The residual of h_t / s is h_{t+1} -
h_t, along every eigenvector rho^{t+1} v: a residual above |v| proves that some |rho| > 1.
"""

from dataclasses import dataclass

import torch

from lethe_lib.unlearning.curvature import Objective, Product


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes:
        x: (p,).
        residual: |(H + damping I) x - v| / |v|, at least 0; 0 for v = 0. ``damping`` is eta or d s.
        iterations: products spent on x.
        negative_curvature: CG met a direction along which the matrix is not positive; x is the iterate before it.
        diverged: LiSSA's residual passed |v| or stopped being finite; x is of no use.
    """

    x: torch.Tensor
    residual: float
    iterations: int
    negative_curvature: bool = False
    diverged: bool = False


def conjugate_gradient(
    product: Product, v: torch.Tensor, damping: float = 0.0, tolerance: float = 1e-8, iterations: int = 100
) -> Solution:
    """Solve (H + damping I) x = v.

    Args:
        product: H, symmetric. v: right-hand side.
        damping: eta, at least 0.
        tolerance: stop when the residual is at most this share of |v|. iterations: most products.

    Returns:
        The solution; the residual is that of CG's recurrence.
    """
    x, r = torch.zeros_like(v), v.clone()
    norm = float(v.norm())
    p, energy = r.clone(), float(r @ r)
    done = 0
    while norm > 0 and done < iterations and energy**0.5 > tolerance * norm:
        hp = product(p) + damping * p
        done += 1
        curvature = float(p @ hp)
        if curvature <= 0:
            return Solution(x, energy**0.5 / norm, done, negative_curvature=True)
        length = energy / curvature
        x, r = x + length * p, r - length * hp
        fresh = float(r @ r)
        p, energy = r + (fresh / energy) * p, fresh
    return Solution(x, energy**0.5 / norm if norm > 0 else 0.0, done)


def lissa(product: Product, v: torch.Tensor, scale: float, damp: float = 0.0, iterations: int = 100) -> Solution:
    """LiSSA (module docstring), with its residual.

    Args:
        product: H, symmetric, on the scale of v (for mean losses a mean-scale ``scale``, else a sum-scale one).
        v: right-hand side.
        scale: s. damp: d in [0, 1). iterations: T; one more product measures the residual.

    Returns:
        The solution. A run whose residual passes |v| ends there as ``diverged``.
    """
    h, norm = v.clone(), float(v.norm())
    if norm == 0:
        return Solution(h, 0.0, 0)
    for done in range(iterations + 1):
        following = v + (1 - damp) * h - product(h) / scale
        residual = float((following - h).norm()) / norm
        if not residual <= 1 + 1e-4:  # the margin is for float32; a NaN fails the comparison too
            return Solution(h / scale, residual, done, diverged=True)
        if done < iterations:
            h = following
    return Solution(h / scale, residual, iterations)


def lissa_gain(eigenvalues: torch.Tensor, scale: float, damp: float, iterations: int) -> torch.Tensor:
    """f(mu) of the module docstring, elementwise: what LiSSA multiplies v by along each eigenvector.

    Example:
        >>> float(lissa_gain(torch.tensor([0.0], dtype=torch.float64), scale=50.0, damp=0.0, iterations=5))
        0.12
    """
    x = damp + eigenvalues / scale  # 1 - rho
    near = x.abs() < 0.5
    powers = -torch.expm1((iterations + 1) * torch.log1p(-torch.where(near, x, 0.0)))  # keeps the digits of small x
    summed = torch.where(near, powers, 1 - (1 - x) ** (iterations + 1))
    flat = (
        x.abs() < torch.finfo(x.dtype).tiny
    )  # the limit, exact to the last digit; subnormal numbers may be flushed to 0
    return torch.where(flat, float(iterations + 1), summed / torch.where(flat, 1.0, x)) / scale


def largest_eigenvalue(product: Product, start: torch.Tensor, iterations: int = 20) -> float:
    """Estimate of the largest absolute eigenvalue by power iteration; at most the true one up to rounding.

    Args:
        product: H. start: a vector, not 0, that is not orthogonal to the leading eigenvector. iterations: products.
    """
    v = start / start.norm()
    size = 0.0
    for _ in range(iterations):
        hv = product(v)
        size = float(hv.norm())
        if size == 0.0:
            break
        v = hv / size
    return size


def minimise(objective: Objective, theta: torch.Tensor, tolerance: float = 1e-10, rounds: int = 50) -> torch.Tensor:
    """Newton's method with CG steps, to a stationary point of a strongly convex objective.

    Steps are halved until the gradient norm falls, which needs no value and so no digits that the value cannot show.

    Args:
        objective: with a positive ridge. theta: (p,), start, in the dtype to work in.
        tolerance: gradient norm at which to stop. rounds: most Newton steps.

    Returns:
        Where the gradient norm reached the tolerance or could not be lowered further; the caller measures it.
    """
    gradient = objective.gradient(theta)
    for _ in range(rounds):
        norm = float(gradient.norm())
        if norm <= tolerance:
            break
        step = conjugate_gradient(objective.hessian(theta), gradient, tolerance=min(0.1, norm**0.5), iterations=500).x
        for halving in range(30):
            moved = theta - 0.5**halving * step
            fresh = objective.gradient(moved)
            if float(fresh.norm()) < norm:
                break
        else:
            break
        theta, gradient = moved, fresh
    return theta
