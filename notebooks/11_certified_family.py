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
# (ch-certified-family)=
# # The certified family
#
# :::{admonition} In this chapter
# **Question.** When may one small step on the weights be called as good as retraining, how many edges does such a promise carry, and
# what does it cost?
#
# **At the end you can say** what CEU, CGU, ScaleGUN and IDEA promise and to whom, why the graph on which the Hessian is taken decides
# whether the promise has a proof, how far exact residuals lie below their bounds, how much noise requests of one edge to 5 % would need
# and how much a model bears, and what all this costs beside retraining.
#
# **Run time.** Under a minute on a CPU. **Data.** A generated graph, computed here, and published records of real graphs.
# :::
#
# ## Claims
#
# :::{prf:conjecture} L15
# :label: claim-l15
# Certified methods are limited to linear architectures.
# :::
#
# :::{prf:conjecture} L16
# :label: claim-l16
# SGC is 1.2 to 4.2 points below the GCN.
# :::
#
# :::{prf:conjecture} L17
# :label: claim-l17
# At 5 % of the edges certified updates cost more than retraining.
# :::
#
# All three are claims of the Lethe benchmark {cite:p}`lethe2026`, which concludes from them that certified methods do not pay.

# %% [markdown]
# ## Setting
#
# $G$ is the graph with the edges, $G_r$ the graph without the forgotten pairs, $V_L$ the $m$ training nodes. For SGC the logits of a node
# are linear in the weights, $a_v = W z_v$ with $Z = P^K X$, so the training objective
#
# $$\begin{aligned}
# L_b(\theta; G) &= \frac1m \sum_{v \in V_L} \ell_v(\theta; G) + \frac\lambda2 \|\theta\|^2 + b^\top \theta, \\
# b &\sim \mathcal N(0, \sigma^2 I),
# \end{aligned}$$ (eq-perturbed)
#
# is strictly convex and has one optimum. The linear term $b$ is the noise of *objective perturbation*: it hides how far a
# step fell short of the optimum on $G_r$. The step is Newton's, on the gradient that the removal changed,
#
# $$\begin{aligned}
# \theta' &= \theta - H^{-1} \Delta, \\
# \Delta &= \frac1m \sum_{v \in T} \big(\nabla \ell_v(\theta; G_r) - \nabla \ell_v(\theta; G)\big),
# \end{aligned}$$ (eq-influence-step)
#
# with $T$ the training nodes whose view of the graph changes. If the gradient that is left is at most
# {cite:p}`guo2020certified`
#
# $$\begin{aligned}
# \|\nabla L_b(\theta'; G_r)\| &\le \frac{\sigma\, \varepsilon}{c}, \\
# c &= \sqrt{2 \ln (1.5 / \delta)},
# \end{aligned}$$ (eq-budget)
#
# for every draw of $b$, the released weights are $(\varepsilon, \delta)$-indistinguishable from those of retraining. The right side is the
# **budget**; the left side, the **residual**, is charged against it by a proved bound and adds up over requests. When it is spent, the
# model is trained again with a fresh $b$.
#
# - **CEU** {cite:p}`wu2023ceu` takes this step on the cross-entropy of {eq}`eq-perturbed`.
# - **CGU** {cite:p}`chien2023cgu` has a head of its own, one logistic regression per class on $Z$ with row-stochastic $P$.
# - **ScaleGUN** {cite:p}`yi2025scalegun` is CGU on features that are repaired near the removed edge only, by *lazy push*; the
#   error of that repair enters the bound.
# - **IDEA** {cite:p}`dong2024idea` adds noise to the *weights* after the step. It hides the distance $\|\theta' - \theta^*\|$ to the
#   retrained optimum, bounded by
#   $\sqrt{4 \ell_{\max} |T| / (m \lambda)}$ plus the length of the step, with $\ell_{\max}$ the largest loss.
#
# **Threat model of a certificate.** It speaks to whoever sees the released weights, chose the requests without having seen
# them, and does not know $b$. It says nothing about what the answers on $G_r$ tell through the graph itself: that is the subject
# of {ref}`ch-accuracy-is-blind` and the attacks below.

# %% tags=["parameters"]
dataset: str = "synthetic"  # graph of the live experiments, any name that load_graph takes
seed: int = 0  # seed of the split, the training and the methods
forget: str = "random"  # forget set of the live experiments
fraction: float = 0.05  # share of the edges to forget
block: int = 10  # edges in one request of the streams

# %% tags=["hide-input"]
import warnings

