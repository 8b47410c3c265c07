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
# (ch-bmp-theory)=
# # Bayesian Membership Privacy: the theory, checked exactly
#
# :::{admonition} In this chapter
# **Question.** What does Bayesian Membership Privacy (BMP) promise, and which of its stated properties follow from
# which form of the definition?
#
# **At the end you can say** what the parameters $\varepsilon_L$ and $\varepsilon_R$ mean for one node, which errors
# they leave to an attack, how they compose, and why a likelihood ratio and posterior odds are not the same promise.
#
# **Run time.** Under a minute on a CPU. **Data.** None: every number comes from full enumeration of small laws.
# :::
#
# ## Claims
#
# The full text of {cite:t}`yildirim2026bmp` was not available to us: these are its statements as its abstract and
# summaries give them, in our words. Where a statement is vague, our sharp reading is part of the check below.
#
# :::{prf:conjecture} B01
# :label: claim-b01
# BMP bounds posterior odds over prior odds between $e^{-\varepsilon_L}$ and $e^{\varepsilon_R}$ for every output and
# node.
# :::
#
# :::{prf:conjecture} B02
# :label: claim-b02
# $\varepsilon_L$ and $\varepsilon_R$ differ in general: revealing membership and revealing absence are different risks.
# :::
#
# :::{prf:conjecture} B03
# :label: claim-b03
# The one-sided versions BMP-R and BMP-L isolate one risk.
# :::
#
# :::{prf:conjecture} B04
# :label: claim-b04
# The differential version BMDP is impractical on graphs because of structural coupling.
# :::
#
# :::{prf:conjecture} B05
# :label: claim-b05
# $\varepsilon_L$ and $\varepsilon_R$ are bounded below by the ratio of the priors.
# :::
#
# :::{prf:conjecture} B06
# :label: claim-b06
# Even perfectly private training cannot hide what sampling itself leaks.
# :::
#
# :::{prf:conjecture} B07
# :label: claim-b07
# Post-processing cannot increase the parameters.
# :::
#
# :::{prf:conjecture} B08
# :label: claim-b08
# BMP composes with membership privacy (MP) on one sample.
# :::
#
# :::{prf:conjecture} B09
# :label: claim-b09
# BMP composes with BMP over independent sample-and-train rounds.
# :::
#
# :::{prf:conjecture} B10
# :label: claim-b10
# The parameters and the regions of possible errors correspond one to one.
# :::
#
# :::{prf:conjecture} B11
# :label: claim-b11
# The region of possible errors depends on the prior of the node.
# :::
#
# :::{prf:conjecture} B15
# :label: claim-b15
# Type I and type II errors alone do not determine the best membership test.
# :::
#
# :::{prf:conjecture} B16
# :label: claim-b16
# Notions with a uniform prior are too strict or too weak on graphs.
# :::
#
# :::{prf:conjecture} B24
# :label: claim-b24
# BMP generalises MP.
# :::
#
# :::{prf:conjecture} B25
# :label: claim-b25
# The parameter of BMP-R is generally below that of MP.
# :::
#
# ## Setting
#
# A sampler draws the training nodes $S$ of a graph, training publishes $W$, and $M_i = 1$ says that node $i$ is in
# $S$. The adversary knows the graph, the sampler and the training method, and sees $W = w$. The sampler fixes the
# prior of the node, $\eta_i = \Pr(M_i = 1)$, and its prior odds $o_i = \eta_i / (1 - \eta_i)$. What the output adds
# is the likelihood ratio
#
# $$\begin{aligned}
# \Lambda_i(w) &= \frac{p(w \mid M_i = 1)}{p(w \mid M_i = 0)}, \\
# \frac{\Pr(M_i = 1 \mid w)}{\Pr(M_i = 0 \mid w)} &= o_i \, \Lambda_i(w),
# \end{aligned}$$ (eq-bayes)
#
# with extremes $L_i = \inf_w \Lambda_i(w)$ and $U_i = \sup_w \Lambda_i(w)$. The definition has two forms:
#
# $$\begin{aligned}
# \text{ratio:} \quad & e^{-\varepsilon_L} \le \Lambda_i(w) \le e^{\varepsilon_R}, \\
# \text{odds:} \quad & e^{-\varepsilon_L} \le o_i \, \Lambda_i(w) \le e^{\varepsilon_R}.
# \end{aligned}$$ (eq-forms)
#
# The printed formula, posterior odds *over prior odds*, is the ratio form: by {eq}`eq-bayes` the prior cancels and a
# likelihood ratio is left. Yet the text around it speaks of posterior probabilities, of bounds by the priors, and of a
# region that depends on the prior, all of which point to the odds form. We do not choose. Per node the two differ by a
# shift,
#
# $$\begin{aligned}
# \varepsilon_R^{\text{odds}} &= \varepsilon_R^{\text{ratio}} + \log o_i, \\
# \varepsilon_L^{\text{odds}} &= \varepsilon_L^{\text{ratio}} - \log o_i,
# \end{aligned}$$ (eq-shift)
#
# so one computation serves both, and this chapter shows which statement is true of which. In tables and checks the
# parameters are written eps_L and eps_R.
#
# Related notions: **MP**($\varepsilon$) is the ratio form with $\varepsilon_L = \varepsilon_R = \varepsilon$, a
# relative of {cite:t}`li2013membership`. The differential versions of MP and BMP, **MDP** and **BMDP**, condition on the
# memberships of all other nodes, MDP in ratio form and BMDP in odds form. **BMP-R** and **BMP-L** keep only
# $\varepsilon_R$ or only $\varepsilon_L$.
#
# A membership test errs with $\alpha = \Pr(\text{says member} \mid M_i = 0)$ and
# $\beta = \Pr(\text{says non-member} \mid M_i = 1)$: its false-positive rate (FPR) is $\alpha$ and its true-positive
# rate (TPR) $1 - \beta$. If $L \le \Lambda \le U$ then
#
# $$\begin{aligned}
# L \alpha &\le 1 - \beta \le U \alpha, \\
# L (1 - \alpha) &\le \beta \le U (1 - \alpha),
# \end{aligned}$$ (eq-region)
#
# a parallelogram with the corners $(0, 1),$ $(\alpha^*, \beta^*),$ $(1, 0)$ and $(1 - \alpha^*, 1 - \beta^*)$ for
# $\alpha^* = (1 - L)/(U - L)$ and $\beta^* = L (U - 1)/(U - L)$. It extends the region known from differential privacy
# {cite:p}`kairouz2015composition`.

