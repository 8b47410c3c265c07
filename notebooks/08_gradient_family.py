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
# (ch-gradient-family)=
# # The gradient family
#
# :::{admonition} In this chapter
# **Question.** Can a trained model be talked out of some edges by a few further gradient steps, downhill on what stays, uphill
# on what goes?
#
# **At the end you can say** what Fine-tuning, NegGrad, AdvNegGrad and UNSIR minimise when the thing to forget is an edge, what
# each does to the model step by step, when ascent wrecks it and why, and how the methods compare on five real graphs with an
# exact answer beside them.
#
# **Run time.** Under a minute on a CPU. **Data.** A generated graph, computed here, and published records of Photo, Computers,
# DBLP, Cora and PubMed; for the claim also of CiteSeer.
# :::
#
# ## Claims
#
# :::{prf:conjecture} L03
# :label: claim-l03
# Algorithms that have not collapsed stay within 2 % of the original accuracy.
# :::
#
# The claim is one of the Lethe benchmark {cite:p}`lethe2026`. It is tested on all methods of the benchmark that the records
# hold: the generic ones of this chapter, of {ref}`ch-distillation-family` and of {ref}`ch-parameter-family`, and those made for
# graphs, which have chapters of their own ({ref}`ch-certified-family`, {ref}`ch-structural-family`).

# %% [markdown]
# ## Setting
#
# The methods of this and the next two chapters were made to forget *samples*. An edge is no sample. Let $V_L$ be the labelled
# training nodes, $\ell_v(\theta; G)$ the cross-entropy of node $v$ when the model $\theta$ looks at the graph $G$, $E_f$ the
# edges to forget and $G_r = G \setminus E_f$. Every training node keeps its label; what changes is how the touched nodes
# $A_L \subset V_L$ see the graph:
#
# $$\begin{aligned}
# |V_L|\,L(\theta; G_r) = |V_L|\,L(\theta; G) &- \sum_{v \in A_L} \ell_v(\theta; G) \\
# &+ \sum_{v \in A_L} \ell_v(\theta; G_r).
# \end{aligned}$$ (eq-views)
#
# To forget edges is to delete the *old views* of some training nodes and to insert their *new views*. Hence our mapping for
# all generic methods: a forget term reads the training endpoints $D_f$ of $E_f$ **on $G$**, a retain term reads **all** training
# nodes **on $G_r$**. The benchmark maps otherwise: forget set = every node near the request with its label, test nodes
# included, retain set = all other nodes, both on $G$. That is preset `published`; it trains on test labels and never sees
# $G_r$. Preset `corrected` is the default everywhere else.
#
# With $L_f(\theta) = \frac{1}{|D_f|}\sum_{v \in D_f} \ell_v(\theta; G)$ and $L_r(\theta) = \frac{1}{|V_L|}\sum_{v \in V_L}
# \ell_v(\theta; G_r)$ the family is
#
# $$\min_\theta\; w_r L_r(\theta) - w_f L_f(\theta), \qquad \theta \text{ starting at the original},$$ (eq-gradient-family)
#
# Fine-tuning with $(w_r, w_f) = (1, 0)$, NegGrad with $(0, 1)$ {cite:p}`golatkar2020eternal,choi2023benchmarks`, AdvNegGrad
# between {cite:p}`kurmanji2023scrub,choi2023benchmarks`. UNSIR {cite:p}`tarun2024unsir` puts learned noise in the place of the
# forgotten features first.
#
# **Threat model and controls** are those of {ref}`ch-accuracy-is-blind`: the released model answers on $G_r$, beside Gold
# (retrained on $G_r$), the Original, UtU (the original's weights on $G_r$) and Untrained. The aim is Gold's level, not the
# largest forget loss: Gold still trains on the endpoints.

# %% tags=["parameters"]
dataset: str = "synthetic"  # graph of the live experiments, any name that load_graph takes
backbone: str = "gcn"  # backbone of the live experiments
seed: int = 0  # seed of the split, the training and the methods
forget: str = "high"  # forget set of the live experiments
fraction: float = 0.05  # share of the edges to forget
steps: int = 40  # optimiser steps to follow

# %% tags=["hide-input"]
import warnings

