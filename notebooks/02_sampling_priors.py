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
# (ch-sampling-priors)=
# # Sampling priors: what is known before any training
#
# :::{admonition} In this chapter
# **Question.** A training graph is a sample of a larger graph. How likely was each node to be in it, how well can
# that be known, and how much does it give away before anything is trained?
#
# **At the end you can say** how seven samplers choose nodes and training edges, what the inclusion prior of a node is
# and how uncertain, how far each sampler is from uniform, and which leakage no training method can undo.
#
# **Run time.** Under a minute on a CPU. **Data.** A generated graph, computed here, and published draws from Cora,
# CiteSeer, PubMed and Photo.
# :::
#
# ## Claims
#
# The first two are statements of {cite:t}`yildirim2026bmp`, sharpened by us where the check says so. The last is
# ours: it measures on real graphs what the prior bounds of {ref}`ch-bmp-theory` mean.
#
# :::{prf:conjecture} B13
# :label: claim-b13
# Some nodes of a graph are inherently more likely to be sampled into the training graph than others.
# :::
#
# :::{prf:conjecture} B14
# :label: claim-b14
# Training and other nodes are distinguishable before any training: they are not exchangeable.
# :::
#
# :::{prf:conjecture} O01
# :label: claim-o01
# In odds form, snowball sampling alone keeps $\varepsilon_L + \varepsilon_R$ above one nat, whatever the training
# does.
# :::

# %% [markdown]
# ## Setting
#
# A sampler draws a set $S$ of nodes from a graph of $n$ nodes and says which edges training may use. With the
# membership $M_i = 1$ when $i \in S$, the **inclusion prior** of node $i$ and its log-odds are
#
# $$\eta_i = \Pr(M_i = 1), \qquad \log o_i = \log \frac{\eta_i}{1 - \eta_i}.$$ (eq-inclusion-prior)
#
# Survey statistics has worked with such probabilities for long {cite:p}`horvitz1952sampling`. Here the adversary
# knows the graph and the sampler, hence every $\eta_i$, before seeing any model. ({ref}`ch-edge-audit` writes $\gamma_e$
# for the same of an edge.) From $T$ draws, of which $c_i$ contain node $i$, we estimate
#
# $$\begin{aligned}
# \hat\eta_i &= \frac{c_i + 1/2}{T + 1}, \\
# \widehat{\log o_i} &= \log \frac{c_i + 1/2}{T - c_i + 1/2}, \\
# \text{s.e.} &\approx \frac{1}{\sqrt{T \hat\eta_i (1 - \hat\eta_i)}}.
# \end{aligned}$$ (eq-simulated-prior)
#
# The error is stated for the log-odds, because these are what shift the parameters of Bayesian Membership Privacy. In
# odds form no training can go below
#
# $$\begin{aligned}
# \varepsilon_R &\ge \max_i \log o_i, \qquad \varepsilon_L \ge -\min_i \log o_i, \\
# \varepsilon_L + \varepsilon_R &\ge \max_i \log o_i - \min_i \log o_i.
# \end{aligned}$$ (eq-sampled-bounds)
#
# In ratio form the prior cancels and both bounds are 0, whatever the sampler.

# %% tags=["parameters"]
dataset: str = "synthetic"  # graph of the live experiment, any name that load_graph takes
sampler: str = "snowball"  # sampler of the live figures
ratio: float = 0.1  # share of the nodes to sample
draws: int = 2000  # draws per sampler, at least 200
seed: int = 0  # seed of the draws

# %% tags=["hide-input"]
import warnings

warnings.filterwarnings("ignore", message="IProgress not found")  # no progress bars here

from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from lethe_lib.data import canonical, load_graph
from lethe_lib.reporting import (
    PALETTE,
    as_text,
    check_claim,
    check_parameters,
    glue_number,
    glue_text,
    provenance,
    show_source,
    show_table,
    use_style,
)
from lethe_lib.reporting.claims_sampling_priors import TITLES, prior_gaps, structure_aucs
from lethe_lib.sampling import (
    SAMPLERS,
    draw_counts,
    inclusion_priors,
    law_priors,
    log_odds_spread,
    priors_from_counts,
    sample_law,
    sample_nodes,
    total_variation,
)
from lethe_lib.study.sampling_priors import load_sampling_priors, load_table, structure_of

check_parameters(globals())
SAMPLERS[sampler]
assert draws >= 200, "use at least 200 draws: the Monte Carlo figure splits them"
use_style()
COLOURS = dict(zip(SAMPLERS, PALETTE, strict=False))
LABELS = {name: name.replace("_", " ") for name in SAMPLERS}
LINES = dict(zip(SAMPLERS, ("--", ":", "-", "-", "-.", (0, (6, 2)), (0, (3, 1, 1, 1))), strict=True))


