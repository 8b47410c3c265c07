# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,mystnb,-all
#     notebook_metadata_filter: kernelspec,jupytext,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# (ch-mcmc-audit)=
# # The audit: from error counts to a posterior
#
# :::{admonition} In this chapter
# **Question.** A membership attack on one node was wrong so many times out of so many. What do these counts say about the
# privacy parameters $(\varepsilon_L, \varepsilon_R)$ of the node?
#
# **At the end you can say** how the posterior of the parameters is defined, how to compute it for thousands of nodes with
# a cumulative sum, that two samplers give the same answer, when the answer can be trusted, and which of its numbers is a
# lower bound.
#
# **Run time.** Under a minute on a CPU. **Data.** Counts chosen or simulated here, and published simulated audits.
# :::
#
# ## Claims
#
# {cite:t}`yildirim2026bmp` audit trained models by Markov chain Monte Carlo, in the manner of
# {cite:t}`yildirim2025mcmc`. The claim is theirs, the reading of "recovers" is ours.
#
# :::{prf:conjecture} B17
# :label: claim-b17
# The MCMC audit recovers $(\varepsilon_L, \varepsilon_R)$ from the error counts of membership attacks.
# :::
#
# ## Setting
#
# **The auditor** owns sampler and training, and runs both $T$ times. For one node, $N_1$ runs had it in their sample and
# $N_0$ had not. An attack decides in every run, without having seen that run: it says "member" in $X$ of the $N_0$ runs,
# a false positive, and "non-member" in $Y$ of the $N_1$ runs, a false negative. Chapter {ref}`ch-bmp-theory` showed which
# errors $(\alpha, \beta)$ the parameters allow: a parallelogram $R(e)$, where $e = (e_L, e_R) \ge 0$ are the parameters in
# ratio form. In odds form they are
#
# $$\begin{aligned} \varepsilon_L &= e_L - \log o, \\ \varepsilon_R &= e_R + \log o, \qquad o = \eta / (1 - \eta),
# \end{aligned}$$ (eq-audit-forms)
#
# so $e$ is the *excess* over what sampling alone reveals, one posterior serves both forms, and no interval can fall below
# the prior bounds. The **region model** is
#
# $$\begin{aligned} e_L, e_R &\sim \text{half-normal}(\tau), \\ (\alpha, \beta) \mid e &\sim \text{uniform on } R(e), \\
# X &\sim \text{Bin}(N_0, \alpha), \quad Y \sim \text{Bin}(N_1, \beta). \end{aligned}$$ (eq-audit-model)
#
# Here $\tau = \sqrt{10}$, the scale of the predecessor. A **strength** $s$ replaces $R(e)$ by $R(e) \setminus R(s\,e)$: the
# attack is known to be at least that good. It can be fixed, or unknown and uniform on $(0, 1)$ ("learnt").
#
# Beside it stands a posterior with hardly any model. Give $(\alpha, \beta)$ a flat prior on the unit square, so that they
# have independent Beta laws, and push them through the smallest parameters that allow them,
#
# $$\begin{aligned} e_R &= \log \max\Big\{\frac{1-\beta}{\alpha}, \frac{\beta}{1-\alpha}\Big\}, \\
# e_L &= -\log \min\Big\{\frac{1-\beta}{\alpha}, \frac{\beta}{1-\alpha}\Big\}. \end{aligned}$$ (eq-audit-corner)
#
# We call this the **corner posterior**, since $(\alpha, \beta)$ is then a corner of $R(e)$. It speaks about the attack:
# what the attack proves at least.

# %% tags=["parameters"]
n_out: int = 90  # runs without the node
false_positives: int = 9  # of these, runs in which the attack said "member"
n_in: int = 10  # runs with the node
false_negatives: int = 4  # of these, runs in which the attack said "non-member"
prior: float = 0.1  # prior membership probability of the node
prior_scale: float = 3.1622776601683795  # scale of the half-normal prior of the excess parameters
simulations: int = 1000  # simulated audits of the live calibration, at least 100
seed: int = 0  # seed of all draws

# %% tags=["hide-input"]
import warnings

warnings.filterwarnings("ignore", message="IProgress not found")  # no progress bars here

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import binom

from lethe_lib.attacks import likelihood_ratio_test
from lethe_lib.bmp import (
    audit,
    audit_model,
    error_region,
    learnt_prior_scale,
    log_prior_odds,
    marginal_likelihood,
    pooled_audit,
    smallest_parameters,
)
from lethe_lib.bmp.audit_calibration import calibration_ranks, coverage, rank_gap, simulate
from lethe_lib.bmp.audit_quadrature import grid_edges, half_normal, marginal_tables
from lethe_lib.reporting import (
    PALETTE,
    check_claim,
    check_parameters,
    glue_number,
    glue_text,
    provenance,
    show_source,
    show_table,
    use_style,
)
from lethe_lib.reporting.claims_mcmc_audit import coverage_cells, p_value_of_sides, rank_tests
from lethe_lib.seeding import numpy_generator
from lethe_lib.study.audit_calibration import load_audit_calibration

check_parameters(globals())
use_style()
BLUE, ORANGE, GREEN, GREY = PALETTE[0], PALETTE[1], PALETTE[2], "0.45"
SIDES = ("left", "right")
counts = (n_out, false_positives, n_in, false_negatives)
USELESS = (90, 45, 10, 5)  # an attack that tosses a coin