warnings.filterwarnings("ignore", message="IProgress not found")  # no progress bars here

import copy

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch_geometric.data import Data

from lethe_lib.data import Split, canonical
from lethe_lib.models import TrainingRun, build
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
from lethe_lib.reporting.claims_gradient_family import accuracy_kept, cell_name
from lethe_lib.reporting.families import (
    accuracy_figure,
    as_points,
    backbones_table,
    chosen_table,
    collapsed_cells,
    excess_figure,
    excess_sentence,
    outcomes,
    search_figure,
)
from lethe_lib.reporting.followed_runs import follow, live_case, path_figure, released_models, sweep, sweep_figure
from lethe_lib.reporting.titles import METHOD_TITLES
from lethe_lib.unlearning import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.adv_neg_grad import descend_and_ascend, swap_views
from lethe_lib.unlearning.fine_tuning import fine_tune
from lethe_lib.unlearning.l1_sparse import fine_tune_sparsely
from lethe_lib.unlearning.neg_grad import NegGradSettings, ascend
from lethe_lib.unlearning.npo import prefer_not, preference_loss
from lethe_lib.unlearning.unsir import impair_and_repair, replacing_noise

check_parameters(globals())
use_style()
METHODS = ("fine_tuning", "neg_grad", "adv_neg_grad", "adv_neg_grad_matched", "unsir", "npo", "l1_sparse")


# %% [markdown]
# ## Tiny example
#
# Three nodes in a row, $0 - 1 - 2$, node 0 of class 0, the others of class 1. The model smooths once and is linear,
# $Z = P X W^\top$ with $X$ the identity, and starts at $W = 0$, so that every posterior is $(\tfrac12, \tfrac12)$. Nodes 0 and
# 2 are training nodes; forget the edge $0 - 1$. The old view of node 0, the only training endpoint, is its row of $P$: with
# self-loops the degrees are 2, 3, 2, so $P_0 = (\tfrac12, \tfrac{1}{\sqrt 6}, 0)$. The gradient of its loss is
#
# $$\nabla_W \ell_0 = (p_0 - y_0)\,P_0 = \begin{pmatrix} -\tfrac12 \\ \phantom{-}\tfrac12 \end{pmatrix}
# \begin{pmatrix} \tfrac12 & \tfrac{1}{\sqrt 6} & 0 \end{pmatrix},$$
#
# and one step of NegGrad at rate 1 adds it: $W = 0 + \nabla_W \ell_0$. Node 0 now prefers the wrong class, by construction.

# %%
row_of_three = canonical(
    Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, 1])), "three in a row"
)
linear = build(row_of_three, "sgc", layers=1, bias=False)
torch.nn.init.zeros_(linear.head.weight)
parts = Split(train=torch.tensor([0, 2]), val=torch.tensor([1]), test=torch.tensor([], dtype=torch.int64))
linear.training_run = TrainingRun("sgc", 0, "corrected", {"weight_decay": 0.0}, parts)
request = EdgeRequest(linear, row_of_three, torch.tensor([[0], [1]]))
assert request.forget_nodes.tolist() == [0]
plain = NegGradSettings(steps=1, optimiser="sgd", learning_rate=1.0, clip=None, bound="none")
stepped, _ = ascend(copy.deepcopy(linear), request, plain, seed=0)
by_hand = torch.outer(torch.tensor([-0.5, 0.5]), torch.tensor([0.5, 6**-0.5, 0.0])) + 0.0  # no negative zero
assert torch.allclose(stepped.head.weight, by_hand, atol=1e-6)
show_table(
    pd.DataFrame(
        {
            "weight of": ["class 0", "class 1"],
            **{f"node {v}, by hand": by_hand[:, v].tolist() for v in range(3)},
            **{f"node {v}, library": stepped.head.weight[:, v].tolist() for v in range(3)},
        }
    ),
    "One step of NegGrad from zero weights: the gradient of the forget loss itself.",
)

# %% [markdown]
# ## Method
#
# ### Fine-tuning
#
# $L_r$ alone. The request enters only through $G_r$: nothing pushes the old views out, so any forgetting is a by-product of
# further training.

# %%
show_source(fine_tune)