# %% [markdown]
# ## Tiny example
#
# A kite: the triangle 0, 1, 2 with the tail 2, 3, 4. Snowball starts at one uniform node, looks at one random
# neighbour of each node in turn, and stops at three nodes or when it has nowhere to go. By hand: from node 4 the only
# neighbour is 3; from 3 it is 2 or 4, each with probability $1/2$. Node 4 was seen already, so that the snowball dies
# there. Hence starting at 4 gives $\{3, 4\}$ and $\{2, 3, 4\}$ with probability $1/2$ each. The library enumerates
# every path in fractions.

# %%
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]
kite = canonical(
    Data(x=torch.eye(5), edge_index=torch.tensor(EDGES).T, y=torch.zeros(5, dtype=torch.int64), num_nodes=5),
    name="kite",
    num_classes=1,
)
law = sample_law("snowball", kite, ratio=0.6, k=1, seeds_per_class=1)
assert sum(law.values()) == 1
ordered = sorted(law, key=lambda members: (len(members), sorted(members)))
show_table(
    pd.DataFrame(
        [("{" + ", ".join(map(str, sorted(members))) + "}", str(law[members])) for members in ordered],
        columns=["sampled set", "probability"],
    ),
    "Every set that this snowball can draw from the kite, with its exact probability.",
)
stopped = sum((mass for members, mass in law.items() if len(members) < 3), Fraction(0))
glue_text("kite_stopped", str(stopped))

# %% [markdown]
# With probability {glue:text}`kite_stopped` the snowball starves: it stops short of three nodes. Adding up the sets
# that contain a node gives its prior. Below it stands beside the estimate from simulated draws.

# %%
exact = law_priors(law, 5)
simulated = inclusion_priors("snowball", kite, 0.6, draws=draws, seed=seed, k=1, seeds_per_class=1)
true_odds = np.log([float(prior / (1 - prior)) for prior in exact])
show_table(
    pd.DataFrame(
        {
            "node": [str(node) for node in range(5)],
            "degree": [2, 2, 3, 2, 1],
            "prior": [str(prior) for prior in exact],
            "estimate": simulated.prior,
            "log-odds": true_odds,
            "estimated log-odds": simulated.log_odds,
            "its standard error": simulated.standard_error,
        }
    ),
    f"Exact and simulated inclusion priors on the kite, {draws} draws.",
)
glue_text("kite_middle", str(exact[2]))
glue_text("kite_end", str(exact[4]))
glue_number("kite_gap", true_odds.max() - true_odds.min())
kite_scores = (simulated.log_odds - true_odds) / simulated.standard_error
assert np.abs(kite_scores).max() < 5

# %% [markdown]
# The node in the middle has prior {glue:text}`kite_middle`, the end of the tail {glue:text}`kite_end`. So in odds
# form $\varepsilon_L + \varepsilon_R$ cannot go below {glue:text}`kite_gap` nats, even if training publishes nothing
# at all.
#
# ## Method
#
# Seven samplers, each one file, written once in plain Python, from which exact laws are enumerated, and once
# compiled, for many draws:
#
# | sampler | nodes | edges by default |
# |---|---|---|
# | uniform | a fixed number, all sets equally likely | induced |
# | bernoulli | each node on its own with probability $r$ | induced |
# | degree_weighted | a fixed number, one after the other in proportion to degree; isolated nodes never | induced |
# | snowball | waves of at most 3 neighbours from 10 seeds of each class {cite:p}`goodman1961snowball` | visited |
# | random_walk | a walker that returns to its start with probability 0.15 {cite:p}`leskovec2006sampling` | induced |
# | forest_fire | burns a geometric number of neighbours, again and again {cite:p}`leskovec2006sampling` | induced |
# | ego | sampled neighbourhoods of uniform centres, 5 then 5 neighbours {cite:p}`hamilton2017sage` | visited |
#
# *Induced* edges are all edges between sampled nodes; *visited* edges are those that the exploration looked at.

# %% tags=["hide-input"]
show_source(SAMPLERS["snowball"].plain, priors_from_counts)