# %% [markdown]
# ## Tiny example
#
# One node, four candidates for its parameters. The probability of the counts given $e$ is the binomial likelihood *averaged
# over the region*: draw errors uniformly from $R(e)$ and average. The exact value is a one-dimensional integral over
# $\alpha$, since the integral over $\beta$ is a Beta distribution function.


# %% tags=["nbval-ignore-output"]
def likelihood(alpha, beta):
    """Probability of the counts given the errors of the attack."""
    return binom.pmf(false_positives, n_out, alpha) * binom.pmf(false_negatives, n_in, beta)


candidates = [(0.5, 0.5), (1.0, 2.0), (3.0, 3.0), (8.0, 8.0)]
rows = []
for left, right in candidates:
    region = error_region(left, right)
    drawn = likelihood(*region.draw(numpy_generator(seed, "tiny", left), 200_000))
    exact = float(marginal_likelihood(left, right, counts))
    rows.append(
        {"e_L": left, "e_R": right, "area": float(region.area), "average of draws": drawn.mean(), "exact": exact}
    )
    assert abs(drawn.mean() - exact) < 5 * drawn.std() / np.sqrt(drawn.size)
show_table(pd.DataFrame(rows), "Probability of the counts under four candidates, by uniform draws and exactly.")
observed = [float(side) for side in smallest_parameters(false_positives / n_out, false_negatives / n_in)]
glue_number("tiny_left", observed[0])
glue_number("tiny_right", observed[1])
glue_number("tiny_factor", rows[1]["exact"] / rows[0]["exact"])
glue_number("tiny_limit", rows[2]["exact"] / rows[3]["exact"])

# %% [markdown]
# The observed error rates are the corner of the region with $e_L$ = {glue:text}`tiny_left` and $e_R$ =
# {glue:text}`tiny_right`. The second candidate makes the counts {glue:text}`tiny_factor` times as probable as the first,
# whose region hardly reaches the observed rates. But from the third to the last, very large candidate the probability
# changes by a factor of {glue:text}`tiny_limit` only: **a larger region always holds the observed point too**, and its area
# cannot exceed one. So counts can rule out small parameters, and never large ones.

# %% mystnb={"figure": {"name": "fig-audit-regions", "caption": "Why the data say more about the lower end. Shading: likelihood of the counts over the errors; lines: regions of four candidates. The smallest candidate misses the likelihood, the second cuts through it, the larger ones contain it, and the largest pays for its extra area with a bounded factor."}, "image": {"alt": "Unit square of false alarms against missed members with a shaded blob near the lower left, and four nested parallelograms around the falling diagonal, of which the two larger ones contain the blob."}} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.6, 4.8))
grid = np.linspace(0.002, 0.998, 250)
ax.contourf(grid, grid, likelihood(grid[None, :], grid[:, None]), levels=8, cmap="Greys", alpha=0.8)
for (left, right), color in zip(candidates, (GREEN, ORANGE, BLUE, GREY), strict=True):
    corners = error_region(left, right).vertices
    ax.plot(*np.vstack([corners, corners[:1]]).T, color=color, label=f"$e$ = ({left:g}, {right:g})")
ax.set(xlabel=r"false alarms $\alpha$", ylabel=r"missed members $\beta$", xlim=(0, 1), ylim=(0, 1), aspect="equal")
ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
plt.show()

# %% [markdown]
# ## Method
#
# ### From statistics to counts
#
# The counts come from a likelihood-ratio test {cite:p}`carlini2022lira`: normal laws are fitted to the statistic of the
# runs with and without the node, leaving out the run that is judged, and the test fires when the ratio is too large for
# the fitted law without the node, at level 0.1. As a planted case take a statistic that *is* the membership bit, flipped
# with probability 1/4. Chapter {ref}`ch-bmp-theory` gives its exact parameters, $\log 3$ on both sides.

# %%
generator = numpy_generator(seed, "planted")
member = generator.random((200, 300)) < 0.5
noisy_bit = (member ^ (generator.random(member.shape) < 0.25)).astype(float)
planted = likelihood_ratio_test(noisy_bit, member)
alpha, beta = planted.false_positives.sum() / planted.n_out.sum(), planted.false_negatives.sum() / planted.n_in.sum()
result = audit(*planted.arrays, 0.5, draws=0, seed=seed)
low, high = (result.corner_quantile(q, "ratio") for q in (0.05, 0.95))
planted_share = coverage(low, high, np.log(3))[0]
glue_number("planted_alpha", alpha, 2)
glue_number("planted_beta", beta, 2)
glue_number("planted_share", 100 * planted_share, 2)
assert planted.ok.all() and abs(alpha - 0.25) < 0.02 and abs(beta - 0.25) < 0.02
assert planted_share > 0.8

# %% [markdown]
# The test finds the best errors there are, {glue:text}`planted_alpha` and {glue:text}`planted_beta`, and the 90 %
# interval of the corner posterior holds $\log 3$ for {glue:text}`planted_share` % of nodes and sides.
#
# ### Quadrature: a cumulative sum
#
# Every point below the diagonal is the corner of exactly one region, the one with $l = \log\frac{1-\alpha}{\beta}$ and
# $r = \log\frac{1-\beta}{\alpha}$, and it lies in $R(e)$ exactly when $l \le e_L$ and $r \le e_R$. So in the coordinates
# $(l, r)$ the likelihood integrated over $R(e)$ is a cumulative sum along both axes, for all $e$ of a grid at once:
#
# $$\begin{aligned} m(e) = \frac{1}{\text{area}\,R(e)} \sum_{l \le e_L} \sum_{r \le e_R} &\text{likelihood}(l, r) \\
# {}\times{} &\text{area of the cell}(l, r). \end{aligned}$$ (eq-audit-cumsum)
#
# The area of a cell is the second difference of the area of $R$, which has a formula. By hand, on a coarse grid:

# %%
edges = grid_edges(16, 20.0)
middle = 20.0 * ((np.arange(16) + 0.5) / 16) ** 4
area = error_region(edges[:, None], edges).area
cell_area = np.diff(np.diff(area, axis=0), axis=1)
errors = error_region(middle[:, None], middle).vertex  # the errors whose corner is (l, r)
# A point and its mirror above the diagonal lie in the same regions: half of the area each.
cells = cell_area * (likelihood(*errors) + likelihood(1 - errors[0], 1 - errors[1])) / 2
by_hand = cells.cumsum(0).cumsum(1) / area[1:, 1:]
chosen = [7, 8, 9]  # edges near 1, 2 and 3
fine = next(marginal_tables([counts], grid_edges(512, 20.0)))
rows = []
for index in chosen:
    e = float(edges[index + 1])
    exact = float(marginal_likelihood(e, e, counts))
    library = float(fine.marginal[0][32 * (index + 1), 32 * (index + 1)] * fine.scale[0])
    rows.append({"e_L = e_R": e, "16 cells": by_hand[index, index], "512 cells": library, "exact": exact})
    assert abs(library / exact - 1) < 2e-3
show_table(
    pd.DataFrame(rows), "The probability of the counts by cumulative sums on two grids, and by exact integration."
)
assert abs(cells.sum() * (n_out + 1) * (n_in + 1) - 1) < 0.05  # all cells together are the whole square

# %% [markdown]
# Multiplied with the prior this is the posterior, without any sampling. And the cells themselves, before summing, are the
# corner posterior. {numref}`fig-audit-cumsum` shows the three steps.

# %% mystnb={"figure": {"name": "fig-audit-cumsum", "caption": "One table, two posteriors. First: density of the cells, which is the corner posterior. Second: their cumulative sum divided by the area, the probability of the counts given the parameters: it rises, passes a ridge and then falls to a level that it keeps however large the parameters are. Third: times the prior, the region posterior, which ends on the right only because the prior does. Shades are relative to the largest value of each panel."}, "image": {"alt": "Three heat maps over e L and e R. First, a compact blob. Second, a ridge near the blob and a lower level that covers everything above and to the right. Third, the same faded out towards large parameters."}} tags=["hide-input"]
edges = grid_edges(128, 20.0)
table = next(marginal_tables([counts], edges))
middle = 20.0 * ((np.arange(128) + 0.5) / 128) ** 4
width = np.diff(edges)
density = table.corner[0] / (width[:, None] * width)  # mass per unit of both parameters
density[middle < 0.05], density[:, middle < 0.05] = 0.0, 0.0  # cells so small that rounding is all they hold
posterior = table.marginal[0] * half_normal(edges, prior_scale)[:, None] * half_normal(edges, prior_scale)
fig, axes = plt.subplots(2, 2, figsize=(7.2, 6.6), sharex=True, sharey=True)
panels = (
    (middle, density, "cells: corner posterior"),
    (edges, table.marginal[0], "cumulative sum / area"),
    (edges, posterior, "times prior: region posterior"),
)
for ax, (points, values, title) in zip(axes.flat, panels, strict=False):
    shades = ax.pcolormesh(
        points, points, values / values.max(), cmap="Blues", shading="nearest", vmin=0, vmax=1, rasterized=True
    )
    ax.plot(observed[1], observed[0], "x", color=ORANGE, markersize=8)
    ax.set(title=title, xlim=(0, 6), ylim=(0, 6), aspect="equal")
    ax.tick_params(labelbottom=True)
axes[1, 1].axis("off")
fig.colorbar(shades, ax=axes[1, 1], location="left", fraction=0.1, label="share of the panel's largest value")
fig.supxlabel("$e_R$")
fig.supylabel("$e_L$")
plt.show()

# %% [markdown]
# ### Two samplers of different kind
#
# **PyMC.** A uniform point of a parallelogram is a linear image of a uniform point $(u, v)$ of the square. That makes the
# model smooth, without constraints and without the area, and a Hamiltonian sampler can run all nodes at once. With a
# strength the set $R(e) \setminus R(s\,e)$ consists of four triangles; the model maps one $(u, v)$ into each of them and
# averages the likelihood by area.

# %% tags=["hide-output"]
show_source(marginal_tables, audit_model)

# %% [markdown]
# **MHAAR** (Metropolis-Hastings with averaged acceptance ratios) {cite:p}`andrieu2021mhaar` is the sampler that the sources name. It proposes parameters on the log scale and
# replaces the unknown ratio of marginal likelihoods by a ratio of averages over a few candidates for $(\alpha, \beta)$, the
# current one and fresh draws, in such a way that the chain still has the exact posterior.
#
# Differences from the paper:
#
# 1. Its text was not available to us; the model is that of its predecessor with the region of the theory chapter.
# 2. The excess parameters have the prior, not $\varepsilon$ in odds form, so that the prior bounds hold by construction.
# 3. Both parameters are free and have separate priors; the predecessor has one parameter and a slack $\delta$.
# 4. MHAAR draws its candidates from the Beta laws of the errors, for which the likelihood cancels, and includes the Jacobian
#    of the log-scale proposal, which one published version leaves out.
# 5. The reference is the quadrature; the samplers are there to check it, and for models that it cannot do.
# 6. R-hat above 1.01, fewer than 400 effective draws, or more than 1 % divergent steps are a status, not a number.
# 7. Error counts are binomial throughout, for the corner posterior too. Counts of the likelihood-ratio test vary more, since
#    one fit serves all runs of a node ({ref}`ch-shadow-models` measures it on untrained models): for them intervals are too
#    narrow, and the 5 % point of the corner is a lower bound less often than nominally. The predecessor has a bivariate
#    normal likelihood for counts that depend on each other, which it uses for real data; it is not implemented here.
#
# ## Experiment
#
# ### Reference cases
#
# An independent two-dimensional integration gave the values in the column "reference". They are for 90, 9, 10, 4 whatever
# the parameters of this chapter.

