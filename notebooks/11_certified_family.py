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
# $$L_b(\theta; G) = \frac1m \sum_{v \in V_L} \ell_v(\theta; G) + \frac\lambda2 \|\theta\|^2 + b^\top \theta,
# \qquad b \sim \mathcal N(0, \sigma^2 I),$$ (eq-perturbed)
#
# is strictly convex and has one optimum. The linear term $b$ is the noise of *objective perturbation*: it hides how far a
# step fell short of the optimum on $G_r$. The step is Newton's, on the gradient that the removal changed,
#
# $$\theta' = \theta - H^{-1} \Delta, \qquad \Delta = \frac1m \sum_{v \in T}
# \big(\nabla \ell_v(\theta; G_r) - \nabla \ell_v(\theta; G)\big),$$ (eq-influence-step)
#
# with $T$ the training nodes whose view of the graph changes. If the gradient that is left is at most
# {cite:p}`guo2020certified`
#
# $$\|\nabla L_b(\theta'; G_r)\| \;\le\; \frac{\sigma\, \varepsilon}{c}, \qquad c = \sqrt{2 \ln (1.5 / \delta)},$$ (eq-budget)
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
#   $\sqrt{4 C |T| / (m \lambda)}$ plus the length of the step, with $C$ the largest loss.
#
# **Threat model of a certificate.** It speaks to whoever sees the released weights, chose the requests without having seen
# them, and does not know $b$. It says nothing about what the answers on $G_r$ tell through the graph itself: that is the subject
# of {ref}`ch-accuracy-is-blind` and the attacks below.