# %% [markdown]
# Where the prior is known, it is not simulated: $\eta_i = \lfloor rn \rfloor / n$ for uniform and $\eta_i = r$
# for Bernoulli sampling. For degree-weighted sampling give node $i$ an exponential clock of rate $d_i$ and take the
# first $m$ that ring; with $x = e^{-t}$ and $N_{-i}(x)$ the number of other clocks that have rung,
#
# $$\begin{aligned}
# \eta_i = \int_0^1 & d_i\, x^{d_i - 1} \\
# & \times \Pr\bigl(N_{-i}(x) \le m - 1\bigr)\, dx,
# \end{aligned}$$ (eq-clocks)
#
# which is a one-dimensional integral, evaluated to about nine digits. There is no such formula for the explorers.
#
# **Differences from the papers.**
#
# 1. In the split that the source builds on, a visited pair becomes a training edge even when its second node was
#    refused because the sample was full ({cite:t}`khosla2026structure`). Our default keeps edges inside the sample;
#    `preset="published"` keeps the quirk.
# 2. As we read that split, its seeds wait class by class, so that at small ratios the classes with a low index grow first. Our default puts the seeds in random order; `preset="published"` keeps theirs.
# 3. A snowball whose frontier runs dry stops short, as published. `fresh_starts=True` goes on from a new uniform
#    node.
# 4. The random walk counts as stuck after 100 steps without a new node, and then jumps to a new uniform start.
# 5. A sample's size is $\lfloor rn \rfloor$ in decimal arithmetic, so that 0.29 of 100 nodes is 29.
# 6. The degree-weighted and the ego sampler are standard designs that the source does not name.
#
# ## Experiment
#
# First live, on one graph. One draw of every sampler, and the training edges that it leaves.

# %%
data = load_graph(dataset)
least = np.ceil(100 * SAMPLERS["snowball"].settings().seeds_per_class * data.num_classes / data.num_nodes) / 100
assert ratio >= least, (
    f"ratio is {ratio:g}: on {dataset} use at least {least:.2f}, since snowball starts from so many nodes"
)
nodes = structure_of(data)
rows = []
for name in SAMPLERS:
    drawn = sample_nodes(name, data, ratio, seed)
    settings = {"edges": "induced"} if drawn.kind == "visited" else {}
    induced = sample_nodes(name, data, ratio, seed, **settings)
    assert torch.equal(drawn.nodes, induced.nodes)
    rows.append(
        (LABELS[name], len(drawn.nodes), drawn.starts, drawn.kind, drawn.edges.shape[1], induced.edges.shape[1])
    )
show_table(
    pd.DataFrame(rows, columns=["sampler", "nodes", "starting nodes", "edges kept", "training edges", "induced edges"]),
    f"One draw of each sampler on {dataset}, ratio {ratio:g}.",
)

# %% [markdown]
# Samples of the same size differ much in what they leave to train on. Now the priors: exact where a formula exists,
# from simulation otherwise.

# %%
priors = {name: inclusion_priors(name, data, ratio, draws=draws, seed=seed) for name in SAMPLERS}
show_table(
    pd.DataFrame(
        [
            (
                LABELS[name],
                found.method,
                found.prior.min(),
                found.prior.max(),
                log_odds_spread(found),
                total_variation(found.prior),
                len(found.degenerate),
            )
            for name, found in priors.items()
        ],
        columns=["sampler", "method", "smallest", "largest", "spread", "variation", "degenerate"],
    ),
    f"Inclusion priors on {dataset} at ratio {ratio:g}; spread of the log-odds in nats, Monte Carlo noise removed; total "
    f"variation. Degenerate: nodes of prior 0 or 1, or in none or all of the {draws:,} draws. There the estimate is a floor, "
    f"{as_text(0.5 / (draws + 1))}, and the spread leaves them out.",
)
presets = {
    preset: inclusion_priors("snowball", data, ratio, draws=draws, seed=seed, preset=preset).prior
    for preset in ("corrected", "published")
}
show_table(
    pd.DataFrame(
        {
            "class": [str(label) for label in sorted(nodes["label"].unique())],
            "nodes": nodes.groupby("label").size().to_list(),
            **{preset: pd.Series(prior).groupby(nodes["label"]).mean().to_list() for preset, prior in presets.items()},
        }
    ),
    f"Mean snowball prior of each class on {dataset} at ratio {ratio:g}, under both presets.",
)
chosen = priors[sampler]
glue_text("live_sampler", LABELS[sampler])
glue_text("live_dataset", dataset)
glue_number("live_spread", log_odds_spread(chosen))
correlation = (
    np.corrcoef(np.log1p(nodes["degree"]), np.log(chosen.prior + 1e-12))[0, 1] if chosen.prior.std() > 0 else 0
)
glue_number("live_correlation", correlation)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-live-priors", "caption": "Live run: the inclusion prior of each node against its degree; the dashed line is the uniform prior. With the default snowball it rises with the degree."}, "image": {"alt": "Scatter plot of inclusion prior against degree on a log axis, one point a node, coloured by core number, with a dashed line at the sampling ratio."}}
fig, ax = plt.subplots()
shown = ax.scatter(
    np.maximum(nodes["degree"], 0.7), chosen.prior, c=nodes["core"], cmap="viridis", s=14, alpha=0.8, linewidths=0
)
ax.axhline(ratio, color="0.3", linestyle="--", linewidth=1.2)
ax.set(
    xscale="log", xlabel="degree", ylabel="inclusion prior", title=f"{LABELS[sampler]} on {dataset}, ratio {ratio:g}"
)
fig.colorbar(shown, label="core number")
plt.show()