# %%
GOOD = (90, 9, 10, 4)
REFERENCE = {(0.5, 0.5): 1.227301896e-5, (1.0, 1.0): 9.360740353e-5, (1.0, 2.0): 1.1063161581e-3}
REFERENCE |= {(2.0, 1.0): 7.520725037e-5, (3.0, 3.0): 1.10269071e-3}
tables = {
    cells: (grid_edges(cells, 20.0), next(marginal_tables([GOOD], grid_edges(cells, 20.0)))) for cells in (128, 512)
}


def at(cells, left, right):
    """The grid's value at one pair, by linear interpolation between its edges in the fourth root."""
    edges, table = tables[cells]
    place = [(e / 20.0) ** 0.25 * cells for e in (left, right)]
    (i, j), (a, b) = [int(p) for p in place], [p - int(p) for p in place]
    m = table.marginal[0]
    return float(
        table.scale[0]
        * ((1 - a) * ((1 - b) * m[i, j] + b * m[i, j + 1]) + a * ((1 - b) * m[i + 1, j] + b * m[i + 1, j + 1]))
    )


rows = []
for (left, right), value in REFERENCE.items():
    exact = float(marginal_likelihood(left, right, GOOD))
    row = {"quantity": f"probability given ({left:g}, {right:g})", "reference": value, "1-d integral": exact}
    row |= {f"grid {cells}, relative error": abs(at(cells, left, right) / value - 1) for cells in (128, 512)}
    assert abs(exact / value - 1) < 1e-8
    rows.append(row)
grids = {cells: audit(*GOOD, 0.1, grid=cells, largest=cells, draws=0) for cells in (128, 512)}
row = {"quantity": "evidence", "reference": 6.094441e-4, "1-d integral": None}
row |= {f"grid {cells}, relative error": abs(grids[cells].evidence[0] / 6.094441e-4 - 1) for cells in (128, 512)}
rows.append(row)
show_table(
    pd.DataFrame(rows), "Probabilities of the counts 90, 9, 10, 4: reference, exact integral, and errors of two grids."
)
glue_text("grid_128_points", f"{max(one['grid 128, relative error'] for one in rows[:-1]):.1%}")
glue_text("grid_512_points", f"{max(one['grid 512, relative error'] for one in rows[:-1]):.2%}")
glue_text("grid_128_evidence", f"{rows[-1]['grid 128, relative error']:.2%}")
assert rows[-1]["grid 128, relative error"] < 1e-3

# %%
POSTERIOR = {"e_L": (2.74088, 0.635, 2.316, 6.259), "e_R": (3.52767, 1.510, 3.159, 6.774)}
CORNER = {"e_L": (0.311, 0.772, 1.497), "e_R": (1.031, 1.699, 2.345)}
rows = []
for side, name in enumerate(POSTERIOR):
    for label, value, of in zip(
        ("mean", "5 %", "50 %", "95 %"), POSTERIOR[name], ("mean", 0.05, 0.5, 0.95), strict=True
    ):
        row = {"quantity": f"{name}, {label}", "reference": value}
        for cells, one in grids.items():
            found = one.mean("ratio") if of == "mean" else one.quantile(of, "ratio")
            row[f"grid {cells}"] = float(found[0, side])
        assert abs(row["grid 512"] - value) < 2e-3
        rows.append(row)
    for label, value, of in zip(("5 %", "50 %", "95 %"), CORNER[name], (0.05, 0.5, 0.95), strict=True):
        row = {"quantity": f"corner {name}, {label}", "reference": value}
        row |= {f"grid {cells}": float(one.corner_quantile(of, "ratio")[0, side]) for cells, one in grids.items()}
        assert abs(row["grid 512"] - value) < 3e-3
        rows.append(row)
show_table(pd.DataFrame(rows), "Posterior of the counts 90, 9, 10, 4 in ratio form, against the references.", digits=4)

# %% [markdown]
# A grid of 128 cells a side has the evidence to {glue:text}`grid_128_evidence` and is enough for means and quantiles. Single
# probabilities $m(e)$ are off by up to {glue:text}`grid_128_points` there, and by {glue:text}`grid_512_points` on 512 cells.
#
# ### Three methods, one posterior
#
# Four nodes: the counts of the parameters cell, a useless attack, a good one, and one that is nearly perfect on one side.