# %% tags=["parameters"]
flip: str = "1/4"  # probability with which each published membership bit is flipped, as a fraction below 1/2
priors: list[float] = [0.25, 0.5, 0.75]  # priors of the region plots
eps: float = 1.5  # both parameters of the region plots; must respect the prior bounds of all priors
rounds: int = 8  # most sample-and-train rounds of the composition plot
random_laws: int = 200  # random rational laws on which each property is tested
seed: int = 0  # seed of the random laws

# %% tags=["hide-input"]
from fractions import Fraction

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

from lethe_lib.bmp import (
    FORMS,
    PROPERTIES,
    TARGETS,
    ErrorRegion,
    bayes_error,
    bounds_from_node_dp,
    bounds_of,
    chain,
    closest_coupling,
    compose_rounds,
    error_region,
    exact_bounds,
    exact_differential,
    flipped_bits,
    largest_advantage,
    log_prior_odds,
    node_laws,
    prior_bounds,
    tally_family,
)
from lethe_lib.bmp.composition import Target
from lethe_lib.bmp.examples import KITE_EDGES, correlated_pair, exclusive_or, independent, single, snowball_on_kite
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

check_parameters(globals())
q = Fraction(flip)
assert 0 < q < Fraction(1, 2), f"flip is {flip}: give a fraction above 0 and below 1/2, such as 1/4"
assert rounds >= 1, f"rounds is {rounds}: at least 1 is needed"
assert random_laws >= 1, f"random_laws is {random_laws}: at least 1 is needed"
use_style()
BLUE, ORANGE, GREEN, GREY = PALETTE[0], PALETTE[1], PALETTE[2], "0.45"