# %% [markdown]
# ### NegGrad
#
# Ascent on $L_f$ alone, with three guards that are settings and are logged: few steps, a cut gradient norm, and a bound at
# which ascent stops. $G_r$ is never seen.

# %%
show_source(ascend)

# %% [markdown]
# ### AdvNegGrad, and a variant that matches views
#
# Both terms in one step. In the *matched* variant, ours, $w_r = 1$, $w_f = |A_L|/|V_L|$, $D_f = A_L$, and both forwards draw the
# same dropout masks. By {eq}`eq-views` its gradient is then
#
# $$\nabla L(\theta; G_r) - \tfrac{1}{|V_L|} \sum_{v \in A_L} \nabla \ell_v(\theta; G),$$ (eq-matched)
#
# the untouched nodes plus a difference of views: to first order what influence methods remove.

# %%
show_source(descend_and_ascend, swap_views)

# %% [markdown]
# ### UNSIR
#
# Let $\tilde X$ be the features $X$ with the rows of $D_f$ replaced by noise $N$. UNSIR learns noise that raises the loss of the
# fixed original, trains on it (*impair*), then trains on $G_r$ (*repair*):
#
# $$\begin{aligned}
# &\max_{N}\; \tfrac{1}{|D_f|} \sum_{v \in D_f} \ell_v(\theta_o; \tilde X, G)
# \;\text{ with }\; \lVert N_v \rVert = \lVert X_v \rVert, \\
# &\min_\theta\; \tfrac{1}{|D_f|} \sum_{v \in D_f} \ell_v(\theta; \tilde X, G) + L_r(\theta), \\
# &\min_\theta\; L_r(\theta).
# \end{aligned}$$ (eq-unsir)
#
# On a graph noise travels along edges, so each row of $N$ keeps the length of the row it replaces.

# %%
show_source(replacing_noise, impair_and_repair)

# %% [markdown]
# ### Two additions: NPO and l1-sparse
#
# Negative preference optimisation {cite:p}`zhang2024npo` bounds the ascent: with
# $r_v = p_\theta(y_v)/p_{\theta_o}(y_v)$ its forget term is
#
# $$\tfrac{2}{\beta}\,\tfrac{1}{|D_f|}\sum_{v \in D_f} \log\!\big(1 + r_v^\beta\big),$$ (eq-npo)
#
# whose gradient is NegGrad's, each sample weighted by $2 r_v^\beta / (1 + r_v^\beta)$: one at the start, towards zero as the
# sample is forgotten. We use it with a retain term. l1-sparse {cite:p}`jia2023sparse` is Fine-tuning
# with a penalty $\gamma_t \lVert\theta\rVert_1$ that fades out.

# %%
show_source(prefer_not, preference_loss, fine_tune_sparsely)

# %% [markdown]
# **Differences from the papers**
#
# 1. Edges in place of samples, by the mapping above; full-batch steps in place of mini-batches and epochs.
# 2. NegGrad has guards. The original has none; `published` is one unguarded Adam step. The default bound is $\log C$, for $C$ classes the loss of guessing, and not the
#    earlier one at the loss of held-out nodes, which is a setting (never above $\log C$): so a run reads training labels only, and
#    what keeps it from the bound is its number of steps, chosen on validation nodes of other seeds.
# 3. AdvNegGrad's forget term is cut at $\log C$; weights are tuned, where the papers have
#    $(0.95, 0.05)$ or $(1, 1)$.
# 4. UNSIR was made for forgetting classes: there noise stands for a class, here for single nodes. Its penalty
#    $\lambda \lVert N \rVert^2$ is dropped, as the lengths of the rows are fixed. The noise is dense also where features are sparse, as
#    bags of words are: a noised row has a node's length and not its pattern.
# 5. Weight decay is the original's wherever a retain term exists. Under Adam the first step of every method is nearly a sign
#    step, whatever the scale of its loss.
# 6. `published` reproduces the benchmark: one Adam step at 0.001 per phase, the mapping above with test labels, everything on
#    $G$.
#
# ### How settings were chosen
#
# Every method of the three chapters has the same budget of twelve settings, tried on Cora, Photo and DBLP with seeds that no
# published run uses. A setting is **admissible** if no run collapsed and validation accuracy on $G_r$ falls by at most one point
# on every graph. Among these, a method with a forget term takes the setting whose forget loss lies nearest to a **reference**:
# the original's loss on validation nodes of the same classes and degrees, which is what it shows on nodes it never trained
# on. Fine-tuning and l1-sparse aim at nothing, so they take the admissible setting that moves the weights most. No test node,
# no Gold and no attack enters the choice.
#
# ## Experiment
#
# One request on the generated graph, three Golds: the first starts from the original's initial weights, the others from
# new ones. We follow the methods of preset `corrected` for as many steps as the parameter says, UNSIR for its own phases. A
# method's own log holds the losses that its steps compute; the five numbers below are measured from outside after every step,
# in evaluation mode and on the same nodes for all methods. Distance is the mean total variation of the posteriors to the first
# Gold, weight change the length of the change over that of the original's weights.