# %% tags=["nbval-ignore-output"]
nodes = np.array([counts, USELESS, (50, 5, 50, 5), (30, 1, 30, 29)])
names = ["as given", "useless", "good", "lopsided"]
settings = {
    "quadrature": {"grid": 256},
    "mhaar": {"draws": 2000},
    "pymc": {"chains": 2, "tune": 500, "draws": 1500},
}
fits = {
    method: audit(*nodes.T, prior, method, prior_scale=prior_scale, seed=seed, nodes=names, **chosen)
    for method, chosen in settings.items()
}
rows, diagnostics, worst = [], [], 0.0
for method, fit in fits.items():
    for index, name in enumerate(names):
        draws = fit.draws[:, :, index].reshape(-1, 2)
        quantiles = np.quantile(draws, (0.05, 0.95), axis=0)
        row = {"method": method, "node": name}
        row |= {
            "e_L mean": draws.mean(0)[0],
            "e_R mean": draws.mean(0)[1],
            "e_R 5 %": quantiles[0, 1],
            "e_R 95 %": quantiles[1, 1],
        }
        if method == "quadrature":  # its own numbers, not those of draws from it
            row |= {f"e_{s} mean": fit.mean("ratio")[index, k] for k, s in enumerate("LR")}
            row |= {f"e_R {q:.0%}".replace("%", " %"): fit.quantile(q, "ratio")[index, 1] for q in (0.05, 0.95)}
        else:
            error = draws.std(0) / np.sqrt(fit.convergence["ess"][index])
            worst = max(worst, float(np.max(np.abs(draws.mean(0) - fits["quadrature"].mean("ratio")[index]) / error)))
            line = {
                "method": method,
                "node": name,
                "status": fit.status[index],
                "R-hat": fit.convergence["rhat"][index],
            }
            line |= {
                "ESS": int(fit.convergence["ess"][index]),
                "divergences": int(fit.convergence["divergences"][index]),
            }
            diagnostics.append(line)
        rows.append(row)
show_table(pd.DataFrame(rows), "Posterior in ratio form by three methods.")
show_table(pd.DataFrame(diagnostics), "Diagnostics of the two samplers.")
glue_number("methods_worst", worst, 2)
assert worst < 5, "a sampler disagrees with the quadrature by more than Monte Carlo error"

# %% [markdown]
# Where they differ, it is by at most {glue:text}`methods_worst` Monte Carlo standard errors, over all means. The quadrature
# has no such error: it is the reference, and the audit of the next chapter.
#
# ### What a strength does

# %%
rows = []
for name, vector in (("as given", counts), ("useless", USELESS)):
    for strength in (0.0, 0.5, 0.9, "learnt"):
        fit = audit(*vector, prior, prior_scale=prior_scale, strength=strength, draws=0)
        row = {"attack": name, "strength": str(strength)}
        row |= {f"e_R {q:.0%}".replace("%", " %"): float(fit.quantile(q, "ratio")[0, 1]) for q in (0.05, 0.5, 0.95)}
        rows.append(row | {"evidence": float(fit.evidence[0])})
    row = {"attack": name, "strength": "(corner)"}
    row |= {f"e_R {q:.0%}".replace("%", " %"): float(fit.corner_quantile(q, "ratio")[0, 1]) for q in (0.05, 0.5, 0.95)}
    rows.append(row | {"evidence": None})
strengths = pd.DataFrame(rows)
show_table(strengths, "Quantiles of e_R in ratio form under four strengths, and of the corner posterior.")
useless = strengths[strengths["attack"] == "useless"].set_index("strength")
glue_number("useless_median", useless.loc["0.0", "e_R 50 %"])
glue_number("useless_strong", useless.loc["0.9", "e_R 50 %"])
glue_number("useless_corner", useless.loc["(corner)", "e_R 50 %"])

# %% [markdown]
# A coin as an attack: the region model without strength puts the median of $e_R$ at {glue:text}`useless_median`. It reasons
# that a random attack may well be bad although much leaks. The corner's median is {glue:text}`useless_corner`: the attack
# has shown next to nothing. Both are right about different things. A strength of 0.9, "the attack is nearly as good as can
# be", pulls the first to {glue:text}`useless_strong`, but whether an attack is that good cannot be seen in its counts alone.
# And with two parameters a strength ties one of them only: errors outside $R(s\,e)$ are near the border of $R(e)$ on one
# side, and the other side may be as large as the prior likes.
#
# ### All nodes together
#
# Two ways to borrow strength from other nodes. **Pooled**: one pair of parameters for all nodes, in odds form, as in the
# definition "for all nodes". **Hierarchical**: every node has its own, and the scale of their prior is the one that makes
# the counts of all nodes most probable. Simulated: 400 nodes whose excess parameters have scales 0.5 and 1.5, so that the
# default prior is too wide.

# %% tags=["nbval-ignore-output"]
truth_scale = (0.5, 1.5)
many = simulate(400, 60, 40, seed, truth_scale)
learnt = learnt_prior_scale(*many.counts.T, 0.4)
rows = []
for label, scale in (("default scale", prior_scale), ("learnt scales", tuple(learnt)), ("true scales", truth_scale)):
    fit = audit(*many.counts.T, 0.4, prior_scale=scale, draws=0)
    error = np.sqrt(np.mean((fit.mean("ratio") - many.excess) ** 2, axis=0))
    size = (fit.quantile(0.95, "ratio") - fit.quantile(0.05, "ratio")).mean(0)
    row = {"prior": label, "error of e_L": float(error[0]), "error of e_R": float(error[1])}
    rows.append(row | {"width for e_L": float(size[0]), "width for e_R": float(size[1])})
show_table(
    pd.DataFrame(rows), "Root mean square error of posterior means and mean width of 90 % intervals over 400 nodes."
)
glue_number("learnt_left", learnt.left)
glue_number("learnt_right", learnt.right)