# %% [markdown]
# ## Tiny example
#
# One node, sampled with probability $1/5$; the output is its membership bit, flipped with probability $q$. By hand:
# the likelihood ratio is $(1 - q)/q$ when the published bit is 1 and $q/(1 - q)$ when it is 0; posterior odds are
# these times the prior odds $1/4$. The library enumerates the same in fractions.

# %%
prior = Fraction(1, 5)
one_node = node_laws(single(prior), flipped_bits([0], q), 0)
for (bit,), ratio in one_node.ratios().items():
    print(f"published bit {bit}: likelihood ratio {ratio}, posterior odds {ratio * one_node.prior_odds}")
one = bounds_of(one_node)
print(f"Bayes error {bayes_error(one_node)}, largest TPR - FPR {largest_advantage(one_node)}")
glue_text("one_right", str(one.interval("odds")[1]))
glue_text("one_left", str(one.interval("odds")[0]))
glue_text("one_absent", str(1 / (1 + one.interval("odds")[0])))
glue_text("one_error", str(bayes_error(one_node)))
assert one.upper == (1 - q) / q and one.interval("odds")[1] == one.upper * Fraction(1, 4)

# %% [markdown]
# The largest posterior odds are {glue:text}`one_right`. While they stay below 1, $\varepsilon_R$ is *negative* in
# odds form: no output makes membership more likely than not, the best attack always says "non-member", and its error,
# {glue:text}`one_error`, is that of guessing from the prior. Absence, in contrast, can get the probability
# {glue:text}`one_absent`: the smallest odds are {glue:text}`one_left`. In ratio form both sides have the same parameter,
# $\log((1 - q)/q)$.
#
# Now two nodes with prior $1/2$ and both bits published, once sampled independently and once together: both or
# neither with probability $2/5$ each, one alone with $1/10$ each. The bit of one node then speaks about the other
# too.

# %%
pairs = {"independent": independent([Fraction(1, 2)] * 2), "sampled together": correlated_pair()}
rows = []
for name, law in pairs.items():
    channel = flipped_bits([0, 1], q)
    bounds, differential = exact_bounds(law, channel).exact[0], exact_differential(law, channel)[0]
    rows.append(
        {
            "pair": name,
            "posterior odds": " to ".join(map(str, bounds.interval("odds"))),
            "likelihood ratio given the other (MDP)": " to ".join(map(str, differential.ratio)),
            "posterior odds given the other (BMDP)": " to ".join(map(str, differential.odds)),
            "largest TPR - FPR": str(largest_advantage(node_laws(law, channel, 0))),
        }
    )
show_table(pd.DataFrame(rows), "Node 0 of two pairs: equal attack advantage, different privacy.")
glue_text("pair_together", rows[1]["posterior odds"].split(" to ")[1])
glue_text("pair_given", rows[1]["likelihood ratio given the other (MDP)"].split(" to ")[1])
assert rows[0]["largest TPR - FPR"] == rows[1]["largest TPR - FPR"]

# %% [markdown]
# Two lessons. The best attack has the same advantage in both pairs, so **accuracy does not determine privacy**. And
# in the dependent pair the largest likelihood ratio, {glue:text}`pair_together`, exceeds the one given the other
# node, {glue:text}`pair_given`: **MDP does not imply MP under dependence**, and sampling from a graph is dependence.
#
# A graph sampler makes it concrete. Snowball sampling on the kite of {numref}`fig-kite` starts at a uniform node and
# follows one random neighbour of each visited node until three nodes are in; all bits are published with flips.