# %% tags=["nbval-ignore-output"]
case = live_case(dataset, backbone, seed, forget, fraction)
runs = {}
for name in METHODS:
    budget = {} if name == "unsir" else {"steps": steps}
    runs[METHOD_TITLES[name]] = follow(case, name, seed=seed, **budget)
glue_number("pairs", case.pairs.shape[1])
glue_number("forget_nodes", len(case.request.forget_nodes))
glue_number("floor", case.floor, 2)
glue_number("start_distance", runs["Fine-tuning"].path["distance"].iloc[0], 2)
glue_text("start_loss", as_text(runs["Fine-tuning"].path["forget_loss"].iloc[0], 3))
glue_text("gold_loss", as_text(case.gold_levels["forget_loss"].mean(), 3))
glue_text("reference_loss", as_text(case.reference_loss, 3))

# %% mystnb={"figure": {"name": "fig-gradient-paths", "caption": "What five numbers do while seven methods of the family work. Descent lowers the forget loss and ascent raises it; hardly a step brings any of them nearer to Gold, and most lead away. Grey: the range of three Golds, and in the panel of distances the distance between two Golds; dashed: the reference loss of the tuning rule."}, "image": {"alt": "Five panels over optimiser steps with one line per method: forget loss, retain loss, validation accuracy, distance to Gold, weight change. Fine-tuning and l1-sparse stay low in the losses, ascent methods rise in the forget loss; distances to Gold grow for all."}} tags=["hide-input"]
path_figure(runs, case)
plt.show()

# %% [markdown]
# {glue:text}`pairs` pairs are forgotten, with {glue:text}`forget_nodes` training endpoints. Before any step the original's
# weights lie {glue:text}`start_distance` from Gold in total variation, where two Golds of different initial weights lie
# {glue:text}`floor` apart: it starts nearer to an exact answer than another exact answer is, so that a method has little to win
# and much to lose. The forget loss starts at {glue:text}`start_loss`; Gold's own is {glue:text}`gold_loss`, and the reference
# that the tuning rule aims at is {glue:text}`reference_loss`. Gold still trains on these nodes, as $G_r$ shows them, so a method
# that reaches the reference may have forgotten more than Gold did.
#
# Both presets as they are released, on this request:

# %% tags=["hide-input", "nbval-ignore-output"]
released = released_models(case, METHODS, seed)
show_table(
    released.drop(columns="backwards").rename(columns=lambda name: name.replace("_", " ")),
    "The released models: losses in nats, validation accuracy and distance to Gold on the retained graph, change of the weights.",
)
tried = released[released["status"].notna()]
glue_number("furthest", tried["distance"].max(), 2)
glue_text("furthest_method", tried.loc[tried["distance"].idxmax(), "method"])
glue_number("nearer", int((tried["distance"] < released["distance"].iloc[0]).sum()))
glue_number("tried", len(tried))

# %% [markdown]
# Of {glue:text}`tried` released models {glue:text}`nearer` lie nearer to Gold than the weights that they started from.
#
# ### Where ascent collapses, and why
#
# Cross-entropy has no upper bound. Once the model gives a forgotten node's true class no probability, the gradient of that loss
# with respect to the logits keeps a norm between one and $\sqrt 2$: it never fades, and every further step only makes the logits
# larger, and with the weights the gradient that reaches them. What stops it must come from outside. Below, NegGrad without any guard under the benchmark's mapping and
# under ours, and with the two bounds: at $\log C$, and at the loss of held-out nodes of the same classes and degrees.