common = np.array([1.2, 0.8])
spread_priors = numpy_generator(seed, "priors").uniform(0.35, 0.65, 100)
shift = log_prior_odds(spread_priors)
region = error_region(common[0] + shift, common[1] - shift)
drawn = [side[0] for side in region.draw(numpy_generator(seed, "errors"), 1)]
generator = numpy_generator(seed, "counts")
shared = 60, generator.binomial(60, drawn[0]), 40, generator.binomial(40, drawn[1])
pooled = pooled_audit(*shared, spread_priors)
alone = audit(*shared, spread_priors, draws=0)
rows = [
    {
        "parameter": name,
        "true": float(common[side]),
        "prior bound": float(pooled.bounds[side]),
        "pooled 5 %": float(pooled.quantile(0.05)[side]),
        "pooled 95 %": float(pooled.quantile(0.95)[side]),
        "one node, mean width": float((alone.quantile(0.95, "odds") - alone.quantile(0.05, "odds"))[:, side].mean()),
    }
    for side, name in enumerate(("eps_L (odds)", "eps_R (odds)"))
]
show_table(pd.DataFrame(rows), "One pair of parameters for 100 nodes with different priors.")

# %% [markdown]
# The learnt scales are {glue:text}`learnt_left` and {glue:text}`learnt_right`, close to the true ones, and their errors are
# as small as with the true ones. Pooling narrows the interval much more, at the price of an assumption: that no node differs
# from the others.
#
# ## Results
#
# ### The prior decides the upper end
#
# {numref}`fig-audit-prior` repeats the audit with half-normal priors of scale 1, $\sqrt{10}$ and 10.

# %% mystnb={"figure": {"name": "fig-audit-prior", "caption": "Both ends of the region posterior follow the prior, the upper end most; only the corner does not. Medians and 90 % intervals of the excess e_R, for the counts of the parameters cell and for a useless attack."}, "image": {"alt": "Two panels of horizontal intervals. In both, the three region posteriors start a little and end much further to the right as the prior scale grows; the corner posterior below them is short and lies at the left."}} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
scales = (1.0, 10**0.5, 10.0)
intervals = {}
for ax, (name, vector) in zip(axes, (("as given", counts), ("useless", USELESS)), strict=True):
    for place, scale in enumerate(scales):
        fit = audit(*vector, prior, prior_scale=scale, draws=0)
        low, mid, high = (float(fit.quantile(q, "ratio")[0, 1]) for q in (0.05, 0.5, 0.95))
        intervals[name, scale] = low, high
        ax.plot([low, high], [place, place], color=BLUE)
        ax.plot(mid, place, "o", color=BLUE)
    low, mid, high = (float(fit.corner_quantile(q, "ratio")[0, 1]) for q in (0.05, 0.5, 0.95))
    ax.plot([low, high], [3, 3], color=ORANGE)
    ax.plot(mid, 3, "D", color=ORANGE)
    ax.set(title=f"attack: {name}", xlabel="$e_R$", xscale="symlog", xlim=(0, None))
    ax.set_xticks([0, 1, 2, 5, 10, 20], ["0", "1", "2", "5", "10", "20"])
axes[0].set_yticks(range(4), ["scale 1", "scale 3.16", "scale 10", "corner"])
axes[0].invert_yaxis()
plt.show()
glue_number("upper_narrow", intervals["as given", 1.0][1])
glue_number("upper_wide", intervals["as given", 10.0][1])
glue_number("lower_narrow", intervals["as given", 1.0][0])
glue_number("lower_wide", intervals["as given", 10.0][0])

# %% [markdown]
# For the given counts the 95 % point moves from {glue:text}`upper_narrow` to {glue:text}`upper_wide`, the 5 % point from
# {glue:text}`lower_narrow` to {glue:text}`lower_wide`. An upper bound on leakage cannot be had from one attack per node,
# with any number of runs: a better attack may exist.
#
# ### Calibration: is it computed right?
#
# Draw parameters from the prior, errors from their region, counts from the binomials; audit; find the rank of the truth
# among 99 posterior draws. If the posterior is computed right, ranks are uniform {cite:p}`talts2018sbc`. First live, for the
# quadrature, with a control that must fail: the same counts audited with half the prior scale.

# %%
live = simulate(simulations, 60, 30, seed, 2.0)
p_values = {}
for label, scale in (("right prior", 2.0), ("half the scale", 1.0)):
    ranks = calibration_ranks(audit(*live.counts.T, 0.3, prior_scale=scale, grid=64), live.excess)
    p_values[label] = p_value_of_sides(ranks)
glue_text("live_right", "no sign of a fault" if p_values["right prior"] > 0.01 else "a fault")
glue_text("live_wrong", "found" if p_values["half the scale"] < 0.01 else "not found")
print(f"right prior: {'uniform' if p_values['right prior'] > 0.001 else 'not uniform'} ranks")
print(f"half the scale: {'uniform' if p_values['half the scale'] > 0.001 else 'not uniform'} ranks")
assert p_values["right prior"] > 1e-4 and p_values["half the scale"] < 1e-4

# %% [markdown]
# The quadrature shows {glue:text}`live_right`; the wrong prior is {glue:text}`live_wrong`. The published record does this for
# all three methods with more audits (`python -m lethe_lib run audit_calibration --publish` makes it again).