# %% mystnb={"figure": {"name": "fig-kite", "caption": "One sampler, five nodes, five risks. Top: priors of snowball sampling on the kite. Bottom: the tight parameters of each node when all bits are published with flips. The forms order the nodes differently, and MP, the larger side of the ratio form, overstates one odds-form side of each node and understates the other."}, "image": {"alt": "Top, a graph of a triangle with a tail, each node labelled with its prior between 0.33 and 0.70. Bottom, a dot plot with one row per node showing eps_L and eps_R in both forms and the MP parameter."}} tags=["hide-input"]
kite, kite_channel = snowball_on_kite(), flipped_bits(range(5), q)
kite_bounds = exact_bounds(kite, kite_channel)
positions = {0: (0, 1), 1: (0, -1), 2: (1.2, 0), 3: (2.5, 0), 4: (3.8, 0)}
fig, (graph_ax, dots_ax) = plt.subplots(2, 1, figsize=(6.2, 6.4), height_ratios=[1, 1.25])
graph = nx.Graph(KITE_EDGES)
nx.draw_networkx_edges(graph, positions, ax=graph_ax, edge_color=GREY, width=1.5)
graph_ax.scatter(*zip(*(positions[n] for n in range(5))), s=420, color=BLUE, zorder=3)
for node, (x, y) in positions.items():
    graph_ax.text(x, y, str(node), color="white", ha="center", va="center", weight="bold", zorder=4)
    below = node == 1
    graph_ax.annotate(
        f"prior {kite_bounds.prior[node]:.2f}",
        (x, y + (-0.3 if below else 0.3)),
        ha="center",
        va="top" if below else "bottom",
        size=10,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )
graph_ax.set(xlim=(-0.8, 4.5), ylim=(-1.7, 1.9))
graph_ax.axis("off")
marks = {("ratio", "left"): (ORANGE, "none"), ("ratio", "right"): (BLUE, "none")}
for form, offset in (("ratio", 0.14), ("odds", -0.14)):
    for side, color, marker in (("left", ORANGE, "v"), ("right", BLUE, "^")):
        values = getattr(kite_bounds.parameters(form), side)
        face = color if form == "odds" else "none"
        label = rf"$\varepsilon_{side[0].upper()}$, {form}"
        dots_ax.scatter(
            values, np.arange(5) + offset, marker=marker, s=60, edgecolor=color, facecolor=face, label=label
        )