# %% tags=["parameters"]
dataset: str = "synthetic"  # graph of the live experiments, any name that load_graph takes
seed: int = 0  # seed of the split, the training and the methods
forget: str = "random"  # forget set of the live experiments
fraction: float = 0.05  # share of the edges to forget
block: int = 5  # edges in one request of the stream

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
from lethe_lib.reporting.claims_certified_family import backbone_gap
from lethe_lib.reporting.families import (
    GRAPHS,
    NATIVE,
    TITLES,
    accuracy_figure,
    collapsed_cells,
    excess_figure,
    outcomes,
)
from lethe_lib.reporting.native_family import (
    STYLES,
    bound_figure,
    needed_noise_table,
    noise_figure,
    request_steps,
    residual_table,
    seconds_table,
    time_figure,
)
from lethe_lib.structure import forget_set
from lethe_lib.study.certified_requests import (
    NOISE,
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
# One function serves CEU, IDEA and GIF. Which graph its Hessian belongs to is a setting.

# %%
show_source(influence_step, taylor_bound)

# %% [markdown]
# With the Hessian on $G_r$ the gradient that is left, $\nabla L_b(\theta') - \nabla L_b(\theta) - H\,\delta$ with $\delta = \theta' - \theta$,
# is a Taylor remainder of one function, and one Lipschitz constant bounds it. With the Hessian on $G$, as in CEU's paper, it also
# holds $(H_{G_r} - H_G)\, \delta$, which is first order in the removed edges and in no bound.
#
# ### The head, its bounds and its budget

# %%
show_source(pointwise_bound, step_bound)

# %%
show_source(CertifiedHead.remove, Accountant.charge)

# %% [markdown]
# ### Lazy push
#
# ScaleGUN keeps for every feature a reserve and a residue per hop. A removal changes those of two nodes; only residues above a
# threshold are pushed on. The sum of what stays behind bounds the error of the features.

# %%
show_source(LazyPush.remove)

# %% [markdown]
# ### IDEA's noise

# %%
show_source(distance_bound, calibrated_sigma)

# %% [markdown]
# **Differences from the papers**
#
# 1. All forgotten edges are removed, in one step by default or block by block; the Hessian is that of $G_r$.
# 2. CEU: the bound is for the softmax ($\gamma = \sqrt2 / (3\sqrt3)$), it includes the gradient that training left, what the
#    solver left, and the rounding of the release. Off convexity the step is damped and safeguarded, and no certificate is given.
# 3. CGU and ScaleGUN: the classes form one weight vector with one isotropic $b$, so the L2 norm over classes is charged; the published
#    code compares the sum over classes with $C$ budgets, which bounds neither a class nor the release. Ridge $10^{-4}$ in place of
#    $10^{-2}$. ScaleGUN's residues enter with absolute values; the published code adds them with their signs, which bounds nothing.
# 4. IDEA: the noise that the proof asks for is reported beside the one that is added; the certificate is not applicable while the
#    added one is smaller.
# 5. GIF, an addition: IDEA's step without noise.
# 6. `published`, the benchmark's forms. CEU: the Hessian of the *sum* with the $1/m$ of the mean, so a step $m$ times too small, held-out
#    labels included. IDEA: the noise thrown away, then ten steps of fine-tuning. CGU: 100 edges drawn at random from the whole graph in
#    place of the request. ScaleGUN: the first 500 edges of the request, by full propagation without any push, with the Hessian of the
#    first graph.
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
    table = pd.DataFrame(steps).assign(line=TITLES[method], budget=own["budget"])
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

# %% mystnb={"figure": {"name": "fig-live-bounds", "caption": "Bounds are kept, with room to spare, and soon exceed the budget. With the old Hessian CEU leaves a residual several times larger for small requests; the dashed line of the same formula is no bound for it. Generated graph, one original per method, requests at once."}, "image": {"alt": "Residual and bound over the budget against the number of removed edges on log scales for CEU with new and old Hessian, CGU and ScaleGUN; dashed bounds above full residuals, most crossing one."}} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7, 4.6))
for line, part in by_line.items():
    colour, marker = STYLES[line]
    ax.plot(part.index, part["residual"] / part["budget"], marker=marker, color=colour, markersize=4, label=line)
    ax.plot(
        part.index, part["bound"] / part["budget"], "--", marker=marker, color=colour, markersize=4, fillstyle="none"
    )
ax.axhline(1, color="0.3", linewidth=1)
ax.set(xscale="log", yscale="log", xlabel="edges removed at once", ylabel="in budgets of (1, 1e-4)")
handles, labels = ax.get_legend_handles_labels()
handles += [plt.Line2D([], [], color="0.3"), plt.Line2D([], [], color="0.3", linestyle="--")]
fig.legend(handles, [*labels, "exact residual", "bound"], loc="outside right upper")
plt.show()

# %% [markdown]
# {glue:text}`pairs` pairs in all. At {glue:text}`few` edges CEU with the old Hessian leaves {glue:text}`old_over_new` times the residual
# of the new one. The proved bounds lie between {glue:text}`tightest` and {glue:text}`loosest` times above the exact residuals.
#
# A request of as many edges, all at one node, is another matter: the view of few nodes changes much.

# %% tags=["nbval-ignore-output"]
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
                "gradient to cancel, budgets": row["difference_norm"] / budget,
                "residual, budgets": certificate.residual / budget,
                "formula, budgets": row["bound"] / budget,
            }
        )
show_table(pd.DataFrame(concentrated), "CEU on a request at one node and on as many random edges.")

# %% [markdown]
# The busiest node has {glue:text}`at_one` edges.
#
# ### One request after the other
#
# The same edges in blocks, CGU, with its budget at $(1, 10^{-4})$. Bounds add up; where the next one would not fit, the model is trained
# again and the books start anew.

# %% tags=["nbval-ignore-output"]
blocks = pairs.split(block, dim=1)
ridges = {"ridge of ours": 1e-4, "ridge of the paper": 1e-2}
served = {name: list(stream("cgu", original, data, blocks, seed, ridge=ridge)) for name, ridge in ridges.items()}
for key, requests in zip(("ours", "paper"), served.values(), strict=True):
    assert all(one.residual <= one.bound + 1e-10 for one in requests), "a proved bound was exceeded"
    glue_number(f"again_{key}", requests[-1].retrainings)
    glue_number(f"spent_{key}", float(max(one.bound / one.budget for one in requests)), 2)
glue_number("requests", len(blocks))