# %% mystnb={"figure": {"name": "fig-audit-ranks", "caption": "All three methods are calibrated for their model: the distribution of the ranks stays inside the band of chance, which is wide for PyMC, tried on 120 audits at strength 0 only. Difference between the distribution function of the ranks of the truth and that of uniform ranks, two designs together, left (dashed) and right parameter (solid) apart; shaded, the 95 % simultaneous band of one line."}, "image": {"alt": "Three panels, one per method, of wiggly lines around zero inside a shaded horizontal band; two lines per strength, one for each parameter."}} tags=["hide-input"]
record = load_audit_calibration()
model = record[record["part"] == "model"]
fig, axes = plt.subplots(2, 2, figsize=(7.2, 5.6), sharex=True, sharey=True)
for ax, method in zip(axes.flat, ("quadrature", "mhaar", "pymc"), strict=False):
    part = model[model["method"] == method]
    for strength, color in zip(("0.0", "0.5", "learnt"), (BLUE, ORANGE, GREEN), strict=True):
        cell = part[part["strength"] == strength]
        if len(cell):
            draws = int(cell["rank_draws"].iloc[0])
            for side, style in zip(SIDES, ("--", "-"), strict=True):
                gap, band = rank_gap(cell[f"rank_{side}"].to_numpy(), draws)
                label = f"strength {strength}, {side}"
                ax.step(np.arange(draws + 1) / draws, gap, style, color=color, where="mid", label=label)
    ax.axhspan(-band, band, color=GREY, alpha=0.2, linewidth=0)
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set(title=f"{method}, {len(part):,} audits")
    ax.tick_params(labelbottom=True)