dots_ax.scatter(kite_bounds.mp, np.arange(5) + 0.14, marker="|", s=220, color=GREY, label="MP")
dots_ax.set(yticks=range(5), ylabel="node", xlabel="parameter", xlim=(0, None), ylim=(4.5, -0.5))
fig.legend(*dots_ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()

# %% [markdown]
# ## Method
#
# Everything below is enumeration in rational arithmetic: sum over all samples and all outputs, take the extremes. The
# code is the library's own.
#
# Differences from the paper:
#
# 1. We report both forms of the definition, because the printed one and the stated properties disagree.
# 2. $\eta$ is read as the prior *probability*; the paper may mean the odds.
# 3. For BMP followed by MP on one sample we state the condition under which it holds: MP *given the first output*.
# 4. For several rounds we give the formulas for three targets, since "membership" over rounds can mean each of them.
# 5. MP, MDP and BMDP are read from their names and summaries; BMDP bounds the posterior odds in every context.
# 6. The theory is tested, not only stated: each property runs over worked examples and random laws, under both forms.

# %% tags=["hide-output"]
show_source(node_laws, bounds_of, ErrorRegion, Target, compose_rounds)

# %% [markdown]
# ## Experiment
#
# Each stated property is a test that takes one law, one form and the *tight* parameters of every node. It runs on the
# worked examples and on random rational laws over two or three nodes with two to four outputs, some of them
# impossible for some samples. No tolerance is involved: a cell says "holds" when no case violates it, and otherwise
# counts the violations.

# %%
table = []
for name, stated in PROPERTIES.items():
    row = {"property": stated.title}
    for form in FORMS:
        found = tally_family(name, form, random_laws, seed)
        row[form] = "holds" if found.holds else f"fails ({found.violations} of {found.cases})"
    row["first counter-example"] = tally_family(name, "ratio", random_laws, seed).first or found.first
    table.append(row)
properties = pd.DataFrame(table)
show_table(properties, "Every stated property under both forms, by exact enumeration.")
verdicts = properties.set_index("property")[list(FORMS)].map(lambda cell: cell == "holds")
glue_number("properties", len(verdicts))
for form in FORMS:
    glue_number(f"{form}_holds", int(verdicts[form].sum()))
glue_number("only_odds", int((verdicts["odds"] & ~verdicts["ratio"]).sum()))
glue_number("only_ratio", int((verdicts["ratio"] & ~verdicts["odds"]).sum()))
assert len(properties) == len(PROPERTIES)

# %% [markdown]
# ## Results
#
# Of {glue:text}`properties` properties, {glue:text}`only_odds` hold in odds form only and {glue:text}`only_ratio` in
# ratio form only. Those that need the odds form are the ones that make BMP Bayesian: prior bounds, the leak of perfect
# training, the posterior reading, the dependence of the region on the prior, the step from the differential version
# without independence, and BMP-R below MP. Those that need the ratio form are the convenient sums of parameters: in odds
# form each release brings the prior with it, and adding two parameters counts it twice. One statement fails in both: a
# second output that is MP *on its own* does not compose.
#
# {numref}`fig-posterior` shows what a promise is worth to a node. {numref}`fig-regions` shows which errors it leaves
# to an attack, and {numref}`fig-grid` how the two parameters shape the region.

# %% mystnb={"figure": {"name": "fig-posterior", "caption": "The ratio form bounds how far an output moves the adversary, the odds form where it ends up. Bands: posteriors that equal parameters allow at each prior. In ratio form a node with a high prior may become almost certain; in odds form the band is flat and exists only for priors inside it, which is the prior bound."}, "image": {"alt": "Two panels with the prior on the horizontal and the posterior on the vertical axis. Left, a lens-shaped band around the diagonal. Right, a horizontal band that ends where the diagonal leaves it."}} tags=["hide-input"]
grid = np.linspace(0.001, 0.999, 999)
fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.8), sharey=True)
for ax, form in zip(axes, FORMS):
    log_odds = log_prior_odds(grid)
    inside = np.abs(log_odds) <= eps if form == "odds" else np.ones_like(grid, dtype=bool)
    shift = log_odds if form == "ratio" else 0.0
    low, high = (1 / (1 + np.exp(-(sign * eps + shift))) for sign in (-1, 1))
    low, high = np.broadcast_to(low, grid.shape), np.broadcast_to(high, grid.shape)
    ax.fill_between(grid[inside], low[inside], high[inside], color=BLUE, alpha=0.25, label="allowed posteriors")
    ax.plot(grid, grid, color=GREY, linestyle="--", label="posterior = prior")
    ax.set(title=f"{form} form", xlabel="prior", xlim=(0, 1), ylim=(0, 1), aspect="equal")
axes[0].set_ylabel("posterior")
axes[0].legend(loc="upper left", frameon=False)
plt.show()

# %% mystnb={"figure": {"name": "fig-regions", "caption": "The region of possible errors depends on the prior in odds form, and not in ratio form unless errors are weighted with the prior. Columns: priors. Dot: the strongest attack; dashed: guessing. The number is the area, for conditional errors the largest possible TPR - FPR."}, "image": {"alt": "Three rows of parallelograms, one column per prior. The first row, ratio form, is the same in all columns. The second, odds form, thins out and tilts as the prior leaves one half. The third, joint errors in ratio form, changes its aspect with the prior."}} tags=["hide-input"]
kinds = [("ratio, conditional errors", "ratio", False), ("odds, conditional errors", "odds", False)]
kinds.append(("ratio, joint errors", "ratio", True))
fig, axes = plt.subplots(3, len(priors), figsize=(2.2 * len(priors), 6.8), sharex=True, sharey=True, squeeze=False)
areas = {}
for row, (title, form, joint) in zip(axes, kinds):
    for ax, node_prior in zip(row, priors):
        region = error_region(eps, eps, node_prior, form, joint)
        corners = region.vertices
        ax.fill(*corners.T, facecolor=BLUE, alpha=0.25, edgecolor=BLUE)
        ax.plot(*corners[[0, 2]].T, color=GREY, linestyle="--", linewidth=1)
        ax.plot(*corners[1], "o", color=ORANGE, markersize=5)
        ax.text(0.97, 0.95, f"area {region.area:.3f}", transform=ax.transAxes, ha="right", va="top", size=10)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        areas[title, node_prior] = float(region.area)
    row[0].set_ylabel(title + "\nmissed members", size=10)