# %% mystnb={"figure": {"name": "fig-neg-grad-collapse", "caption": "NegGrad without a guard wrecks the model under either mapping: the forget loss grows without end, and the gradient by the weights grows with it. A bound at the loss of held-out nodes stops it while accuracy is whole; a bound at the loss of guessing comes too late."}, "image": {"alt": "Three panels over steps for four forms of NegGrad: forget loss on a log scale, validation accuracy, norm of the gradient by the weights. The unguarded forms climb and lose accuracy; the two guarded lines end early."}} tags=["hide-input"]
rate = {"learning_rate": 1e-3, "optimiser": "adam", "clip": 1e9}  # a clip that cuts nothing, so that the norm is logged
forms = {
    "benchmark's nodes, no guard": ({"bound": "none"}, PUBLISHED),
    "endpoints, no guard": ({"bound": "none"}, EDGE_REPLACE),
    "endpoints, stop at log C": ({"bound": "guessing"}, EDGE_REPLACE),
    "endpoints, stop at held-out loss": ({"bound": "validation"}, EDGE_REPLACE),
}
ascents = {
    name: follow(case, "neg_grad", mapping=mapping, seed=seed, steps=2 * steps, **rate, **bound)
    for name, (bound, mapping) in forms.items()
}
fig, grid = plt.subplots(2, 2, figsize=(7, 5.6))
axes = grid.flat
for colour, (name, run) in zip(PALETTE, ascents.items(), strict=False):
    path = run.path
    norms = [row["gradient_norm"] for row in run.result.steps.rows if "gradient_norm" in row]
    axes[0].plot(path["step"], path["forget_loss"], color=colour, label=name)
    axes[1].plot(path["step"], path["accuracy_val"], color=colour)
    axes[2].plot(range(len(norms)), norms, color=colour)
    for ax, column in ((axes[0], "forget_loss"), (axes[1], "accuracy_val")):
        ax.plot(path["step"].iloc[-1], path[column].iloc[-1], "o", color=colour)
axes[0].axhline(case.guessing_loss, color="0.3", linestyle=":", linewidth=1)
axes[0].set(yscale="log", title="forget loss, nats", xlabel="step")
axes[1].set(title="validation accuracy", xlabel="step")
axes[2].set(title="gradient norm, weights", xlabel="step")
axes[3].axis("off")
axes[3].legend(*axes[0].get_legend_handles_labels(), loc="center")
plt.show()

# %% tags=["hide-input", "nbval-ignore-output"]
ends = pd.DataFrame(
    [
        {
            "form": name,
            "steps taken": len(run.path) - 1,
            "forget loss": run.path["forget_loss"].iloc[-1],
            "validation accuracy": run.path["accuracy_val"].iloc[-1],
            "distance to Gold": run.path["distance"].iloc[-1],
            "status": run.result.status,
        }
        for name, run in ascents.items()
    ]
)
show_table(ends, "How the four ascents end.")
free, held = ascents["benchmark's nodes, no guard"], ascents["endpoints, stop at held-out loss"]
glue_text("free_status", free.result.status)
glue_number("free_accuracy", 100 * free.path["accuracy_val"].iloc[-1], 4)
glue_number("held_steps", len(held.path) - 1)
glue_number("held_accuracy", 100 * held.path["accuracy_val"].iloc[-1], 3)
glue_number("all_steps", 2 * steps)

# %% [markdown]
# After {glue:text}`all_steps` steps the unguarded form on the benchmark's nodes is {glue:text}`free_status` with
# {glue:text}`free_accuracy` % validation accuracy; the bound at the held-out loss ends the ascent after
# {glue:text}`held_steps` steps with {glue:text}`held_accuracy` %. The benchmark takes one step, which hides all this.
#
# ### The main settings