# %% mystnb={"figure": {"name": "fig-stream", "caption": "Bounds add up over requests until one would not fit (cross: the model was trained again); the exact residual stays below. The paper's stronger ridge makes steps shorter and bounds far smaller. CGU on a generated graph."}, "image": {"alt": "Two panels, ridge of ours and of the paper: bound and exact residual in budgets against the number of edges removed so far, with a cross at a retraining and a line at one."}} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True)
for ax, (name, requests) in zip(axes, served.items(), strict=True):
    removed = np.cumsum([one.edges for one in requests])
    for key, label, style in (("bound", "bound so far", "--"), ("residual", "exact residual", "-")):
        values = [max(getattr(one, key), 1e-12) / one.budget for one in requests]
        ax.plot(removed, values, style, color=PALETTE[2], label=label)
    again = [one.retrained for one in requests]
    ax.plot(removed[again], np.full(sum(again), 3.0), "x", color="black", label="trained again", linestyle="")
    ax.axhline(1, color="0.3", linewidth=1)
    ax.set(yscale="log", ylim=(1e-7, 10), title=name, xlabel="edges removed so far")
axes[0].set_ylabel("in budgets of (1, 1e-4)")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% [markdown]
# {glue:text}`requests` requests. Under our ridge {glue:text}`again_ours` of them trained the model again; under the paper's
# {glue:text}`again_paper`, with at most {glue:text}`spent_paper` budgets spent.
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
                "method": TITLES[method],
                "status": found.status if found.status == "unsupported" else (certificate.status.replace("_", " ")),
                "gradient on the retained graph before": row.get("retained_gradient_norm"),
                "after": certificate.residual if certificate else None,
            }
        )
scope = pd.DataFrame(scope)
show_table(
    scope,
    "Four certified methods on five backbones, a request of a few edges; the gradient norms of CEU and IDEA are on the mean scale.",
)
glue_text(
    "non_linear",
    ", ".join(dict.fromkeys(scope[~scope["status"].isin(("valid", "budget exhausted retrained"))]["backbone"])),
)
gcn_ceu = scope[(scope["backbone"] == "GCN") & (scope["method"] == "CEU")].iloc[0]
glue_number("gcn_before", gcn_ceu["gradient on the retained graph before"], 3)
glue_number("gcn_after", gcn_ceu["after"], 3)
glue_number("sgc_budget", NOISE["ceu"] / noise_factor(1e-4), 2)

# %% [markdown]
# On the GCN the gradient norm is {glue:text}`gcn_before` before CEU's step and {glue:text}`gcn_after` after it: what early stopping left
# is all that one sees, against a budget of {glue:text}`sgc_budget` under the noise that the SGC bears. Training on to a stationary point
# would not help, since it is one of many: the Hessian is indefinite on the way and CG's damping has to be raised.
#
# ## Results
#
# ### Bound and residual on real graphs

# %% mystnb={"figure": {"name": "fig-bounds", "caption": "No proved bound is exceeded. How many edges a budget carries depends on the graph and on the ridge more than on the method: CEU's bound soon passes it, on Cora also those of CGU and ScaleGUN, and with the paper's ridge CGU's stays far below it. Geometric means over seeds, requests at once, SGC."}, "image": {"alt": "One panel per graph: residual as full and bound as dashed lines over the budget against the number of removed edges for CEU with new and old Hessian, CGU and ScaleGUN."}} tags=["hide-input"]
recorded = request_steps()
bound_figure(recorded)
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

# %% [markdown]
# {glue:text}`steps_recorded` requests with a proof: the bound is at least {glue:text}`recorded_tightest` times the exact residual, in the
# median {glue:text}`recorded_median` times. With the old Hessian CEU's residual is {glue:text}`old_residual` times that with the new one
# in the median and up to {glue:text}`old_residual_most` times.
#
# ### What noise costs

# %% mystnb={"figure": {"name": "fig-noise", "caption": "On Cora the noise that a request of 5 % needs lies beyond what the models bear, for IDEA by orders of magnitude. Test accuracy of the method's original against its noise; below, the noise that one edge and that 5 % of the edges ask for. CEU: mean scale; CGU and ScaleGUN, our ridge: sum scale; IDEA: on the weights."}, "image": {"alt": "Four panels, CEU, CGU, ScaleGUN and IDEA: accuracy against noise on a log axis falling from a plateau, with markers of the needed noise at the bottom."}} tags=["hide-input"]
noise_figure(recorded)
plt.show()