for ax, node_prior in zip(axes[0], priors):
    ax.set_title(f"prior {node_prior:g}")
for ax in axes[-1]:
    ax.set_xlabel("false alarms", size=10)
plt.show()
odds_areas = [area for (title, _), area in areas.items() if title.startswith("odds")]
assert len({area for (title, _), area in areas.items() if title == kinds[0][0]}) == 1
glue_number("area_smallest", min(odds_areas))
glue_number("area_largest", max(odds_areas))

# %% mystnb={"figure": {"name": "fig-grid", "caption": "Each parameter closes one side of the region. Rows: eps_L; columns: eps_R; filled: odds form at the first prior of the region plots; outline: ratio form with the same numbers, where both are positive. None: below the odds-form prior bound, where no algorithm has such parameters."}, "image": {"alt": "A grid of small parallelograms. Filled regions grow to the right and downward. The first row has no filled region. Outlines appear where both parameters are positive."}} tags=["hide-input"]
bound = prior_bounds(priors[0])
lefts = float(bound.left) + np.array([-0.3, 0.5, 2.0])
rights = float(bound.right) + np.array([0.3, 1.4, 3.0])
fig, axes = plt.subplots(3, 3, figsize=(6.4, 6.6), sharex=True, sharey=True)
for row, eps_left in zip(axes, lefts):
    for ax, eps_right in zip(row, rights):
        if eps_left >= bound.left and eps_right >= bound.right:
            corners = error_region(eps_left, eps_right, priors[0], "odds").vertices
            ax.fill(*corners.T, facecolor=BLUE, alpha=0.25, edgecolor=BLUE)
        else:
            ax.text(0.95, 0.95, "none", ha="right", va="top", color=GREY)
        if eps_left >= 0 and eps_right >= 0:
            corners = error_region(eps_left, eps_right).vertices
            ax.plot(*np.vstack([corners, corners[:1]]).T, color=ORANGE, linewidth=1.2)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 1), yticks=(0, 1))
    row[0].set_ylabel(rf"$\varepsilon_L$ = {eps_left:.2f}")
for ax, eps_right in zip(axes[0], rights):
    ax.set_title(rf"$\varepsilon_R$ = {eps_right:.2f}")
fig.supxlabel("false alarms")
fig.supylabel("missed members")
plt.show()

# %% [markdown]
# In odds form, the same parameters leave the strongest attack an advantage between {glue:text}`area_smallest` and
# {glue:text}`area_largest`, depending on the prior. A node with an extreme prior can be protected only in a strong
# sense or not at all.
#
# ### Composition
#
# **On one sample.** If the second output is MP *given* every first output, parameters add, in both forms. That the
# second output is MP on its own is not enough. Draw two memberships by fair coins; publish first their exclusive or,
# then the bit of node 1. Each output alone says nothing about node 0, both together reveal it.

# %%
xor = exclusive_or()
first = exact_bounds(xor.law, xor.channel).exact[0]
second = exact_bounds(xor.law, lambda sample: xor.second(sample, None)).exact[0]
both = exact_bounds(xor.law, chain(xor.channel, xor.second)).exact[0]
for name, node in (("exclusive or", first), ("bit of node 1", second), ("both", both)):
    print(f"{name}: likelihood ratio of node 0 between {node.lower} and {node.upper}. {node.reason}")
assert first.upper == second.upper == 1 and both.reason