# %% mystnb={"figure": {"name": "fig-gradient-sweeps", "caption": "Five methods over their main setting. Four have a range in which they do nearly nothing and one in which they do harm; l1-sparse moves further from Gold than another Gold is at every gamma, and keeps its validation accuracy. Steps of Fine-tuning and l1-sparse keep the forget loss below Gold's; a larger forget weight and a smaller beta take it through the reference and beyond. Grey: the range of three Golds and, for distances, the distance between two Golds; dashed: the reference loss; dotted: the loss of guessing."}, "image": {"alt": "Five rows of three panels: Fine-tuning against steps, AdvNegGrad against the weight of the forget term with and without the bound, UNSIR against the rate of the impair phase, NPO against beta, l1-sparse against gamma; columns are forget loss, validation accuracy and distance to Gold."}} tags=["hide-input"]
mixed = {"steps": 20, "learning_rate": 1e-3}
sweeps = {
    "Fine-tuning": (
        "steps",
        sweep(case, "fine_tuning", {n: {"steps": n, "learning_rate": 1e-3} for n in (1, 5, 10, 25, 50, 100, 200)}),
    ),
    "AdvNegGrad": (
        "forget weight",
        sweep(
            case,
            "adv_neg_grad",
            {w: {"w_retain": 1 - w, "w_forget": w, **mixed} for w in (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)},
            {"cut at log C": {"bounded": True}, "not cut": {"bounded": False}},
        ),
    ),
    "UNSIR": (
        "impair rate",
        sweep(case, "unsir", {r: {"impair_rate": r} for r in (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)}),
    ),
    "NPO": ("beta", sweep(case, "npo", {b: {"beta": b, **mixed} for b in (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)})),
    "l1-sparse": ("gamma", sweep(case, "l1_sparse", {g: {"gamma": g} for g in (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)})),
}
sweep_figure(sweeps, case)
plt.show()
crossing = (
    sweeps["AdvNegGrad"][1].query("form == 'cut at log C' and forget_loss >= @case.reference_loss")["value"].min()
)
glue_text("crossing", "no weight tried" if pd.isna(crossing) else f"weight {crossing:g}")

# %% [markdown]
# NegGrad's own setting, its bound, was the subject of the section before. For AdvNegGrad the forget loss first passes the
# reference at {glue:text}`crossing`: the useful range is narrow, lies at small weights, and has to be searched for.
#
# ## Results
#
# ### The search on real graphs
#
# Three graphs, two seeds, twelve settings a method. The vertical axis is what the rule minimises (the gap to the reference) or,
# for Fine-tuning and l1-sparse, what it maximises (the change of the weights).

# %% mystnb={"figure": {"name": "fig-gradient-search", "caption": "Forgetting more costs more: without the loss of a point only AdvNegGrad and NPO come clearly nearer to the reference than the original is (a gap of 0.07 nats), and neither by half. Every setting that was tried; those left of the dotted line cost more than a point of validation accuracy on some graph; the ringed one was chosen. Colour: the first setting of the method's grid."}, "image": {"alt": "Seven panels, one per method, with twelve points each: change of validation accuracy on the worst graph against the gap to the reference loss or against the weight change; one point per panel is ringed."}} tags=["hide-input"]
search_figure(METHODS)
plt.show()

# %%
chosen = chosen_table(METHODS)
show_table(
    chosen,
    "The chosen settings, and what the rule weighed: change of validation accuracy in points, loss on forget samples and the loss "
    "aimed at in nats, change of the weights; means over three graphs and two seeds.",
)
glue_text("none_admissible", ", ".join(chosen[chosen["admissible"].str.startswith("0 ")]["method"]) or "no method")

# %% [markdown]
# Methods without an admissible setting, for which the rule takes the one that loses least: {glue:text}`none_admissible`.
#
# ### Utility

# %% mystnb={"figure": {"name": "fig-gradient-accuracy", "caption": "Under preset corrected most methods stay within a point or two of UtU; the matched variant and NPO lose more where the high set of Photo or Computers goes. Under preset published the methods that ascend lose most, on the same two graphs. Change of test accuracy against the original, GCN, 5 % sets, mean and range over seeds; a cross marks a cell with a collapsed run."}, "image": {"alt": "Four panels, presets corrected and published by forget sets low and high, methods as rows and graphs as coloured points; the published row scatters more than the corrected one."}} tags=["hide-input"]
accuracy_figure(("gold", "utu", *METHODS))
plt.show()