axes[1, 1].axis("off")
axes[1, 1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
fig.supxlabel("rank / 99")
fig.supylabel("distribution - uniform")
plt.show()

# %%
ranks = rank_tests()
show_table(
    ranks,
    "Chi-square test of uniform ranks in 20 bins, left and right apart, the smaller p-value doubled; and audits with the "
    "status of a bad fit.",
)
glue_number("rank_tests", len(ranks))
glue_number("rank_smallest", ranks["p_value"].min(), 2)
dropped = ranks.loc[ranks["bad_fits"].idxmax()]
glue_text(
    "dropped", f"{dropped['bad_fits']} of {dropped['audits']} of {dropped['method']} at strength {dropped['strength']}"
)

# %% [markdown]
# Of {glue:text}`rank_tests` tests the smallest p-value is {glue:text}`rank_smallest`; with that many tests one below
# 0.05 / {glue:text}`rank_tests` would be evidence of a fault. Bad fits are samplers that ask for more draws, most of them with a
# strength, where the posterior has a narrow neck at 0 if the attack shows little; they are counted here all the same.
# Shares covered, below and in the claim, leave them out, at most {glue:text}`dropped`.
#
# ### Coverage: is the model right?
#
# Uniform ranks say that the posterior is right *for attacks that are random points of their region*. Real attacks are not
# drawn at random; a good one is near the corner. The record holds audits of the best attack there is, the noisy bit above,
# for several flip probabilities and numbers of runs.

# %% mystnb={"figure": {"name": "fig-audit-coverage", "caption": "For the best attack the region posterior covers less the more runs there are, the corner posterior stays near its nominal level. Share of nominal 90 % intervals of e_R that hold the exact parameter of a noisy bit, three flip probabilities, 400 audits a point, with intervals of joint level 95 %; the learnt strength was run with 50 and 200 runs only."}, "image": {"alt": "Three panels, one per flip probability, of coverage against the number of runs. The corner stays near the dashed line at 0.9; the region posterior falls steeply from above 0.7 to 0.3 or less; with a learnt strength it falls more slowly."}} tags=["hide-input"]
region_cells, corner_cells = coverage_cells(), coverage_cells("corner_")
fig, axes = plt.subplots(2, 2, figsize=(7.2, 6), sharex=True, sharey=True)
lines = (
    (region_cells, "0.0", "region, strength 0", BLUE, "o-"),
    (region_cells, "learnt", "region, strength learnt", GREEN, "s-"),
    (corner_cells, "0.0", "corner", ORANGE, "D-"),
)
for ax, flip in zip(axes.flat, (0.1, 0.25, 0.4), strict=False):
    for cells, strength, label, color, style in lines:
        cell = cells[(cells["part"] == "noisy bit") & (cells["strength"] == strength) & (cells["flip"] == flip)]
        cell = cell[cell["side"] == "right"].sort_values("runs")
        errors = [cell["share"] - cell["low"], cell["high"] - cell["share"]]
        ax.errorbar(
            cell["runs"], cell["share"], yerr=errors, fmt=style, color=color, label=label, capsize=2, markersize=5
        )
    ax.axhline(0.9, color=GREY, linestyle="--", linewidth=1)
    ax.set(title=f"flip probability {flip:g}", xscale="log", ylim=(0, 1))
    ax.tick_params(labelbottom=True)
    ax.set_xticks([50, 200, 1000], ["50", "200", "1000"])
    ax.minorticks_off()
axes[1, 1].axis("off")
axes[1, 1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
fig.supxlabel("runs")
fig.supylabel("coverage")
plt.show()

# %% tags=["hide-input"]
rows = []
bits = record[(record["part"] == "noisy bit") & (record["strength"] == "0.0")]
for (flip, runs), cell in bits.groupby(["flip", "runs"]):
    row = {"flip": f"{flip:g}", "runs": int(runs), "exact e_R": float(cell["true_right"].iloc[0])}
    row |= {"region 5 %": cell["right_5%"].median(), "region is bound": (cell["right_5%"] <= cell["true_right"]).mean()}
    row["corner 5 %"] = cell["corner_right_5%"].median()
    row["corner is bound"] = (cell["corner_right_5%"] <= cell["true_right"]).mean()
    rows.append(row)
bounds = pd.DataFrame(rows)
show_table(
    bounds,
    "The 5 % points as lower bounds, 400 audits a row: their medians, and the share at or below the truth (is bound), which "
    "should be at least 95 %.",
)
proper = bounds[bounds["flip"] != "0.5"]
worst = proper.loc[proper["region is bound"].idxmin()]
glue_number("bound_worst", 100 * worst["region is bound"], 2)
glue_number("bound_worst_runs", int(worst["runs"]))
glue_number("bound_corner", 100 * proper["corner is bound"].min(), 2)
silent = bounds[bounds["flip"] == "0.5"]
glue_number("silent_few", silent["corner 5 %"].max(), 2)
glue_number("silent_many", silent["corner 5 %"].min(), 2)
drawn = model[(model["method"] == "quadrature") & (model["strength"] == "0.0")]
shares = [
    (cell[f"corner_{side}_5%"] <= cell[f"true_corner_{side}"])[cell[f"true_corner_{side}"] < 0.1].mean()
    for _, cell in drawn.groupby("n_in")
    for side in SIDES
]
glue_text("hardly", f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %")

# %% [markdown]
# The 5 % point of the region posterior is no lower bound for a good attack: at {glue:text}`bound_worst_runs` runs it is at
# or below the truth in only {glue:text}`bound_worst` % of the audits at the worst flip probability. The model takes the attack for a random point of its
# region; seeing errors that sure, it concludes that the region must be larger. **More runs make it worse**, since they make
# the errors more certain and the conclusion with them. A learnt strength softens this and does not cure it. The 5 % point of
# the corner posterior is at or below the truth in at least {glue:text}`bound_corner` % of them (400 audits a cell).
#
# Where nothing leaks (flip probability 1/2) the truth is 0, and intervals of positive parameters cannot contain it. The
# corner's 5 % point lies a little above it, between {glue:text}`silent_many` with many runs and {glue:text}`silent_few`
# with few: read such values as 0. Where hardly anything leaks the same bias shows: of audits of random attacks whose true
# corner is below 0.1 the 5 % point is at or below it in {glue:text}`hardly`. Flip probabilities between 0.4 and 0.5 are untested.
#
# So the book reports two things per node: the corner's 5 % point as the **audited lower bound**, which takes the counts for
# binomial, and the region posterior, with its prior named, as a statement about a typical attack.
#
# ### Claim check

# %%
finding = check_claim("B17")

# %% [markdown]
# ## What would change our mind
#
# A statement in the full text that says how the audit uses the strength of its attack, or several attacks per node: with
# several attacks of known quality the region is probed in more than one place, and coverage for the best of them need not
# fail. A prior for the errors that puts mass near the corner would do the same; ours is uniform, as the sources have it. The
# verdict on the computation would change with a single method whose ranks leave the band.
#
# ## Summary
#
# - The posterior of all nodes is a cumulative sum over one grid; PyMC and MHAAR agree with it within
#   {glue:text}`methods_worst` standard errors.
# - B17, recovery of the parameters: {glue:text}`B17_verdict`; the smallest coverage with a learnt strength (50 and 200 runs) is
#   {glue:text}`B17_effect`, interval {glue:text}`B17_interval`.
# - All methods are calibrated for their own model: {glue:text}`rank_tests` rank tests, smallest p-value
#   {glue:text}`rank_smallest`.
# - Counts rule out small parameters, never large ones: the upper end is the prior's.
# - For a nearly optimal attack the 5 % point of the region posterior is no lower bound, and more runs make it worse.
# - The corner's 5 % point is one when error counts are binomial, but for a small positive bias where hardly anything leaks.
# - Odds and ratio form differ by the log prior odds of the node, so one audit gives both.
#
# ## Exercises
#
# :::{exercise}
# :label: ex-audit-swap
# Swap the roles of members and non-members: audit (10, 4, 90, 9) instead of (90, 9, 10, 4). What happens to the posterior?
# :::
#
# :::{solution} ex-audit-swap
# :class: dropdown
# $e_L$ and $e_R$ change places: the region of $(L, U)$ mirrored at $\alpha = \beta$ is that of $(1/U, 1/L)$. And inverting
# all decisions, (90, 81, 10, 6), changes nothing, since a point and its mirror lie in the same regions.
# :::
#
# :::{exercise}
# :label: ex-audit-zero
# An attack without a single false positive in 20 runs, and without a false negative in 20 others: is $e_R$ infinite?
# :::
#
# :::{solution} ex-audit-zero
# :class: dropdown
# The observed rates say so, `smallest_parameters(0, 0)`, the counts do not: `audit(20, 0, 20, 0, 0.5)` has a corner 5 %
# point of about 2, since false-positive rates of several percent are still plausible after 20 runs.
# :::
#
# :::{exercise}
# :label: ex-audit-runs
# How many runs does a node with prior 0.1 need, so that the corner's interval for $e_R$ is half as wide as at the top of
# this chapter?
# :::
#
# :::{solution} ex-audit-runs
# :class: dropdown
# Widths fall with the square root of the number of runs, so about four times as many: try
# `audit(360, 36, 40, 16, 0.1)`. Stratified sampling of the runs that contain the node would be cheaper: ten runs with the
# node are what limits $e_L$.
# :::

# %% tags=["hide-input", "nbval-ignore-output"]
provenance(
    {
        "n_out": n_out,
        "false_positives": false_positives,
        "n_in": n_in,
        "false_negatives": false_negatives,
        "prior": prior,
        "prior_scale": prior_scale,
        "simulations": simulations,
        "seed": seed,
    },
)