# %% mystnb={"figure": {"name": "fig-rounds", "caption": "What several rounds reveal depends on the question, and adding parameters is a bound for all three questions only in ratio form. Lines: exact parameter eps_R of K independent rounds for three questions about one node; dashed, on top of *all against none*, where adding is exact: K times the parameter of one round. In odds form the question about some round rises above the dashed line: a single round never makes membership likely, several do."}, "image": {"alt": "Two panels with the number of rounds on the horizontal axis and eps_R on the vertical axis. Left, ratio form: all three lines stay at or below the dashed sum. Right, odds form: the line for some round rises steeply above the falling dashed sum."}} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.8))
single_round = exact_bounds(single(prior), flipped_bits([0], q))
counts = np.arange(1, rounds + 1)
composed = {}
for ax, form in zip(axes, FORMS):
    left, right = (float(side[0]) for side in single_round.parameters(form))
    for target, color, marker in zip(TARGETS, (BLUE, ORANGE, GREEN), "osD"):
        values = [
            float(compose_rounds([left] * k, [right] * k, target, form, priors=[float(prior)] * k).right)
            for k in counts
        ]
        composed[form, target] = values
        ax.plot(counts, values, color=color, marker=marker, markersize=5, label=target)
    ax.plot(counts, counts * right, color=GREY, linestyle="--", label="sum of the parameters", zorder=3)
    ax.set(title=f"{form} form", xlabel="rounds", xticks=counts)
axes[0].set_ylabel(r"$\varepsilon_R$")
axes[0].legend(frameon=False, loc="upper left")
plt.show()
sums = {form: counts * float(single_round.parameters(form).right[0]) for form in FORMS}
assert all(np.all(values <= sums["ratio"] + 1e-12) for (form, _), values in composed.items() if form == "ratio")
glue_number("some_after_all", composed["odds", "some round"][-1])

# %% [markdown]
# **Over rounds.** Let $\omega_k$ be the posterior odds of membership in round $k$, which has its own sample and training.
# The odds that the node was in *some* round are $\prod_k (1 + \omega_k) - 1$; in *all* rounds
# $1/(\prod_k (1 + 1/\omega_k) - 1)$; in *all against none* $\prod_k \omega_k$. Each grows with every $\omega_k$, so inserting $e^{\varepsilon_R}$ and $e^{-\varepsilon_L}$
# gives the exact parameters of the composition ({numref}`fig-rounds`). For "some round" the odds-form parameter has
# reached {glue:text}`some_after_all` at the last point of the figure.
#
# ### From differential privacy
#
# Let training be $\varepsilon_0$-differentially private for adding or removing one node
# {cite:p}`dwork2006calibrating`. If the samples with and without node $i$ can be coupled so that they never differ in
# more than $k_i$ nodes, then $|\log \Lambda_i| \le k_i \varepsilon_0$. Independent membership has $k_i = 1$, a
# uniform sample of fixed size $k_i = 2$. The smallest $k_i$ is a flow problem, and on the kite it is larger:
# structure weakens what differential privacy promises.

# %% tags=["hide-input"]
eps_bit = float(np.log(float((1 - q) / q)))  # each flipped bit alone
promised = bounds_from_node_dp(kite, eps_bit)
show_table(
    pd.DataFrame(
        {
            "node": [str(node) for node in kite_bounds.nodes],
            "prior": kite_bounds.prior,
            "distance k": [closest_coupling(kite, node).distance for node in kite_bounds.nodes],
            "MP from k eps_0": promised.mp,
            "exact MP": kite_bounds.mp,
            "MP if independent": eps_bit,
        }
    ),
    "Snowball on the kite: what differential privacy of the training promises for membership, and the exact value.",
)
assert np.all(promised.mp >= kite_bounds.mp - 1e-12)
glue_number("above_independent", int(np.sum(kite_bounds.mp > eps_bit + 1e-12)))