# %% [markdown]
# Under {glue:text}`live_sampler` on {glue:text}`live_dataset` the log-odds have a spread of {glue:text}`live_spread`
# nats, and the correlation of log prior and log degree is {glue:text}`live_correlation`. The order in which seeds
# wait, a detail of the code, moves the prior of whole classes: compare the two presets above.
#
# **Monte Carlo error.** Two independent halves of the draws give two estimates of every log-odds. If the stated
# standard error is right, their differences are of size $\sqrt{2}$ times it, at any number of draws.

# %%
steps = np.unique(np.geomspace(50, draws // 2, 8).astype(int))
observed, stated = [], []
for step in steps:
    first = priors_from_counts(draw_counts(sampler, data, ratio, int(step), seed).counts, int(step))
    second = draw_counts(sampler, data, ratio, int(step), seed, first=draws // 2)
    second = priors_from_counts(second.counts, int(step))
    inner = (first.prior * step > 5) & ((1 - first.prior) * step > 5)
    difference = (first.log_odds - second.log_odds)[inner]
    observed.append(np.sqrt(np.mean(difference**2)) if inner.any() else np.nan)
    stated.append(
        np.sqrt(np.mean((first.standard_error**2 + second.standard_error**2)[inner])) if inner.any() else np.nan
    )
error_ratio = observed[-1] / stated[-1]
glue_number("error_ratio", error_ratio)
glue_number("error_now", np.median(chosen.standard_error))

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-monte-carlo", "caption": "The observed difference between two halves of the draws follows the stated standard error, and falls roughly with one over the square root of the number of draws."}, "image": {"alt": "Line plot on log axes of the root mean square difference of log-odds between two halves against the number of draws in each half, observed points on the stated line."}}
fig, ax = plt.subplots()
ax.plot(steps, stated, color=PALETTE[0], label="stated")
ax.plot(steps, observed, "o", color=PALETTE[1], label="observed")
ax.set(xscale="log", yscale="log", xlabel="draws in each half", ylabel="difference of log-odds (nats)")
ax.legend()
plt.show()

# %% [markdown]
# At the last point the observed difference is {glue:text}`error_ratio` times the stated one. With all draws the
# median standard error of the log-odds is {glue:text}`error_now` nats.
#
# ## Results
#
# The published draws: four real graphs, seven samplers, two ratios, {glue:text}`published_draws` draws each
# (`python -m lethe_lib run sampling_priors --publish` makes them again). Nodes that were in none or in all of the draws are left
# out of the spread, since for their log-odds the draws give only a floor or a ceiling.

# %% tags=["hide-input"]
table = load_sampling_priors()
GRAPHS = [name for name in TITLES if name in set(table["graph"])]
cells = {
    key: priors_from_counts(cell["first_half"].to_numpy(int) + cell["second_half"].to_numpy(int), cell["draws"].iloc[0])
    for key, cell in table.groupby(["sampler", "ratio", "graph"], observed=True)
}
published_draws = int(table["draws"].iloc[0])
glue_text("published_draws", as_text(published_draws))
glue_text("published_nodes", as_text(int(table.groupby("graph")["node"].max().sum() + len(GRAPHS))))


def by_graph(measure, caption):
    """Show one number a graph for every sampler and ratio."""
    rows = [
        {"sampler": LABELS[name], "ratio": f"{r:g}"}
        | {TITLES[graph]: measure(cells[name, r, graph]) for graph in GRAPHS}
        for r in (0.1, 0.5)
        for name in SAMPLERS
    ]
    show_table(pd.DataFrame(rows), caption)


by_graph(log_odds_spread, "Spread of the log prior odds over nodes (nats), Monte Carlo noise removed: 0 is uniform.")
by_graph(
    lambda found: total_variation(found.prior),
    "Total variation between the share of each node in the samples and 1/n. The uniform rows are Monte Carlo noise.",
)
spreads = {key: log_odds_spread(found) for key, found in cells.items()}
glue_number("spread_snowball_low", min(value for (name, _, _), value in spreads.items() if name == "snowball"))
glue_number("spread_snowball_high", max(value for (name, _, _), value in spreads.items() if name == "snowball"))
glue_number("spread_uniform_high", max(value for (name, _, _), value in spreads.items() if name == "uniform"))
assert all(value < 0.05 for (name, _, _), value in spreads.items() if name in ("uniform", "bernoulli"))

# %% [markdown]
# Under snowball sampling the spread lies between {glue:text}`spread_snowball_low` and
# {glue:text}`spread_snowball_high` nats; for uniform sampling, whose true spread is 0, the same estimate is at most
# {glue:text}`spread_uniform_high`.
#
# Where does the spread come from? From the degree first; under snowball sampling also from the class, since every class
# gets ten seeds whatever its size; and from the position in the graph.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-prior-degree", "caption": "On real graphs at ratio 0.1 the mean inclusion prior rises with the degree under every sampler but uniform and Bernoulli; the samplers differ in how steeply, and for hubs it approaches certainty under some."}, "image": {"alt": "Four panels, one a graph, with lines of mean inclusion prior against degree on log axes for seven samplers; two lines are flat at 0.1, the others rise."}}
fig, axes = plt.subplots(2, 2, figsize=(7.2, 6.4), sharex=True, sharey=True)
for ax, graph in zip(axes.flat, GRAPHS, strict=False):
    part = table[(table["graph"] == graph) & (table["ratio"] == 0.1) & (table["degree"] > 0)]
    bins = np.floor(3 * np.log2(part["degree"])) / 3
    means = part.assign(bin=2**bins).groupby(["sampler", "bin"], observed=True)[["degree", "prior"]].mean()
    for name in SAMPLERS:
        ax.plot(
            means.loc[name, "degree"],
            means.loc[name, "prior"],
            linestyle=LINES[name],
            color=COLOURS[name],
            label=LABELS[name],
        )
    ax.set(xscale="log", yscale="log", title=TITLES[graph])
for ax in axes[-1]:
    ax.set_xlabel("degree")
for ax in axes[:, 0]:
    ax.set_ylabel("mean inclusion prior")
fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-prior-map", "caption": "Maps of the mean inclusion prior under snowball sampling at ratio 0.1: it grows with the degree, and at equal degree it depends on the core number too. Empty cells have no nodes."}, "image": {"alt": "Four heat maps, one a graph, of mean inclusion prior over degree on the horizontal and core number on the vertical axis, with colours from dark for low to bright for high priors."}}
fig, axes = plt.subplots(2, 2, figsize=(7.2, 6.4))
for ax, graph in zip(axes.flat, GRAPHS, strict=False):
    part = table[(table["graph"] == graph) & (table["ratio"] == 0.1) & (table["sampler"] == "snowball")]
    part = part[part["degree"] > 0]
    columns = np.floor(2 * np.log2(part["degree"])).astype(int)
    widths = max(1, int(np.ceil(part["core"].max() / 12)))
    lines = (part["core"] - 1) // widths
    image = np.full((lines.max() + 1, columns.max() + 1), np.nan)
    for (line, column), prior in part["prior"].groupby([lines, columns]).mean().items():
        image[line, column] = prior
    shown = ax.pcolormesh(
        2 ** (np.arange(image.shape[1] + 1) / 2),
        1 + widths * np.arange(image.shape[0] + 1) - 0.5,
        image,
        cmap="viridis",
    )
    ax.set(xscale="log", title=TITLES[graph], xlabel="degree", ylabel="core number")
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.grid(False)
    fig.colorbar(shown, ax=ax, label="mean prior")
plt.show()


# %% tags=["hide-input"]
def explained(part, columns, classes=False):
    """Share of the variance of the log prior odds that a linear fit on log structure explains."""
    fit = [np.ones(len(part)), *np.log1p(part[columns].to_numpy(float)).T]
    fit += [part["label"] == label for label in part["label"].unique()] if classes else []
    fit = np.column_stack(fit).astype(float)
    target = part["log_odds"].to_numpy()
    residual = target - fit @ np.linalg.lstsq(fit, target, rcond=None)[0]
    return 1 - residual.var() / target.var()


position = ["degree", "core", "component", "neighbour_degree"]
rows = []
for graph in GRAPHS:
    part = table[(table["graph"] == graph) & (table["ratio"] == 0.1) & (table["sampler"] == "snowball")]
    shares = explained(part, ["degree"]), explained(part, position), explained(part, position, classes=True)
    rows.append((TITLES[graph], *shares))
shares = pd.DataFrame(rows, columns=["graph", "degree", "and position", "and class"])
show_table(
    shares,
    "Share of the variance of the log prior odds explained, snowball at ratio 0.1; each column adds to the last.",
)
added = shares.set_index("graph")[["degree", "and position", "and class"]].diff(axis=1)
more_by_position = [graph for graph, row in added.iterrows() if row["and position"] >= row["and class"]]
glue_text("position_first", ", ".join(more_by_position) or "none")
glue_number("class_first", len(GRAPHS) - len(more_by_position))
glue_number("published_graphs", len(GRAPHS))
for column, key in (("degree", "by_degree"), ("and position", "by_position"), ("and class", "by_class")):
    glue_number(f"{key}_low", shares[column].min())
    glue_number(f"{key}_high", shares[column].max())

# %% [markdown]
# Degree alone explains {glue:text}`by_degree_low` to {glue:text}`by_degree_high` of the variance, with position
# {glue:text}`by_position_low` to {glue:text}`by_position_high`, with the class {glue:text}`by_class_low` to
# {glue:text}`by_class_high`. The class adds more than position on {glue:text}`class_first` of
# {glue:text}`published_graphs` graphs (not on: {glue:text}`position_first`).
#
# **Are the stated intervals right?** For three samplers the prior is known, so that the published simulation can be
# checked on {glue:text}`published_nodes` nodes: standardised errors should have size 1, and 95 % intervals should
# cover 95 %.

# %% tags=["hide-input"]
known = table[table["exact_prior"].between(0.001, 0.999)]
score = (known["log_odds"] - known["exact_log_odds"]) / known["standard_error"]
covered = known["exact_prior"].between(known["lower"] - 1e-7, known["upper"] + 1e-7)
checks = known.assign(score=score**2, covered=covered).groupby(["sampler", "ratio"], observed=True)[
    ["score", "covered"]
]
calibration = checks.mean().reset_index()
calibration["score"] = np.sqrt(calibration["score"])
show_table(
    calibration.assign(
        sampler=calibration["sampler"].map(LABELS).astype(str), ratio=calibration["ratio"].map("{:g}".format)
    ).rename(columns={"score": "size of standardised errors", "covered": "share covered"}),
    "Simulated log-odds against exact ones, over the nodes of all graphs with priors between 0.001 and 0.999.",
)
assert calibration["score"].between(0.9, 1.1).all() and calibration["covered"].between(0.93, 0.97).all()
glue_number("covered_low", calibration["covered"].min())
glue_number("covered_high", calibration["covered"].max())

# %% [markdown]
# Coverage lies between {glue:text}`covered_low` and {glue:text}`covered_high`.
#
# **Starving.** A snowball that runs out of new nodes is smaller than its ratio says. With the published
# numbers of seeds and neighbours this is not rare:

# %% tags=["hide-input"]
drawn = load_table("draws")
starving = drawn[drawn["starved"] > 0]
show_table(
    pd.DataFrame(
        {
            "graph": starving["graph"].map(TITLES),
            "sampler": starving["sampler"].map(LABELS).astype(str),
            "ratio": starving["ratio"].map("{:g}".format),
            "asked for": starving["target"],
            "mean size": starving["mean_size"],
            "share of draws that starve": starving["starved"],
        }
    ),
    "Settings in which samples stop short of the nodes asked for.",
)
glue_number("starving_cells", len(starving))
glue_text("starving_graphs", ", ".join(TITLES[name] for name in TITLES if name in set(starving["graph"])) or "none")

# %% [markdown]
# So in {glue:text}`starving_cells` settings (graphs: {glue:text}`starving_graphs`), a comparison of snowball with
# uniform sampling at the same ratio compares samples of different size. `fresh_starts=True` mends it.
#
# **Bounds that no training can beat.** The smallest parameters in odds form, from sampling alone. The extreme nodes
# are chosen on one half of the draws and measured on the other, because the largest of many noisy estimates is too
# large.

# %% tags=["hide-input"]
gaps = prior_gaps(level=0.05).set_index(["sampler", "ratio", "graph"])


def bound_text(cell, side):
    """A bound, or what it is at least where the draws cannot tell the prior from 0 or 1."""
    return f"{cell[side]:.2f}" if np.isfinite(cell[f"{side}_high"]) else f"≥ {cell[f'{side}_low']:.2f}"


fixed = {r: np.log(r / (1 - r)) for r in (0.1, 0.5)}
largest = np.log((published_draws // 2 - 0.5) / 1.5)  # in all draws of a half but one
rows = [
    {
        "sampler": LABELS[name],
        "ratio": f"{r:g}",
        **{
            TITLES[graph]: " + ".join(
                bound_text(gaps.loc[(name, r, graph)], side) for side in ("eps_right", "eps_left")
            )
            for graph in GRAPHS
        },
    }
    for r in (0.1, 0.5)
    for name in SAMPLERS
]
show_table(
    pd.DataFrame(rows),
    "Smallest eps_R + smallest eps_L (odds form, nats) that sampling alone allows. Uniform: they cancel up to noise. "
    f"{largest:.2f} is the largest finite value that {published_draws // 2:,} draws can give; with ≥ a node was in all or none of "
    "the draws, and the lower end of its interval stands.",
)
snowball_gaps = gaps.loc["snowball"]
glue_number("gap_low", snowball_gaps["effect"].min())
glue_number("right_low", snowball_gaps.loc[0.1, "eps_right"].min())
glue_number("right_high", snowball_gaps.loc[0.1, "eps_right"].max())
glue_number("right_uniform", fixed[0.1])

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-log-odds", "caption": "Distribution over nodes of the log prior odds at ratio 0.1, without degenerate nodes. Up to noise, the right end of each curve bounds eps_R from below and the left end bounds eps_L, in odds form; unbiased bounds are in the table. Uniform sampling, dashed, is a single point for all nodes."}, "image": {"alt": "Four panels, one a graph, of cumulative shares of nodes against log prior odds for five samplers, widely spread around a dashed vertical line."}}
fig, axes = plt.subplots(2, 2, figsize=(7.2, 6.4), sharex=True, sharey=True)
for ax, graph in zip(axes.flat, GRAPHS, strict=False):
    for name in SAMPLERS:
        if name not in ("uniform", "bernoulli"):
            values = np.sort(np.delete(cells[name, 0.1, graph].log_odds, cells[name, 0.1, graph].degenerate))
            ax.plot(
                values, np.linspace(0, 1, len(values)), linestyle=LINES[name], color=COLOURS[name], label=LABELS[name]
            )
    ax.axvline(fixed[0.1], color="0.3", linestyle="--", linewidth=1.2)
    ax.set_title(TITLES[graph])
for ax in axes[-1]:
    ax.set_xlabel("log prior odds (nats)")
for ax in axes[:, 0]:
    ax.set_ylabel("share of nodes")
fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% [markdown]
# At ratio 0.1 a uniform sampler would allow $\varepsilon_R$ = {glue:text}`right_uniform`: no node could be called a
# member from the prior alone. Under snowball sampling the bound lies between {glue:text}`right_low` and
# {glue:text}`right_high`, and the sum of both bounds is at least {glue:text}`gap_low` on every graph and at either
# ratio. In odds form, a notion that assumes one prior for all nodes is too weak for the nodes on the right of
# {numref}`fig-log-odds` and too strict for those on the left.
#
# **Told apart before training.** For 30 further draws of each setting: how well does structure alone tell the sampled
# nodes from the others?

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-structure-auc", "caption": "AUC for telling sampled nodes from the others before any training, with 95 % intervals over 30 draws: chance for uniform and Bernoulli sampling, well above it for every other sampler. Circles: a classifier on structure; crosses: the known prior as score."}, "image": {"alt": "Two panels, ratio 0.1 above 0.5, with AUC for seven samplers on four graphs; uniform and Bernoulli lie at one half, all others clearly above."}}
fig, axes = plt.subplots(2, 1, figsize=(7, 6.8), sharex=True, sharey=True)
for ax, r in zip(axes, (0.1, 0.5), strict=True):
    for score, marker in (("structure", "o"), ("prior", "x")):
        aucs = structure_aucs(level=0.05, score=score)
        for offset, graph in enumerate(GRAPHS):
            part = aucs[(aucs["ratio"] == r) & (aucs["graph"] == graph)].set_index("sampler").loc[list(SAMPLERS)]
            ax.errorbar(
                np.arange(len(part)) + 0.18 * (offset - 1.5),
                part["effect"],
                yerr=part["high"] - part["effect"],
                fmt=marker,
                markersize=5,
                color=PALETTE[offset],
                label=TITLES[graph] if score == "structure" else None,
            )
    ax.axhline(0.5, color="0.3", linestyle="--", linewidth=1.2)
    ax.set_title(f"ratio {r:g}")
    ax.set_ylabel("AUC before training")
axes[1].set_xticks(range(len(SAMPLERS)), LABELS.values(), rotation=30, ha="right")
axes[0].legend()
plt.show()

# %% tags=["hide-input"]
aucs = structure_aucs(level=0.05)
snowball_aucs = aucs.loc[aucs["sampler"] == "snowball", "effect"]
uniform_aucs = aucs.loc[aucs["sampler"] == "uniform", "effect"]
glue_number("auc_low", snowball_aucs.min())
glue_number("auc_high", snowball_aucs.max())
glue_number("auc_uniform_low", uniform_aucs.min())
glue_number("auc_uniform_high", uniform_aucs.max())

# %% [markdown]
# Under snowball sampling the classifier reaches an AUC of {glue:text}`auc_low` to {glue:text}`auc_high`, under
# uniform sampling {glue:text}`auc_uniform_low` to {glue:text}`auc_uniform_high`. An attack on a model that scores no
# better than this has not shown that the model gave anything away.
#
# ### Claim checks
#
# Each claim is decided by its worst cell among four graphs and two ratios, with intervals of joint level 95 %.

# %%
finding = check_claim("B13")

# %%
finding = check_claim("B14")

# %%
finding = check_claim("O01")

# %% [markdown]
# ## What would change our mind
#
# A sampler in use that evens out the priors, for instance snowball with seeds and quotas chosen by inverse
# probability: the claims are about the samplers of the source, not about sampling as such. Uniform and Bernoulli
# sampling already fail all three claims, as they must. For O01, a definition by the ratio form: there the prior
# cancels and the bound is 0. Graphs with nearly equal degrees would shrink every effect here; all four real graphs
# have hubs.
#
# ## Summary
#
# - B13, unequal priors: {glue:text}`B13_verdict`; in the worst cell the likeliest tenth of the nodes is
#   {glue:text}`B13_effect` times as likely to be sampled as the least likely tenth, interval
#   {glue:text}`B13_interval`.
# - B14, distinguishable before training: {glue:text}`B14_verdict`; AUC {glue:text}`B14_effect` in the worst cell,
#   interval {glue:text}`B14_interval`.
# - O01, prior bounds of at least one nat: {glue:text}`O01_verdict`; {glue:text}`O01_effect` nats in the worst cell,
#   interval {glue:text}`O01_interval`. Odds form only.
# - Under snowball at ratio 0.1 the degree explains at least {glue:text}`by_degree_low` of the variance of the log-odds;
#   the class, and on three of four graphs less so the position, explain more of it.
# - Priors are exact for three samplers, and on these the stated intervals of simulated priors cover; for the others
#   {glue:text}`published_draws` draws take seconds.
# - Snowball as published starves in {glue:text}`starving_cells` of our settings, so that its samples are smaller than
#   asked.
# - The training edges belong to the sampler: visited edges leave a sparser graph than induced ones.
#
# ## Exercises
#
# :::{exercise}
# :label: ex-prior-kite
# Compute by hand the probability that the snowball of the tiny example draws $\{0, 1\}$.
# :::
#
# :::{solution} ex-prior-kite
# :class: dropdown
# Start at 0 (probability $1/5$), look at 1 (probability $1/2$), then from 1 look at 0 again (probability $1/2$): the
# frontier is empty, and the sample is $\{0, 1\}$. The same from 1. Together $2 \cdot 1/5 \cdot 1/2 \cdot 1/2 = 1/10$.
# :::
#
# :::{exercise}
# :label: ex-prior-fresh
# How do the priors of the kite change with `fresh_starts=True`? Which node gains most, and why?
# :::
#
# :::{solution} ex-prior-fresh
# :class: dropdown
# `law_priors(sample_law("snowball", kite, 0.6, k=1, seeds_per_class=1, fresh_starts=True), 5)`. All sets then have
# three nodes, so the priors sum to 3. Nodes 0 and 1 gain most, $1/9$ each: the set on which the snowball died most often,
# $\{3, 4\}$, is without them.
# :::
#
# :::{exercise}
# :label: ex-prior-draws
# How many draws are needed for a standard error of 0.1 nats on a node with prior 0.01?
# :::
#
# :::{solution} ex-prior-draws
# :class: dropdown
# $T = 1 / (0.1^2 \cdot 0.01 \cdot 0.99)$, about ten thousand: rare nodes decide the budget.
# :::

# %% tags=["hide-input", "nbval-ignore-output"]
provenance(
    {"dataset": dataset, "sampler": sampler, "ratio": ratio, "draws": draws, "seed": seed},
    graphs=[data],
)