# %%
needed = needed_noise_table(recorded)
show_table(
    needed,
    "Noise for a guarantee of (1, 1e-4) at once, medians over seeds; the largest noise tried that costs at most two points; and the "
    "largest request that the method's own noise carries.",
)
cora = needed[needed["graph"] == "Cora"].set_index("method")
glue_text("idea_needed", as_text(cora.loc["IDEA", "needed, 5 %"], 2))
glue_text("idea_borne", as_text(cora.loc["IDEA", "borne"], 2))
glue_text("cgu_needed", as_text(cora.loc["CGU", "needed, 5 %"], 2))
glue_text("cgu_borne", as_text(cora.loc["CGU", "borne"], 2))
paper = "CGU, paper's ridge"
glue_text("paper_needed", as_text(cora.loc[paper, "needed, 5 %"], 2))
released = cora["accuracy at 5 %, %"]
glue_text("paper_accuracy", f"{released[paper]:.1f}")
glue_text("ours_accuracy", f"{released['CGU']:.1f}")

# %% [markdown]
# On Cora 5 % at once ask for noise of {glue:text}`cgu_needed` under CGU, which bears {glue:text}`cgu_borne`. With the paper's ridge
# {glue:text}`paper_needed` is enough, and the head has {glue:text}`paper_accuracy` % accuracy against {glue:text}`ours_accuracy` % with
# ours: strong convexity is what carries a certificate. IDEA would have to add {glue:text}`idea_needed` to every weight and bears
# {glue:text}`idea_borne`.
#
# ### Time against Gold

# %% mystnb={"figure": {"name": "fig-time", "caption": "On SGC retraining is cheap, and no certified update undercuts it, not even one of a single edge. Seconds over those of Gold (the SGC trained again) in the same run; crosses include one retraining of the method's own original, since the bound exceeds the budget. Geometric means over seeds."}, "image": {"alt": "One panel per graph: seconds over Gold's on a log scale against the number of removed edges for CEU, CGU, ScaleGUN and IDEA, with a line at one and crosses where a retraining is included."}} tags=["hide-input"]
time_figure(recorded)
plt.show()

# %%
show_table(
    seconds_table(recorded),
    "Seconds over those of Gold in the same run. 1 edge and 5 % hold one retraining of the method's own original where the budget of "
    "(1, 1e-4) does not carry the request; IDEA's noise has no budget.",
)

# %% [markdown]
# ### Gradient norms beyond the linear model

# %%
show_table(
    residual_table(),
    "Exact gradient norm of the released model, mean scale, medians over seeds and sets, preset corrected; CEU without noise.",
)

# %% [markdown]
# ### Utility

# %% mystnb={"figure": {"name": "fig-certified-accuracy", "caption": "On SGC steps and heads stay within a few points of the original; the own heads of CGU and ScaleGUN differ by what they are, before any request, most from an original that the published schedule stopped early. Change of test accuracy against the trained SGC, mean and range over seeds; published CGU and ScaleGUN with 20 edges."}, "image": {"alt": "Four panels, presets corrected and published by forget sets low and high, methods as rows and graphs as coloured points."}} tags=["hide-input"]
accuracy_figure(("gold", "utu", *METHODS), NATIVE, "sgc")
plt.show()

# %%
show_table(
    outcomes(("gold", "utu", "memoriser", *METHODS), NATIVE, "sgc").drop(columns="time, % of Gold"),
    "SGC, low and high sets. Accuracy: change against the original. Above/below: cells whose whole interval of the excess lies above or "
    "below Gold.",
)
show_table(
    outcomes(("gold", "utu", "memoriser", "ceu", "idea", "gif"), NATIVE, "gcn").drop(columns="time, % of Gold"),
    "The same on the GCN, where the steps are heuristics without certificate.",
)
glue_text("collapsed_sgc", collapsed_cells(METHODS, NATIVE, "sgc"))
glue_text("collapsed_gcn", collapsed_cells(METHODS, NATIVE, "gcn"))