# %% [markdown]
# Of five nodes, {glue:text}`above_independent` leak more than the value that would hold under independent sampling.
#
# ### Claim checks
#
# One cell per claim. The family of laws is fixed, so these do not depend on the parameters of this chapter. All cases
# are exact, so there are no intervals. The overall verdict takes the statement with the *printed* formula, the ratio
# form; the two verdicts beside it say how each form fares.

# %%
finding = check_claim("B01")

# %%
finding = check_claim("B02")

# %%
finding = check_claim("B03")

# %%
finding = check_claim("B04")

# %%
finding = check_claim("B05")

# %%
finding = check_claim("B06")

# %%
finding = check_claim("B07")

# %%
finding = check_claim("B08")

# %%
finding = check_claim("B09")

# %%
finding = check_claim("B10")

# %%
finding = check_claim("B11")

# %%
finding = check_claim("B15")

# %%
finding = check_claim("B16")

# %%
finding = check_claim("B24")

# %%
finding = check_claim("B25")

# %% [markdown]
# ## What would change our mind
#
# The full text of the paper, if it defines BMP by posterior odds: then the verdicts of the odds form are the
# verdicts. Or a definition of the prior bounds, of the region or of composition that differs from our reading. A
# single law that violates a cell marked "holds" would overturn that cell; the tests of the library look for one with
# random laws at every run.
#
# ## Summary
#
# - The printed formula is a likelihood ratio: the prior cancels. Most statements around it are about posterior odds.
# - Prior bounds: ratio form {glue:text}`B05_verdict` as printed; in odds form no training can beat the sampler.
# - {glue:text}`only_odds` properties hold in odds form only; {glue:text}`only_ratio` in ratio form only, the sums of
#   parameters.
# - Per node the forms differ by the log prior odds, so later chapters estimate one and report both.
# - Equal attack advantage does not mean equal privacy, and errors alone do not tell the best attack.
# - BMP and MP compose on one sample if MP holds given the first output, and need not otherwise; over rounds the question
#   decides the formula.
# - Dependence between memberships breaks the step from MDP to MP and multiplies what differential privacy allows.
#
# ## Exercises
#
# :::{exercise}
# :label: ex-bmp-prior
# In the tiny example, for which priors does the Bayes test follow the published bit?
# :::
#
# :::{solution} ex-bmp-prior
# :class: dropdown
# It says "member" for bit 1 when $o (1 - q)/q > 1$, that is for priors above $q$, and "non-member" for bit 0 when
# $o\, q/(1 - q) < 1$, that is for priors below $1 - q$. So it follows the bit for priors between $q$ and $1 - q$, and
# otherwise ignores it, although the errors of following it are $(q, q)$ at every prior.
# :::
#
# :::{exercise}
# :label: ex-bmp-worst
# Which node of the kite decides the algorithm-level $\varepsilon_R$ in each form? Find two nodes $(L, U, \eta)$ for
# which the forms disagree about the worst node.
# :::
#
# :::{solution} ex-bmp-worst
# :class: dropdown
# `kite_bounds.parameters(form).right.argmax()` says node 3 in both forms, which order the other nodes differently. They
# disagree for $U = 4$ with prior $1/10$ against $U = 2$ with prior $9/10$: the ratio form blames the first, the odds form
# the second.
# :::
#
# :::{exercise}
# :label: ex-bmp-delta
# Use `lethe_lib.bmp.smallest_deltas` to find how much probability $\delta$ must be allowed on each side for the
# kite's node 3 to satisfy MP with $\varepsilon = 2$.
# :::
#
# :::{solution} ex-bmp-delta
# :class: dropdown
# `smallest_deltas(node_laws(kite, kite_channel, 3), factor, factor, "ratio")` with `factor` a fraction close to
# $e^2$, such as `Fraction(7389, 1000)`. The answer is exact for that factor. This variant is ours: no source states
# one.
# :::

# %% tags=["hide-input", "nbval-ignore-output"]
provenance(
    {"flip": flip, "priors": priors, "eps": eps, "rounds": rounds, "random_laws": random_laws, "seed": seed},
)