# %%
table = outcomes(("gold", "utu", *METHODS))
attacked = [column for column in table if column.endswith("above/below")]
show_table(
    table.drop(columns=attacked),
    "Five graphs, low and high sets, three seeds, GCN. Accuracy: change against the original; seeds: standard deviation over seeds, "
    "in points.",
)
glue_text("collapsed", collapsed_cells(METHODS))

# %% [markdown]
# The column of time is the whole run, from the request to the released model, as a percentage of retraining on the same
# machine. Runs collapsed here: {glue:text}`collapsed`. The settings of preset `corrected` were chosen on random sets; where old and
# new views differ more, as when the best-connected edges go, a step that was gentle in the search need not be gentle, and a guard
# that looks at the forget loss does not see what happens elsewhere.
#
# ### Leakage beside Gold

# %% mystnb={"figure": {"name": "fig-gradient-excess", "caption": "Preset corrected: LinkTeller hardly moves, since on the retained graph it reads the graph. Link Stealing moves most on the high set of Photo, mostly below Gold, and UtU with it; on that of Computers every interval includes zero but that of the matched variant. Where it rises most, runs had collapsed. Signed AUC in excess of Gold's with bootstrap intervals over pairs and seeds; the band is the widest of the graphs' intervals of Gold, each graph's own stands in row Gold; scales differ."}, "image": {"alt": "Six panels, three attacks by two forget sets, methods as rows and graphs as coloured points with intervals around zero."}} tags=["hide-input"]
excess_figure(("gold", "utu", *METHODS), "corrected")
plt.show()

# %% mystnb={"figure": {"name": "fig-gradient-excess-published", "caption": "The same under preset published: one step on the benchmark's nodes, from an original that stopped early. The one large excess, of AdvNegGrad on Computers, belongs to a cell that lost nine points and in which a run collapsed."}, "image": {"alt": "Six panels as in the figure before, with the four methods that the benchmark has; one point, AdvNegGrad on Computers, high set, lies far to the right for Link Stealing."}} tags=["hide-input"]
excess_figure(("gold", "utu", *METHODS), "published")
plt.show()

# %%
show_table(
    table[["method", "preset", *attacked]].rename(columns=lambda name: name.removesuffix(" above/below")),
    "Cells of five graphs and two sets whose whole interval of the excess lies above/below Gold, of all cells.",
)
for preset in ("corrected", "published"):
    glue_text(f"excess_{preset}", excess_sentence(METHODS, preset))

# %% [markdown]
# Cells whose whole interval lies above or below Gold: {glue:text}`excess_corrected` under `corrected`;
# {glue:text}`excess_published` under `published`. Where no method differed from Gold, 95 % intervals would still leave zero out in
# one cell of twenty (*by chance*): counts near that say nothing. UtU, which changes
# no weight, stands beside them: what it shares with a method is the work of the retained graph.
#
# The rows of preset `published` stand beside the benchmark's own table in {ref}`ch-parameter-family`, all methods at once.
#
# ### The claim

# %%
finding = check_claim("L03")
low, high = (as_points(end) for end in finding.interval)
glue_text("L03_points", as_points(finding.effect))
glue_text("L03_interval_points", f"[{low}, {high}]")
kept = accuracy_kept()
glue_number("kept_cells", len(kept))
glue_number("kept_beyond", int((kept["place"] == "beyond").sum()))
glue_number("kept_within", int((kept["place"] == "within").sum()))
own_head, others = kept[kept["backbone"] != "gcn"], kept[kept["backbone"] == "gcn"]
glue_number("own_head_beyond", int((own_head["place"] == "beyond").sum()))
glue_text("own_head_methods", " and ".join(METHOD_TITLES[name] for name in own_head["method"].unique()) or "no method")
beyond = others[others["place"] == "beyond"]
most = None if beyond.empty else beyond.loc[beyond["change"].abs().idxmax()]
glue_text("kept_largest", "no cell lies beyond" if most is None else f"the largest change is that of {cell_name(most)}")