warnings.filterwarnings("ignore", message="IProgress not found")  # no progress bars here

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from lethe_lib.data import load_graph, undirected_edges
from lethe_lib.models import train
from lethe_lib.reporting import (
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
from lethe_lib.reporting.claims_certified_family import backbone_gap
from lethe_lib.reporting.families import (
    NATIVE,
    accuracy_figure,
    collapsed_cells,
    excess_figure,
    family_records,
)
from lethe_lib.reporting.native_family import (
    STYLES,
    beside_gold,
    bound_figure,
    needed_noise_table,
    noise_figure,
    request_steps,
    residual_table,
    ridge_table,
    seconds_table,
    time_figure,
)
from lethe_lib.reporting.titles import ATTACK_TITLES, GRAPH_TITLES, METHOD_TITLES
from lethe_lib.structure import forget_set
from lethe_lib.study.certified_requests import (
    ENDLESS,
    NOISE,
    PAPER_RIDGE,
    Case,
    in_random_order,
    request_sizes,
    serve_by_head,
    serve_by_influence,
)
from lethe_lib.unlearning import unlearn
from lethe_lib.unlearning.accountant import Accountant, noise_factor
from lethe_lib.unlearning.certified_head import CertifiedHead
from lethe_lib.unlearning.ceu import taylor_bound
from lethe_lib.unlearning.idea import calibrated_sigma, distance_bound
from lethe_lib.unlearning.influence import influence_step
from lethe_lib.unlearning.lazy_push import LazyPush
from lethe_lib.unlearning.ovr_logistic import (
    gradient,
    hessian,
    newton_step,
    pointwise_bound,
    row_gradient,
    spectral_norm,
    step_bound,
)
from lethe_lib.unlearning.stream import stream

check_parameters(globals())
assert block >= 1, f"block is {block}: a request has at least 1 edge"
use_style()
METHODS = ("ceu", "idea", "gif", "cgu", "scalegun")


# %% [markdown]
# ## Tiny example
#
# Two nodes, one feature, one class, ridge $\lambda m = 1$, no noise. The first node has label $+1$ and $z = 1$; the second has label $-1$
# and $z = -1$. By symmetry the optimum solves $2 s(-w) = w$ with $s$ the sigmoid. An edge goes, and the first node's
# feature falls to $z = \tfrac12$. One Newton step on the new rows should leave next to nothing, and less than both bounds.

# %%
z, y = torch.tensor([[1.0], [-1.0]], dtype=torch.float64), torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
weight, nothing = torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
for _ in range(20):  # Newton to the optimum on the old rows
    old = gradient(z, y, weight, 0.5, nothing)
    weight = weight - newton_step(hessian(z, weight, 0.5), old, 1e-14)[0]
assert abs(float(2 * torch.sigmoid(-weight) - weight)) < 1e-12
new = torch.tensor([[0.5], [-1.0]], dtype=torch.float64)
change = row_gradient(z[:1], y[:1], weight) - row_gradient(new[:1], y[:1], weight)
step, left, _ = newton_step(hessian(new, weight, 0.5), change, 1e-14)
before, after = (float(gradient(new, y, w, 0.5, nothing).norm()) for w in (weight, weight + step))
bounds = [float(bound(new, step, spectral_norm(new))[0]) for bound in (pointwise_bound, step_bound)]
assert after < bounds[0] <= bounds[1] and after < before / 10
books = Accountant(epsilon=1.0, delta=1e-4, noise=0.1)
accepted = [books.charge(0.4 * books.budget) for _ in range(3)]
assert accepted == [True, True, False]
show_table(
    pd.DataFrame(
        {
            "quantity": [
                "gradient before the step",
                "after it",
                "bound of each row's own product",
                "bound as published",
            ],
            "value": [before, after, *bounds],
        }
    ),
    "One Newton step on two nodes, and two bounds of what it leaves.",
)
glue_number("factor", noise_factor(1e-4), 4)
glue_number("budget_tenth", books.budget, 3)

# %% [markdown]
# At $\delta = 10^{-4}$ the factor $c$ is {glue:text}`factor`, so noise of $0.1$ buys a budget of {glue:text}`budget_tenth` at
# $\varepsilon = 1$. Three requests that cost $0.4$ of it each: two are accepted, the third trains again.
#
# ## Method
#
# ### The step
#
# One function serves CEU, IDEA and GIF {cite:p}`wu2023gif`, which is IDEA's step without noise. Which graph its Hessian belongs to is a setting.

# %%
show_source(influence_step, taylor_bound)

# %% [markdown]
# With the Hessian on $G_r$ the gradient that is left, $\nabla L_b(\theta') - \nabla L_b(\theta) - H (\theta' - \theta)$,
# is a Taylor remainder of one function, and one Lipschitz constant bounds it. With the Hessian on $G$, as in CEU's paper, it also
# holds $(H_{G_r} - H_G) (\theta' - \theta)$, which is first order in the removed edges and in no bound.
#
# ### The head, its bounds and its budget

# %%
show_source(pointwise_bound, step_bound, CertifiedHead.remove, Accountant.charge)

# %% [markdown]
# ### Lazy push, and IDEA's noise
#
# ScaleGUN keeps for every feature a reserve and a residue per hop. A removal changes those of two nodes; only residues above a
# threshold are pushed on. The sum of what stays behind bounds the error of the features.

# %%
show_source(LazyPush.remove, distance_bound, calibrated_sigma)

# %% [markdown]
# **Differences from the papers**
#
# 1. All forgotten edges are removed, in one step by default or block by block; the Hessian is that of $G_r$.
# 2. CEU: the bound is for the softmax ($\gamma = \sqrt2 / (3\sqrt3)$), it includes the gradient that training left, what the
#    solver left, and the rounding of the release. Off convexity the step is damped and safeguarded, and no certificate is given.
# 3. CGU and ScaleGUN: the classes form one weight vector with one isotropic $b$, so the L2 norm over classes is charged; the published
#    code compares the sum over classes with one budget a class, which bounds neither a class nor the release. Ridge $10^{-4}$ in place of
#    $10^{-2}$. ScaleGUN's residues enter with absolute values; the published code adds them with their signs, which bounds nothing.
# 4. IDEA: the noise that the proof asks for is reported beside the one that is added; the certificate is not applicable while the
#    added one is smaller.
# 5. GIF is an addition of ours to the benchmark's methods.
# 6. `published`, the benchmark's forms. CEU: the Hessian of the *sum* with the $1/m$ of the mean, so a step $m$ times too small; one system
#    per weight tensor, by an optimiser that starts at the gradient itself and stops at an absolute tolerance; for SGC a sigmoid Hessian on
#    features smoothed once; held-out labels included. IDEA: the noise thrown away, then ten steps of fine-tuning. CGU: 100 edges drawn at
#    random from the whole graph in place of the request. ScaleGUN: the first 500 edges of the request, by full propagation without any
#    push, with the Hessian of the first graph.
#
# ## Experiment
#
# ### Residual and bound
#
# From one original, requests of growing size. The steps are taken as if the budget were endless, so that bound and residual belong to
# the step and not to a retraining.

# %% tags=["nbval-ignore-output"]
data = load_graph(dataset)
original = train(data, "sgc", seed=seed)
pairs = in_random_order(forget_set(data, forget, fraction, seed), seed)
sizes = request_sizes(data, (1, 10, 100, 0.005, 0.01, 0.02), pairs.shape[1])
rows = []
for method in ("ceu", "cgu", "scalegun"):
    case = Case(data, original, original.training_run.split, method, seed, {}, NOISE[method])
    serve = serve_by_influence if method == "ceu" else serve_by_head
    own, steps = serve(case, pairs, sizes, 0)
    table = pd.DataFrame(steps).assign(line=METHOD_TITLES[method], budget=own["budget"])
    if method == "ceu":
        table["line"] = np.where(table["new_hessian"], "CEU, new Hessian", "CEU, old Hessian")
    rows.append(table)
steps = pd.concat(rows, ignore_index=True)
proved = steps[steps["line"] != "CEU, old Hessian"]
assert (proved["residual"] <= proved["bound"] + 1e-10).all(), "a proved bound was exceeded"
by_line = {line: part.set_index("edges") for line, part in steps.groupby("line")}
few = sizes[1]
glue_number("pairs", pairs.shape[1])
glue_number("few", few)
glue_number(
    "old_over_new",
    float(by_line["CEU, old Hessian"].loc[few, "residual"] / by_line["CEU, new Hessian"].loc[few, "residual"]),
    2,
)
glue_number("loosest", float((proved["bound"] / proved["residual"]).max()), 2)
glue_number("tightest", float((proved["bound"] / proved["residual"]).min()), 2)
edges = undirected_edges(data)
busiest = int(torch.bincount(edges.flatten()).argmax())
at_one = edges[:, (edges == busiest).any(dim=0)]
glue_number("at_one", at_one.shape[1])
concentrated = []
for name, request in {"all edges of one node": at_one, "as many at random": pairs[:, : at_one.shape[1]]}.items():
    for hessian_graph in ("new", "old"):
        found = unlearn("ceu", original, data, request, seed, noise=NOISE["ceu"], epsilon=1e9, hessian=hessian_graph)
        budget = NOISE["ceu"] / noise_factor(1e-4)
        certificate, row = found.steps.certificate, found.steps.rows[-1]
        concentrated.append(
            {
                "request": name,
                "Hessian": hessian_graph,
                "gradient to cancel": row["difference_norm"] / budget,
                "residual": certificate.residual / budget,
                "bound formula": row["bound"] / budget,
            }
        )
concentrated = pd.DataFrame(concentrated)
show_table(
    concentrated,
    "CEU on a request at one node and on as many random edges, in budgets. The bound formula has a proof with the new Hessian only.",
)
for key, name in {"at_node": "all edges of one node", "at_random": "as many at random"}.items():
    row = concentrated[(concentrated["request"] == name) & (concentrated["Hessian"] == "new")].iloc[0]
    glue_text(f"{key}_gradient", as_text(row["gradient to cancel"], 2))
    glue_text(f"{key}_residual", as_text(row["residual"], 2))

# %% [markdown]
# {glue:text}`pairs` pairs in all. At {glue:text}`few` edges CEU with the old Hessian leaves {glue:text}`old_over_new` times the residual
# of the new one. The proved bounds lie between {glue:text}`tightest` and {glue:text}`loosest` times above the exact residuals.
#
# The table takes all {glue:text}`at_one` edges of the busiest node as one request: the view of few nodes changes much. Beside as many random
# edges the gradient to cancel is {glue:text}`at_node_gradient` against {glue:text}`at_random_gradient` budgets, what the step with the new
# Hessian leaves of it {glue:text}`at_node_residual` against {glue:text}`at_random_residual`: the second order decides.
#
# ### One request after the other
#
# The same edges in blocks, under the budgets of $(1, 10^{-4})$. Every method that keeps its own state is opened once; bounds add up, and
# where the next one would not fit, the model is trained again and the books start anew. IDEA has no state and no such books: each of
# its releases has noise of its own, no guarantee over several of them is proved, and a stream of it only shows what is left.

# %% tags=["nbval-ignore-output"]
blocks = pairs.split(block, dim=1)
lines = {
    "CEU, new Hessian": ("ceu", {"noise": NOISE["ceu"]}),
    "CGU": ("cgu", {}),
    "CGU, paper's ridge": ("cgu", {"ridge": PAPER_RIDGE}),
    "ScaleGUN": ("scalegun", {}),
    "IDEA": ("idea", {}),
}
gold = unlearn("gold", original, data, pairs, seed).seconds
served, summed = {}, []
for line, (method, settings) in lines.items():
    served[line] = list(stream(method, original, data, blocks, seed, **settings))
    last, budgets = served[line][-1], [one.bound / one.budget for one in served[line]]
    assert not any(one.residual > one.bound + 1e-10 for one in served[line]), "a proved bound was exceeded"
    alone, again = ([one.seconds / gold for one in served[line] if one.retrained == kind] for kind in (False, True))
    summed.append(
        {
            "method": line,
            "trained again": f"{last.retrainings} of {len(blocks)}",
            "largest bound, budgets": max(budgets),
            "residual at the end, budgets": last.residual / last.budget,
            "seconds of a step over Gold's": np.median(alone) if alone else None,
            "of a step and a training": np.median(again) if again else None,
            "guarantee": "none proved" if last.note else "(1, 1e-4)",
        }
    )
show_table(
    pd.DataFrame(summed),
    "Streams of blocks on SGC: how often the budget ran out, what was booked and left, and medians of the time of one request over that "
    "of one retraining, the SGC trained again.",
)
endless = list(stream("ceu", original, data, blocks, seed, noise=NOISE["ceu"], epsilon=ENDLESS))
assert all(one.residual <= one.bound for one in endless) and endless[-1].retrainings == 0
glue_number("requests", len(blocks))
glue_number("block", block)
glue_number("ceu_endless", endless[-1].bound / served["CEU, new Hessian"][-1].budget, 2)
glue_number("ceu_endless_residual", endless[-1].residual / served["CEU, new Hessian"][-1].budget, 2)
at_start = unlearn("idea", original, data, blocks[0], seed).steps.rows[-1]["gradient_norm"]
at_end = served["IDEA"][-1].residual
glue_number("idea_start", at_start, 3)
glue_number("idea_end", at_end, 3)
glue_text(
    "idea_reading",
    "what early stopping had left outweighs steps and noises"
    if abs(at_end / at_start - 1) < 0.2
    else "steps and noises have changed it",
)
glue_text("again", ", ".join(f"{line} {served[line][-1].retrainings}" for line in lines if line != "IDEA"))
glue_number("spent_paper", max(one.bound / one.budget for one in served["CGU, paper's ridge"]), 2)

# %% mystnb={"figure": {"name": "fig-stream", "caption": "Bounds add up over requests until one would not fit (cross: the model was trained again); the exact residual stays below. The ridge decides how long a budget lasts. Grey: CEU under an endless budget. Generated graph, SGC."}, "image": {"alt": "Two by two panels, CEU, CGU with two ridges and ScaleGUN: bound and exact residual in budgets against the number of edges removed so far, with a cross at each retraining and a line at one."}} tags=["hide-input"]
fig, axes = plt.subplots(2, 2, figsize=(7.5, 5.8), sharex=True, sharey=True)
for ax, line in zip(axes.flat, [line for line in lines if line != "IDEA"], strict=True):
    requests, colour = served[line], STYLES[line][0]
    removed = np.cumsum([one.edges for one in requests])
    for key, label, style in (("bound", "bound so far", "--"), ("residual", "exact residual", "-")):
        values = [max(getattr(one, key) / one.budget, 1e-9) for one in requests]
        ax.plot(removed, values, style, color=colour)
        ax.plot([], [], style, color="0.3", label=label)
    if line == "CEU, new Hessian":
        for key, style in (("bound", (0, (4, 4))), ("residual", "-")):
            values = [getattr(one, key) / requests[0].budget for one in endless]
            ax.plot(removed, values, linestyle=style, color="0.55")
    again = np.array([one.retrained for one in requests])
    ax.plot(removed[again], np.full(again.sum(), 2e4), "x", color="black", label="trained again", linestyle="")
    ax.axhline(1, color="0.3", linewidth=1)
    ax.set(yscale="log", ylim=(1e-9, 1e5), title=line)
for ax in axes[1]:
    ax.set_xlabel("edges removed so far")
for ax in axes[:, 0]:
    ax.set_ylabel("in budgets of (1, 1e-4)")
axes[0, 0].plot([], [], color="0.55", label="CEU, had it never trained again")
fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# {glue:text}`requests` requests of {glue:text}`block` edges. Trained again: {glue:text}`again`; such a request pays for the step and the
# training. Had CEU never done so, its bound would stand at {glue:text}`ceu_endless` budgets and its residual at
# {glue:text}`ceu_endless_residual`. With the paper's ridge at most {glue:text}`spent_paper` budgets were ever booked. IDEA's gradient norm is
# {glue:text}`idea_start` in the original and {glue:text}`idea_end` at the last request: {glue:text}`idea_reading`.
#
# ### Linear and non-linear backbones
#
# The same calls on every backbone. Where the method runs at all, we measure the gradient of the training objective before and after,
# on $G_r$ and without dropout: what a certificate would have to be about.

# %% tags=["nbval-ignore-output"]
scope = []
for backbone in ("sgc", "gcn", "gat", "gin", "sage"):
    victim = original if backbone == "sgc" else train(data, backbone, seed=seed)
    for method in ("ceu", "idea", "cgu", "scalegun"):
        extra = {"noise": NOISE["ceu"]} if (backbone, method) == ("sgc", "ceu") else {}
        found = unlearn(method, victim, data, pairs[:, :few], seed, **extra)
        certificate = found.steps.certificate
        row = found.steps.rows[-1] if found.steps.rows else {}
        given = certificate is not None and certificate.status != "not_applicable"
        assert backbone == "sgc" or not given, "a certificate was given for a model that is not linear"
        scope.append(
            {
                "backbone": backbone.upper(),
                "method": METHOD_TITLES[method],
                "status": found.status if found.status == "unsupported" else (certificate.status.replace("_", " ")),
                "gradient before": row.get("retained_gradient_norm"),
                "after": certificate.residual if certificate else None,
            }
        )
scope = pd.DataFrame(scope)
show_table(
    scope,
    "Four certified methods on five backbones, a request of a few edges: status of the certificate, and the gradient norm on the retained "
    "graph, on the mean scale for CEU and IDEA.",
)
given = scope["status"].isin(("valid", "budget exhausted retrained")).groupby(scope["backbone"], sort=False).any()
glue_text("without_certificate", ", ".join(given.index[~given]))
gcn_ceu = scope[(scope["backbone"] == "GCN") & (scope["method"] == "CEU")].iloc[0]
glue_number("gcn_before", gcn_ceu["gradient before"], 3)
glue_number("gcn_after", gcn_ceu["after"], 3)
glue_number("sgc_budget", NOISE["ceu"] / noise_factor(1e-4), 2)

# %% [markdown]
# On the GCN the gradient norm is {glue:text}`gcn_before` before CEU's step and {glue:text}`gcn_after` after it: what early stopping left
# is all that one sees, against a budget of {glue:text}`sgc_budget` under the noise that the SGC bears. Training on to a stationary point
# would not help, since it is one of many: the Hessian is indefinite on the way and the damping of the conjugate-gradient solver has to be raised.
#
# ## Results
#
# ### Bound and residual on real graphs

# %% mystnb={"figure": {"name": "fig-bounds", "caption": "No proved bound is exceeded; with the old Hessian the dashed line is the same formula without a proof, and bounds nothing. A budget carries the requests whose bound lies below the line at one; how many these are depends on the graph and, for CGU, on the ridge. Geometric means over seeds, requests at once, SGC."}, "image": {"alt": "One panel per graph: residual as full and bound as dashed lines over the budget against the number of removed edges for CEU with new and old Hessian, CGU and ScaleGUN."}} tags=["hide-input"]
recorded = request_steps()
bound_figure(recorded)
plt.show()

# %% [markdown]
# {glue:text}`steps_recorded` requests with a proof: the bound is at least {glue:text}`recorded_tightest` times the exact residual, in the
# median {glue:text}`recorded_median` times. With the old Hessian CEU's residual is {glue:text}`old_residual` times that with the new one
# in the median and up to {glue:text}`old_residual_most` times.
#
# ### What noise costs

# %% mystnb={"figure": {"name": "fig-noise", "caption": "A certificate without loss needs its mark left of where the curve falls: of the marks of 5 % only ScaleGUN's on Photo lies there. Test accuracy of the method's original against its noise; below, in the colour of the graph, the noise that one edge and that 5 % of the edges ask for. CEU: mean scale; CGU and ScaleGUN, our ridge: sum scale; IDEA: on the weights."}, "image": {"alt": "Two by two panels, CEU, CGU, ScaleGUN and IDEA: accuracy against noise on a log axis falling from a plateau, with markers of the needed noise at the bottom."}} tags=["hide-input"]
noise_figure(recorded)
plt.show()

# %% tags=["hide-input"]
certified = recorded[recorded["method"].isin(("ceu", "cgu", "scalegun"))]
with_proof = certified[certified["new_hessian"]]
assert (with_proof["residual"] <= with_proof["bound"] + 1e-10 * with_proof["budget"]).all()
ratio = (with_proof["bound"] / with_proof["residual"]).replace(np.inf, np.nan)
ceu = certified[certified["method"] == "ceu"].pivot_table(
    index=["data", "seed", "edges"], columns="new_hessian", values="residual"
)
glue_number("recorded_tightest", float(ratio.min()), 2)
glue_number("recorded_median", float(ratio.median()), 2)
glue_number("old_residual", float((ceu[False] / ceu[True]).median()), 2)
glue_number("old_residual_most", float((ceu[False] / ceu[True]).max()), 2)
glue_number("steps_recorded", len(with_proof))

needed = needed_noise_table(recorded)
show_table(
    needed,
    "Noise for a guarantee of (1, 1e-4) at once, geometric means over seeds; the largest noise tried that costs at most two points "
    "(borne; no entry where one noise alone was tried); and the largest request, in edges, that the method's own noise carries in every "
    "seed.",
)
tried = needed[needed["borne"].notna()]
for key, method in {"ceu": "CEU", "cgu": "CGU", "scalegun": "ScaleGUN", "idea": "IDEA"}.items():
    words = [
        f"{as_text(row['needed, 5 %'], 2)} and {as_text(row['borne'], 2)} on {row['graph']}"
        for _, row in tried[tried["method"] == method].iterrows()
    ]
    glue_text(f"{key}_needed", ", ".join(words))

# %% [markdown]
# Needed for 5 % and borne, where several noises were tried: CEU {glue:text}`ceu_needed`; CGU {glue:text}`cgu_needed`; ScaleGUN
# {glue:text}`scalegun_needed`; IDEA, on every weight, {glue:text}`idea_needed`.

# %% tags=["hide-input"]
ridges = ridge_table(recorded)
show_table(
    ridges,
    "CGU's own head under two ridges: its accuracy before any request beside that of the trained SGC, the bound of 5 % at once in budgets, "
    "and the largest request carried in every seed, as a share of 5 %.",
)
heads = ridges.pivot(index="graph", columns="ridge", values=["head, %", "5 %, budgets"])
weak, strong = ridges["ridge"].min(), ridges["ridge"].max()
costs = (heads["head, %", weak] - heads["head, %", strong]).dropna().sort_values()
saved = (heads["5 %, budgets", weak] / heads["5 %, budgets", strong]).dropna()
glue_text("ridge_costs", ", ".join(f"{value:.1f} on {name}" for name, value in costs.items()))
glue_text("ridge_saves", f"{as_text(float(saved.min()), 2)} to {as_text(float(saved.max()), 2)}")
glue_text("ridge_worst", f"{costs.iloc[-1]:.1f} points on {costs.index[-1]}")
glue_text(
    "ridge_reading",
    f"On {costs.index[-1]} that is more than a certificate is worth, so the default is the weak ridge, and the strong one a setting for "
    "graphs that bear it"
    if costs.iloc[-1] > 2
    else "On these graphs the strong ridge costs little, and whoever needs a certificate should set it",
)

# %% [markdown]
# The ridge is what carries a certificate. The paper's, a hundred times ours, makes the bound of 5 % {glue:text}`ridge_saves` times
# smaller, and costs the head {glue:text}`ridge_costs` points. {glue:text}`ridge_reading`.
#
# ### Time against Gold

# %% mystnb={"figure": {"name": "fig-time", "caption": "On Cora and DBLP every update of 5 % costs more than Gold, a small convex problem here; on Photo IDEA, and CGU with the paper's ridge, cost less. Seconds over those of Gold (the SGC trained again) in the same run; crosses include a retraining of the method's own original in one seed at least, since the bound exceeds the budget. Geometric means over seeds."}, "image": {"alt": "One panel per graph: seconds over Gold's on a log scale against the number of removed edges for CEU, CGU, ScaleGUN and IDEA, with a line at one and crosses where a retraining is included."}} tags=["hide-input"]
time_figure(recorded)
plt.show()

# %%
show_table(
    seconds_table(recorded),
    "Seconds over those of Gold in the same run. 1 edge and 5 % hold one retraining of the method's own original where the budget of "
    "(1, 1e-4) does not carry the request; IDEA's noise has no budget.",
)

# %% [markdown]
# ### Utility, and what is left of the gradient

# %% mystnb={"figure": {"name": "fig-certified-accuracy", "caption": "CEU, IDEA and GIF step from the trained model; CGU and ScaleGUN release heads of their own, which differ from it before any request. The gain of published IDEA on PubMed, high, is that of its step on a model stopped near guessing; published CGU and ScaleGUN are one run each, on Cora, with 20 edges. Change of test accuracy against the trained SGC, mean and range over seeds; a cross marks a cell with a collapsed run."}, "image": {"alt": "Four panels, presets corrected and published by forget sets low and high, methods as rows and graphs as coloured points."}} tags=["hide-input"]
accuracy_figure(("gold", "utu", *METHODS), NATIVE, "sgc")
plt.show()

# %% tags=["hide-input"]
for backbone, names, words in (
    ("sgc", METHODS, "SGC"),
    ("gcn", ("ceu", "idea", "gif"), "The GCN, where the steps are heuristics without certificate"),
):
    beside = beside_gold(("gold", "utu", "memoriser", *names), backbone)
    attacked = ["cells", *ATTACK_TITLES.values()]
    show_table(
        beside.drop(columns=attacked),
        f"{words}, low and high sets: mean change of accuracy against the original. The Memoriser keeps every edge in a table: a positive "
        "control of the attacks.",
    )
    show_table(
        beside[["method", "preset", *attacked]],
        "The same: of the cells (graph, set), those whose whole interval of the excess lies above/below Gold.",
    )
show_table(
    residual_table(),
    "Exact gradient norm of the released model, mean scale, medians over seeds and sets, preset corrected; CEU without noise.",
)
glue_text("collapsed_sgc", collapsed_cells(METHODS, NATIVE, "sgc"))
glue_text("collapsed_gcn", collapsed_cells(METHODS, NATIVE, "gcn"))
runs = family_records(study=NATIVE)
runs = runs[(runs["preset"] == "published") & runs["method"].isin(("ceu", "utu"))]
# UtU keeps the original's weights: where it counts as collapsed, the original was no better before
kept = runs[(runs["method"] == "utu") & (runs["backbone"] == "sgc") & runs["broken"]]
before = 100 * kept["original_accuracy_val"]
glue_text(
    "collapsed_utu",
    f"Marked as well, though no weight changes: {collapsed_cells(('utu',), NATIVE, 'sgc')}. There the original's validation accuracy, "
    f"{before.min():.0f} to {before.max():.0f} %, is near or below the share of the largest class before any request, so a mark "
    "there says nothing about a method"
    if len(kept)
    else "UtU, which changes no weight, is nowhere among them",
)
cell = ["backbone", "data", "forget", "seed"]
measures = {"accuracy_test": "apart_accuracy", "link_stealing_auc": "apart_stealing", "e_umia_auc": "apart_umia"}
for column, key in measures.items():
    both = runs.drop_duplicates([*cell, "method"]).pivot(index=cell, columns="method", values=column).dropna()
    glue_number(key, float((both["ceu"] - both["utu"]).abs().median()), 2)
    glue_number(f"{key}_most", float((both["ceu"] - both["utu"]).abs().max()), 2)

# %% [markdown]
# The *Memoriser* is planted: the original with a table of what forgotten neighbours said, added to a node's logits. Collapsed runs on
# SGC: {glue:text}`collapsed_sgc`; on the GCN: {glue:text}`collapsed_gcn`. {glue:text}`collapsed_utu`. Times stand apart, in the study that measures
# Gold beside every method. Published CEU should be UtU and little else: their accuracies differ by {glue:text}`apart_accuracy` in
# the median and at most by {glue:text}`apart_accuracy_most`, the AUC of Link Stealing by {glue:text}`apart_stealing` and at most by
# {glue:text}`apart_stealing_most`, that of E-UMIA by {glue:text}`apart_umia` and {glue:text}`apart_umia_most`.
#
# ### Leakage beside Gold

# %% mystnb={"figure": {"name": "fig-certified-excess", "caption": "Preset corrected on SGC: a certificate about weights is no statement about answers on a graph; where an own head or noise changes the posteriors, attacks on them move. The tables above count the same for the GCN and for preset published. Signed AUC in excess of Gold's with bootstrap intervals; band: the widest of the graphs' Gold intervals, each graph's own is in row Gold; scales differ."}, "image": {"alt": "Six panels, three attacks by two forget sets, methods as rows and graphs as coloured points with intervals around zero."}} tags=["hide-input"]
excess_figure(("gold", "utu", "memoriser", *METHODS), "corrected", NATIVE, "sgc")
plt.show()

# %% [markdown]
# ### The claims

# %%
finding = check_claim("L15")

# %% tags=["hide-input"]
gaps = backbone_gap()
show_table(
    gaps.assign(data=gaps["data"].map(GRAPH_TITLES), **{name: 100 * gaps[name] for name in ("gap", "low", "high")}),
    "Test accuracy of the original GCN minus that of the original SGC, in points, paired by seed, with 95 % intervals over seeds.",
)
for preset, part in gaps.groupby("preset"):
    glue_text(f"gap_{preset}", f"{100 * part['gap'].mean():.1f}")
    glue_text(f"gap_{preset}_least", f"{100 * part['gap'].min():.1f}")
    glue_text(f"gap_{preset}_most", f"{100 * part['gap'].max():.1f}")
gap_means = gaps.groupby("preset")["gap"].mean()
early = gap_means["corrected"] < gap_means["published"] / 2
glue_text(
    "gap_reading",
    "most of the gap belongs to a convex problem that was stopped early, and little to the linear model"
    if early
    else "training to convergence does not close the gap, so it belongs to the linear model",
)

# %%
finding = check_claim("L16")

# %%
finding = check_claim("L17")

# %% [markdown]
# **L15.** That no GCN is certified holds by construction: the library refuses to. What was measured is that no proved bound on SGC is
# exceeded.
#
# **L16.** With the benchmark's training the gap is {glue:text}`gap_published` points in the mean over graphs, trained to
# convergence {glue:text}`gap_corrected` (from {glue:text}`gap_corrected_least` to {glue:text}`gap_corrected_most`):
# {glue:text}`gap_reading`.
#
# **L17.** Its estimand was narrowed to runs that time Gold beside the method after first timings, taken at different
# loads, had been seen; its threshold was not. Its interval is over three graphs, which differ tenfold and more. The comparison is between small models on small graphs, where retraining is a convex problem
# of seconds. What lazy push saves is propagation, and that is dear on graphs a thousand times larger.
#
# ## What would change our mind
#
# A proof for a loss that is not convex in the weights would move L15, and a certificate that holds for the answers on $G_r$ and not only for
# the weights would move what these methods are worth. On a graph on which propagation alone takes hours L17 may fail, as the paper of
# ScaleGUN reports; and so it may against a Gold that is not a small convex problem but the GCN that one would rather serve. Our ridge of
# CGU and ScaleGUN was chosen for the accuracy of the head and not for its budget: a head that keeps its accuracy under the paper's ridge on
# every graph would make that one the default. A composition theorem for IDEA's releases would give its stream a budget.
#
# ## Summary
#
# - A certificate needs a strictly convex objective, the Hessian of the new graph, noise in the training objective and books over all
#   requests. Backbones on which no method gave one here: {glue:text}`without_certificate`.
# - No proved bound was exceeded. In the median it lies {glue:text}`recorded_median` times above the exact residual. The ridge decides how far
#   a budget carries: one a hundred times larger makes the bound of 5 % {glue:text}`ridge_saves` times smaller, and costs up to
#   {glue:text}`ridge_worst`.
# - In a stream bounds add up: of {glue:text}`requests` requests on a generated graph these trained again: {glue:text}`again`. IDEA has no
#   budget over several requests.
# - With the Hessian of the old graph CEU leaves {glue:text}`old_residual` times the residual in the median, and no bound covers it.
# - The noise that IDEA's theorem asks for at 5 %, and what the model bears: {glue:text}`idea_needed`.
# - L15, certificates need linear models: {glue:text}`L15_verdict`. L16, the price of the linear backbone: {glue:text}`L16_verdict`;
#   {glue:text}`gap_published` points under the benchmark's training, {glue:text}`gap_corrected` at convergence.
# - L17, certified updates of 5 % cost more than retraining: {glue:text}`L17_verdict`; smallest ratio {glue:text}`L17_effect`, interval
#   {glue:text}`L17_interval`.
#
# ## Exercises
#
# :::{exercise}
# :label: ex-certified-scale
# A paper states its Hessian for the sum of the losses and its step with $1/m$ in front. By what factor is the step wrong, and what does
# an audit of the released model see?
# :::
#
# :::{solution} ex-certified-scale
# :class: dropdown
# $-(mH)^{-1} \frac1m \Delta^{\Sigma}$ is $m$ times shorter than $-H^{-1} \frac1m \Delta^{\Sigma}$. With thousands of training nodes the
# weights move by thousandths of their norm, and the model is UtU to two or three decimals in accuracy and in what attacks see on $G_r$:
# see the comparison of CEU's published form with UtU under Utility. It is not UtU bit for bit, and where posteriors of an early-stopped
# model are nearly equal, a rank-based attack sees the smallest step.
# :::
#
# :::{exercise}
# :label: ex-certified-batch
# The bound of one step grows with the square of its length. Compare one request of $B$ edges with $B$ requests of one edge whose steps
# point in random directions, and in the same direction.
# :::
#
# :::{solution} ex-certified-batch
# :class: dropdown
# With single steps of length $s$ the stream pays $B s^2$. One block has length $s \sqrt B$ in random directions, so it pays the same
# $B s^2$; in one direction it has length $B s$ and pays $B^2 s^2$, which is $B$ times as much.
# :::

# %% tags=["hide-input", "nbval-ignore-output"]
provenance(
    {"dataset": dataset, "seed": seed, "forget": forget, "fraction": fraction, "block": block},
    graphs=[data],
)