# %% [markdown]
# Collapsed runs on SGC: {glue:text}`collapsed_sgc`; on the GCN: {glue:text}`collapsed_gcn`. Times stand apart, in the study that measures
# Gold beside every method.
#
# ### Leakage beside Gold

# %% mystnb={"figure": {"name": "fig-certified-excess", "caption": "Preset corrected on SGC: a certificate about weights is no statement about answers on a graph; where an own head or noise changes the posteriors, Link Stealing moves with them. Signed AUC in excess of Gold's with bootstrap intervals; the band is that of Gold itself; scales differ."}, "image": {"alt": "Six panels, three attacks by two forget sets, methods as rows and graphs as coloured points with intervals around zero."}} tags=["hide-input"]
excess_figure(("gold", "utu", "memoriser", *METHODS), "corrected", NATIVE, "sgc")
plt.show()

# %% [markdown]
# ### The claims

# %%
finding = check_claim("L15")

# %% [markdown]
# {glue:text}`L15_detail`

# %%
finding = check_claim("L16")
gaps = backbone_gap()
show_table(
    gaps.assign(data=gaps["data"].map(GRAPHS), **{name: 100 * gaps[name] for name in ("gap", "low", "high")}),
    "Test accuracy of the original GCN minus that of the original SGC, in points, paired by seed, with 95 % intervals over seeds.",
)

for preset, part in gaps.groupby("preset"):
    glue_text(f"gap_{preset}", f"{100 * part['gap'].mean():.1f}")
    glue_text(f"gap_{preset}_least", f"{100 * part['gap'].min():.1f}")
    glue_text(f"gap_{preset}_most", f"{100 * part['gap'].max():.1f}")

# %% [markdown]
# {glue:text}`L16_detail` With the benchmark's training the gap is {glue:text}`gap_published` points in the mean over graphs, trained to
# convergence {glue:text}`gap_corrected` (from {glue:text}`gap_corrected_least` to {glue:text}`gap_corrected_most`): most of it belongs to a
# convex problem that was stopped early, and little to the linear model.

# %%
finding = check_claim("L17")

# %% [markdown]
# {glue:text}`L17_detail` Its estimand was narrowed to runs that time Gold beside the method after first timings, taken at
# different loads, had been seen; its threshold was not. The comparison is between small models on small graphs, where retraining is a convex problem of seconds. What
# lazy push saves is propagation, and that is dear on graphs a thousand times larger.
#
# ## What would change our mind
#
# A proof for a loss that is not convex in the weights would move L15, and a certificate that holds for the answers on $G_r$ and not only for
# the weights would move what these methods are worth. On a graph on which propagation alone takes hours L17 may fail, as the paper of
# ScaleGUN reports; and so it may against a Gold that is not a small convex problem but the GCN that one would rather serve. Our ridge of
# CGU and ScaleGUN was not chosen for its budget; the paper's is the better choice where accuracy does not suffer.
#
# ## Summary
#
# - A certificate needs a strictly convex objective, the Hessian of the new graph, noise in the training objective and books over all
#   requests. Without certificate here: {glue:text}`non_linear`.
# - No proved bound was exceeded. In the median it lies {glue:text}`recorded_median` times above the exact residual. The ridge decides how far
#   a budget carries: on Cora the noise that 5 % need under CGU falls from {glue:text}`cgu_needed` to {glue:text}`paper_needed` with a
#   ridge a hundred times larger.
# - With the Hessian of the old graph CEU leaves {glue:text}`old_residual` times the residual in the median, and no bound covers it.
# - The noise that IDEA's theorem asks for is {glue:text}`idea_needed` on every weight on Cora; the model bears {glue:text}`idea_borne`.
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
# $-(mH)^{-1} \frac1m \Delta^{\Sigma}$ is $m$ times shorter than $-H^{-1} \frac1m \Delta^{\Sigma}$. With thousands of training nodes the model is
# UtU to several digits: the attacks see no difference to the original's weights on $G_r$.
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