# %% [markdown]
# The rule asks every cell on its own, with three seeds, so that most cells near the limit stay undecided; more seeds would decide
# them. Of {glue:text}`kept_cells` cells {glue:text}`kept_within` lie within the two points with their whole interval and
# {glue:text}`kept_beyond` wholly beyond. Of the latter {glue:text}`own_head_beyond` belong to methods with a head of their own
# ({glue:text}`own_head_methods`), which differs from the original *before any request* ({ref}`ch-certified-family`); without them
# {glue:text}`kept_largest`. Under preset `published` the claim is nearly a statement about the size
# of one Adam step; under `corrected` it is in part one about the tuning rule, which refuses settings that cost validation
# accuracy.
#
# ### Other backbones

# %%
show_table(
    backbones_table(("gold", "utu", *METHODS)),
    "Cora, preset corrected, the settings tuned on the GCN: mean change of test accuracy in points over both sets and three seeds.",
)

# %% [markdown]
# ## What would change our mind
#
# The mapping is ours. If a forget term on other nodes (all that move, or pairs instead of nodes) brought methods nearer to Gold
# at the same cost, the ranking here would be one of mappings. The reference of the tuning rule is a guess at Gold's level that
# needs no retraining; where Gold's forget loss is far below it, every tuned ascent forgets too much. And distances to Gold are
# distances of outputs: a method could be near in outputs and still hold the edges in a form that our attacks do not read.
# Five graphs and three seeds bound nothing; the intervals say how little three seeds tell.
#
# ## Summary
#
# - To forget edges is to swap views of training nodes: forget terms belong on $G$, retain terms on $G_r$, training labels only.
# - The original starts {glue:text}`start_distance` from Gold, two Golds lie {glue:text}`floor` apart: on the generated graph
#   {glue:text}`nearer` of {glue:text}`tried` released models lie nearer to Gold than the start, and the furthest
#   ({glue:text}`furthest_method`) lies at {glue:text}`furthest`.
# - Ascent does not stop by itself: unguarded it ends {glue:text}`free_status`, with a bound at the held-out loss it keeps
#   {glue:text}`held_accuracy` % validation accuracy.
# - Fine-tuning has no forget term: what it changes is further training, so its result depends on the number of steps.
# - L03, within 2 % unless collapsed: {glue:text}`L03_verdict`; largest mean change {glue:text}`L03_points` points, interval
#   {glue:text}`L03_interval_points`; without methods that have a head of their own {glue:text}`kept_largest`.
#
# ## Exercises
#
# :::{exercise}
# :label: ex-gradient-sign
# With Adam the first step of NegGrad is $+\eta\,\mathrm{sign}(\nabla L_f)$ wherever the gradient is not tiny. What follows for
# a comparison of methods by one step each, as the benchmark makes it?
# :::
#
# :::{solution} ex-gradient-sign
# :class: dropdown
# Every step has the length $\eta\sqrt{n}$ for $n$ weights, whatever the loss: scales, temperatures and reductions drop out, and
# only signs are compared. A method made to be gentle is as rough as any other.
# :::
#
# :::{exercise}
# :label: ex-gradient-empty
# Let no edge be forgotten, $G_r = G$, and let $D_f = V_L$. What is the gradient of the matched variant without dropout?
# :::
#
# :::{solution} ex-gradient-empty
# :class: dropdown
# Zero: both terms are the same sum with opposite signs. The variant is a fixed point exactly where there is nothing to forget,
# apart from weight decay.
# :::
#
# :::{exercise}
# :label: ex-gradient-npo
# Show that the first step of NPO without a retain term is NegGrad's, and that NPO with $\beta \to 0$ is NegGrad throughout.
# :::
#
# :::{solution} ex-gradient-npo
# :class: dropdown
# The weight is $2 r^\beta/(1 + r^\beta)$. At the start $r = 1$ for every sample, so the weight is 1; for $\beta \to 0$ it is 1 for
# every $r$.
# :::

# %% tags=["hide-input", "nbval-ignore-output"]
provenance(
    {
        "dataset": dataset,
        "backbone": backbone,
        "seed": seed,
        "forget": forget,
        "fraction": fraction,
        "steps": steps,
    },
    graphs=[case.data],
)
