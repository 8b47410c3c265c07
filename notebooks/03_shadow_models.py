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
# (ch-shadow-models)=
# # Shadow models: what a trained network says about each node
#
# :::{admonition} In this chapter
# **Question.** What does a trained graph neural network say about who was in its training sample, node by node, and why
# does one global number hide it?
#
# **At the end you can say** how many models on random samples turn into a test for every single node, what errors that
# test makes, how much of what it finds comes from the model and how much from the graph, and how differently two nodes
# can be exposed behind the same accuracy.
#
# **Run time.** About a minute on a CPU. **Data.** A generated graph, computed here, and published records of Cora,
# CiteSeer, PubMed and Photo.
# :::
#
# ## Claims
#
# Both are statements of {cite:t}`yildirim2026bmp`, sharpened by us where the check says so.
#
# :::{prf:conjecture} B12
# :label: claim-b12
# Including one node in the training graph changes the representations of many other nodes.
# :::
#
# :::{prf:conjecture} B20
# :label: claim-b20
# The global accuracy of a membership attack hides how differently single nodes are exposed.
# :::
#
# ## Setting
#
# A sampler draws a set $S$ of nodes, a network is trained on the subgraph of $S$ and released. The adversary knows the
# graph with its features and labels, the sampler, the architecture and the schedule of training, and may ask the released
# model about every node. It does not know $S$. It can do what the owner did: draw samples $S_1, \ldots, S_T$ and train a
# **shadow model** on each {cite:p}`shokri2017membership`. With $M_{ti} = 1$ when $i \in S_t$, shadow model $t$ says of
# node $i$ the logit-scaled confidence in the node's label $y_i$,
#
# $$x_{ti} = \log \frac{p_t(y_i \mid i)}{1 - p_t(y_i \mid i)}.$$ (eq-confidence)
#
# Over models in which $i$ was, and over those in which it was not, $x_{ti}$ is taken as normal
# {cite:p}`carlini2022lira`. The evidence about node $i$ in model $t$ is
#
# $$\begin{aligned}
# \log \Lambda_{ti} = {} & \log \mathcal{N}(x_{ti}; \mu_{i1}, \sigma^2_{i1}) \\
# & - \log \mathcal{N}(x_{ti}; \mu_{i0}, \sigma^2_{i0}),
# \end{aligned}$$ (eq-log-ratio)
#
# with means and variances fitted to the *other* models. When $C$ holds the models of a class without the one that is
# scored,
#
# $$\begin{aligned}
# \mu_i &= \frac{1}{|C|} \sum_{s \in C} x_{si}, \\
# \sigma^2_i &= \frac{1}{|C| - 1} \sum_{s \in C} (x_{si} - \mu_i)^2.
# \end{aligned}$$ (eq-fits)
#
# A decision "member" for some models and "not" for others has errors of its own at every node. With the share
# $\alpha_i$ of false alarms among the runs without $i$, and the share $\beta_i$ of misses among those with it, the
# **advantage** of the attack at node $i$ is
#
# $$a_i = 1 - \alpha_i - \beta_i,$$ (eq-node-advantage)
#
# that is, its true-positive rate less its false-positive rate (TPR - FPR): 0 for an attack that knows nothing about $i$ and
# 1 for one that is never wrong. The global accuracy pools the decisions of all nodes and weights both classes equally;
# everybody shares it.

# %% tags=["parameters"]
dataset: str = "synthetic"  # graph of the live experiment, any name that load_graph takes
backbone: str = "gcn"  # network of the live experiment
sampler: str = "uniform"  # sampler of the live experiment
ratio: float = 0.5  # share of the nodes to train on
models: int = 100  # shadow models per setting, at least 60
access: str = "full"  # edges behind a query in the figures: split, full or none
seed: int = 0  # seed of samples, weights and divisions

# %% tags=["hide-input"]
import warnings

warnings.filterwarnings("ignore", message="IProgress not found")  # no progress bars here

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import beta, norm, skew

from lethe_lib.attacks import (
    bayes_rule_test,
    best_threshold_test,
    global_threshold_test,
    likelihood_ratio,
    likelihood_ratio_test,
    posterior_features_attack,
    unit_status,
)
from lethe_lib.attacks.auc import auc
from lethe_lib.attacks.likelihood_ratio import class_fits
from lethe_lib.attacks.node_membership import level_p_values
from lethe_lib.attacks.posterior_features import PosteriorFeaturesSettings
from lethe_lib.attacks.rates import tpr_at_fpr, unit_auc
from lethe_lib.data import load_graph
from lethe_lib.models import predict
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
from lethe_lib.reporting.claims_sampling_priors import TITLES
from lethe_lib.reporting.claims_shadow_models import (
    EQUAL,
    LEAST_GAP,
    QUANTILE,
    dispersion,
    left_out,
    pooled_accuracy,
    published_pairs,
    settings_of,
    spread_table,
    true_quantile,
    widest_pair,
)
from lethe_lib.sampling import inclusion_priors, sample_nodes
from lethe_lib.seeding import derive_seed, numpy_generator
from lethe_lib.shadow import (
    ACCESS,
    ShadowTraining,
    confidence_from_logits,
    fit_compiled,
    fit_shadow,
    loss_from_confidence,
    query_graph,
    train_shadows,
    training_graph,
)
from lethe_lib.study.membership import COUNTS, LEVEL, RELEASES
from lethe_lib.study.one_node import MOVED, changes_without, moved_by_retraining

check_parameters(globals())
assert models >= 60, "use at least 60 models: at half the ratio every node needs runs with and without it"
assert access in ACCESS, f"access is one of {', '.join(ACCESS)}"
use_style()
FOLDS = 5


# %% [markdown]
# ## Tiny example
#
# One node and six shadow models. Three had the node in their sample and said 3, 5 and 4 of it; three did not and said 1, 0
# and 2. Score the first model by hand. Without it, the models with the node said 5 and 4: mean 4.5, variance 0.5. The
# models without the node have mean 1 and variance 1. So for $x = 3$
#
# $$\begin{aligned}
# \log \Lambda = {} & -\frac{(3 - 4.5)^2}{2 \cdot 0.5} - \frac{\log 0.5}{2} \\
# & + \frac{(3 - 1)^2}{2 \cdot 1} + \frac{\log 1}{2} \\
# = {} & -2.25 + 0.347 + 2 = 0.097.
# \end{aligned}$$
#
# It is barely evidence: the value lies between the two groups, and the group that it belongs to was fitted without it. All
# six by the same formula, beside the library:

# %%
said = np.array([3.0, 5.0, 4.0, 1.0, 0.0, 2.0])
inside = np.array([True, True, True, False, False, False])
by_hand = []
for model in range(6):
    others = np.arange(6) != model
    with_node, without = said[inside & others], said[~inside & others]
    by_hand.append(
        norm.logpdf(said[model], with_node.mean(), with_node.std(ddof=1))
        - norm.logpdf(said[model], without.mean(), without.std(ddof=1))
    )
by_library = likelihood_ratio(said[:, None], inside[:, None])[:, 0]
assert np.allclose(by_hand, by_library)
assert np.isclose(by_hand[0], -2.25 - np.log(0.5) / 2 + 2)
show_table(
    pd.DataFrame(
        {
            "model": [str(number) for number in range(1, 7)],
            "node in its sample": inside.tolist(),
            "said": said,
            "log ratio by hand": by_hand,
            "log ratio by the library": by_library,
        }
    ),
    "Evidence that the node was in each model's sample, from the five other models.",
)

# %% [markdown]
# ## Method
#
# **Sampling and training.** Every model draws its own sample and trains on the subgraph of the sampled nodes, all of
# them labelled: two layers of 64 units, no dropout, 200 full-batch steps of Adam. There is no validation set, since all
# that was sampled is trained on, and so no early stopping. Model $t$ depends on the seed and on $t$ alone.
#
# **Three query graphs.** A graph model needs edges to answer. `full` gives it every edge of the graph; `none` gives it no
# edge; `split` gives it the training edges among members and all edges among the others, and none between the two groups.
#
# **Why not the loss?** The loss $-\log p$ is squeezed against 0 for a node that the model has learnt, so that over models
# it is as skewed as can be, and a normal law fits it badly. The logit spreads both ends. It loses nothing: the loss is
# $\log(1 + e^{-x})$. The skewness of both is measured below.
#
# **Fits and evidence.** As in {eq}`eq-fits`: unbiased variance of each class on its own, by default with one model left
# out at a time. Leaving out costs no new fit; the sums without a model are sums of what comes before and after it.

# %% tags=["hide-input"]
show_source(query_graph, confidence_from_logits, class_fits)

# %% [markdown]
# **Three decisions.** The *level test* says "member" when a non-member would get so large a ratio with probability at
# most 0.1 under its fitted law. Under two normal laws the ratio is a parabola in $x$, so this probability needs two
# values of the normal distribution function. The *best threshold* maximises $1 - \alpha_i - \beta_i$ on other folds. The
# *Bayes rule* says "member" when the prior odds of {ref}`ch-sampling-priors` times the ratio exceed 1; it makes the
# fewest errors on average, and where the prior is small it may never say "member" at all.
#
# **Two baselines without single nodes.** *One threshold*: the same cut on $x$ for all nodes. *Posterior features*: a
# small network is given, for a part of the nodes of one target model, the posterior, the loss and the truth about
# membership, and attacks the rest ({cite:t}`olatunji2021membership` train such a network on a shadow model,
# {cite:t}`khosla2026structure` on the target itself). Neither knows what the model would have said of *this* node had it
# not been trained on.
#
# **Speed.** A sampled citation graph is small and its features are sparse: the arithmetic of one step is less than what
# the calls of a framework cost. So for a two-layer GCN on sparse features the whole training is one compiled loop, which
# the tests compare with automatic differentiation in double precision. `python -m lethe_lib bench shadow` measures what
# it buys.

# %% tags=["hide-input"]
show_source(level_p_values, bayes_rule_test, global_threshold_test, fit_compiled)

# %% [markdown]
# **Differences from the paper.**
#
# 1. The source's number of shadow models, statistic and test are not known to us. We follow
#    {cite:t}`carlini2022lira` and the predecessor {cite:t}`yildirim2025mcmc`, and train by the schedule of
#    {cite:t}`khosla2026structure`.
# 2. The predecessor fits the loss; we fit the logit-scaled confidence {eq}`eq-confidence`.
# 3. Published implementations disagree on the variance. Ours is unbiased and per class; `variance="pooled"` takes the
#    deviations of both classes together.
# 4. The level of the test is exact for the fitted laws, on the side of the larger ratio also where both variances are
#    equal.
# 5. AUCs of single nodes compare scores within a fold of models only. A model that is left out drags the fit of its class away from
#    itself, so that across folds even a score that knows nothing has an AUC below one half.
# 6. Neither our shadow models nor the target see nodes outside their sample in training, under any query graph.
#
# ## Experiment
#
# The setting of the parameters, the same sampler at half the ratio, and the same setting stopped after a quarter of the
# epochs. For each sampler and ratio there is also an **untrained control**: the same samples, the same initial weights,
# no training. It cannot know its sample. Every model is asked over the three query graphs, and over all edges with noise
# on weights or answers.

# %%
data = load_graph(dataset)
schedule = ShadowTraining()
SETTINGS = {
    "main": (sampler, ratio, schedule.epochs),
    "half the ratio": (sampler, ratio / 2, schedule.epochs),
    "fewer epochs": (sampler, ratio, schedule.epochs // 4),
    "untrained": (sampler, ratio, 0),
    "untrained, half the ratio": (sampler, ratio / 2, 0),
    "untrained snowball": ("snowball", ratio / 2, 0),
}
shadows = {
    key: train_shadows(
        data, name, share, models, backbone, seed, releases=RELEASES, training=ShadowTraining(epochs=epochs)
    )
    for key, (name, share, epochs) in SETTINGS.items()
}
LABELS = [release.label for release in RELEASES]


def observed(key, label=access):
    """Confidence and membership, (models, nodes) each, of one setting and release."""
    found = shadows[key]
    return found.confidence.values[:, LABELS.index(label)].astype(np.float64), found.member.values


show_table(
    pd.DataFrame(
        [
            (key, view, *shadows[key].accuracy.values[:, LABELS.index(view)].mean(axis=0))
            for key in ("main", "half the ratio", "fewer epochs", "untrained")
            for view in ACCESS
        ],
        columns=["setting", "query graph", "accuracy of members", "accuracy of others"],
    ),
    f"{models} shadow models a setting on {dataset}: {backbone}, {sampler}, ratio {ratio:g}.",
)

# %% [markdown]
# ## Results
#
# **The statistic.** Over the models with a node, and over those without it, how skewed is what they say?

# %% tags=["hide-input"]
confidence, member = observed("main")
usable = np.flatnonzero(unit_status(confidence, member, FOLDS) == "ok")  # in and out of enough samples
confidence, member = confidence[:, usable], member[:, usable]
loss = loss_from_confidence(confidence)
with_node, without = (np.where(side, confidence, np.nan) for side in (member, ~member))
mean_in, mean_out = np.nanmean(with_node, axis=0), np.nanmean(without, axis=0)
spread = np.sqrt((np.nanvar(with_node, axis=0, ddof=1) + np.nanvar(without, axis=0, ddof=1)) / 2)
apart = (mean_in - mean_out) / spread


def skewness(values):
    """Median over nodes and classes of the absolute skewness over models."""
    sides = [np.where(side, values, np.nan) for side in (member, ~member)]
    return float(np.median([np.abs(skew(part, axis=0, nan_policy="omit")) for part in sides]))


normal = numpy_generator(seed, "chapter", "normal").standard_normal(confidence.shape)
skewed = {
    "logit-scaled confidence": skewness(confidence),
    "loss": skewness(loss),
    "probability": skewness(np.exp(-loss)),
    "as many draws of a normal law": skewness(normal),
}
show_table(
    pd.DataFrame(skewed.items(), columns=["statistic", "median absolute skewness"]),
    "Skewness over models, of each node and class. A normal law has 0, a finite number of its draws has not.",
)
glue_number("skew_logit", skewed["logit-scaled confidence"])
glue_number("skew_loss", skewed["loss"])
glue_number("skew_normal", skewed["as many draws of a normal law"])
order = np.argsort(apart)
shown = {"worst": order[-1], "median": order[len(order) // 2], "safest": np.argmin(np.abs(apart))}
glue_number("worst_in", mean_in[shown["worst"]])
glue_number("worst_out", mean_out[shown["worst"]])

# %% [markdown]
# The median is {glue:text}`skew_logit` for the logit and {glue:text}`skew_loss` for the loss; as many draws of a normal law
# would show {glue:text}`skew_normal`.
#
# **What a global report would say, and what single nodes say.** The global columns pool all models and nodes. The others
# are quantiles over nodes of the AUC of each node on its own: does it score higher in the models that held it?


# %% tags=["hide-input"]
def node_scores(key, label):
    """Cross-fitted log ratios of all nodes, the memberships, and the AUC of every node that can be scored."""
    values, inside = observed(key, label)
    known = unit_status(values, inside, FOLDS) == "ok"
    scores = likelihood_ratio(values[:, known], inside[:, known], folds=FOLDS)
    return scores, inside[:, known], unit_auc(scores, inside[:, known], FOLDS)


rows, node_aucs = [], {}
for key in ("main", "untrained"):
    for view in ACCESS:
        scores, inside, node_aucs[key, view] = node_scores(key, view)
        values, truth = observed(key, view)
        rows.append(
            (
                key,
                view,
                auc(scores.ravel(), inside.ravel()),
                tpr_at_fpr(scores.ravel(), inside.ravel(), 0.01),
                pooled_accuracy(np.stack(likelihood_ratio_test(values, truth, LEVEL).arrays, axis=1)),
                *np.quantile(node_aucs[key, view], [0.05, 0.5, 0.95]),
            )
        )
names = ["setting", "query graph", "global AUC", "TPR at 1 % FPR", "global accuracy", "5 % node", "median", "95 % node"]
report = pd.DataFrame(rows, columns=names)
show_table(report, "The attack as one number, and as the AUC of every node on its own.")
here = report[(report["setting"] == "main") & (report["query graph"] == access)].iloc[0]
control = report[(report["setting"] == "untrained") & (report["query graph"] == access)].iloc[0]
glue_text("access", access)
glue_number("global_auc", here["global AUC"])
glue_number("global_accuracy", here["global accuracy"])
glue_number("node_low", here["5 % node"])
glue_number("node_high", here["95 % node"])
glue_number("control_low", control["5 % node"])
glue_number("control_high", control["95 % node"])

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-node-auc", "caption": "Behind one global AUC (dashed) lie nodes of which the model says nothing and nodes whose membership it gives away. Grey: the untrained control, whose spread is noise alone."}, "image": {"alt": "Histogram of the AUC of single nodes, from about one half to one, wide and skewed, over a narrow grey histogram around one half, with a dashed vertical line at the global AUC."}}
fig, ax = plt.subplots()
bins = np.linspace(0, 1, 41)
ax.hist(node_aucs["untrained", access], bins, color="0.7", label="untrained control")
ax.hist(node_aucs["main", access], bins, color=PALETTE[0], alpha=0.7, label="trained")
ax.axvline(here["global AUC"], color=PALETTE[3], linestyle="--", label="global AUC, trained")
ax.set(xlabel="AUC of one node over the models", ylabel="nodes", title=f"{backbone}, {sampler} {ratio:g}, {access}")
ax.legend()
plt.show()

# %% [markdown]
# Under {glue:text}`access` access the global AUC is {glue:text}`global_auc`, but nine nodes in ten have an AUC between
# {glue:text}`node_low` and {glue:text}`node_high`. Of the untrained control, nine in ten lie between
# {glue:text}`control_low` and {glue:text}`control_high`: that much is noise.
#
# Three nodes, by the distance of their two means in units of the spread. Of the worst one, models say
# {glue:text}`worst_in` on average when they were trained on it and {glue:text}`worst_out` when they were not.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-three-nodes", "caption": "What the models say of three nodes, when the node was in the sample and when it was not, with the fitted normal laws. One answer betrays the worst node; answers about the safest one look the same either way."}, "image": {"alt": "Three panels, one below the other, with two histograms each of logit-scaled confidence and two normal curves: far apart for the worst node, overlapping for the median node, on top of each other for the safest."}}
fig, axes = plt.subplots(3, 1, figsize=(6.4, 7.2))
for ax, (name, node) in zip(axes, shown.items(), strict=True):
    values = confidence[:, node]
    bins, line = np.linspace(values.min(), values.max(), 16), np.linspace(values.min(), values.max(), 200)
    for side, colour, label in ((member[:, node], PALETTE[1], "in"), (~member[:, node], PALETTE[0], "out")):
        ax.hist(values[side], bins, density=True, color=colour, alpha=0.5, label=label)
        ax.plot(line, norm.pdf(line, values[side].mean(), values[side].std(ddof=1)), color=colour)
    ax.set(title=f"{name}: node {usable[node]}", ylabel="density", yticks=[])
axes[-1].set_xlabel("logit-scaled confidence")
axes[0].legend()
plt.show()

# %% [markdown]
# **Errors at one level.** From here on every node is judged by the level test. Its advantage has binomial noise, and more:
# one fit serves all runs of a node, so that its error is shared. In {numref}`fig-node-advantage` the untrained control
# shows all of it.

# %% tags=["hide-input"]
n_out, false_positives, n_in, false_negatives = likelihood_ratio_test(confidence, member, LEVEL).arrays
false_alarm, hit = false_positives / n_out, 1 - false_negatives / n_in
_, blind_alarms, _, blind_misses = likelihood_ratio_test(observed("untrained")[0][:, usable], member, LEVEL).arrays
blind = 1 - blind_alarms / n_out - blind_misses / n_in  # the same samples, so the same numbers of runs
glue_number("blind_dispersion", dispersion(np.stack([n_out, blind_alarms, n_in, blind_misses], axis=1)))


def exact_interval(successes, runs):
    """Clopper-Pearson interval of a share, 95 %."""
    low = np.where(successes > 0, beta.ppf(0.025, successes, runs - successes + 1), 0.0)
    return low, np.where(successes < runs, beta.ppf(0.975, successes + 1, runs - successes), 1.0)


advantage = hit - false_alarm
(hit_low, hit_high), (alarm_low, alarm_high) = (
    exact_interval(n_in - false_negatives, n_in),
    exact_interval(false_positives, n_out),
)
low = advantage - np.hypot(hit - hit_low, alarm_high - false_alarm)
high = advantage + np.hypot(hit_high - hit, false_alarm - alarm_low)
clear, surprising = low > 0.5, mean_out < 0  # models without the node give its label less than one half
glue_number("clear_share", 100 * clear.mean())
glue_number("none_share", 100 * (high < 0.25).mean())
glue_number("surprising_all", 100 * surprising.mean())
glue_text("surprising_clear", as_text(100 * surprising[clear].mean()) if clear.any() else "none")
glue_number("mean_advantage", advantage.mean())

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-node-advantage", "caption": "The advantage of the attack at every node, sorted, with nominal 95 % intervals, which know binomial noise only: from nothing to nearly all that the level allows. The untrained control, sorted too, shows what noise and sorting alone would draw."}, "image": {"alt": "Rising curve of advantage against rank of the node with a shaded band, from slightly below zero to nine tenths, a flat horizontal dashed line at the mean, and a much flatter grey curve around zero for the control."}}
fig, ax = plt.subplots()
rank = np.argsort(advantage, kind="stable")
place = np.linspace(0, 100, len(rank))
ax.fill_between(place, low[rank], high[rank], color=PALETTE[0], alpha=0.2, linewidth=0, label="nominal 95 % interval")
ax.plot(place, advantage[rank], color=PALETTE[0], label="trained")
ax.plot(place, np.sort(blind), color="0.5", label="untrained control")
ax.axhline(advantage.mean(), color=PALETTE[3], linestyle="--", linewidth=1.2, label="mean, trained")
ax.set(xlabel="nodes, sorted by advantage (%)", ylabel="advantage TPR - FPR", title=f"level {LEVEL:g}, {access}")
ax.legend()
plt.show()

# %% [markdown]
# The mean advantage is {glue:text}`mean_advantage`. For {glue:text}`clear_share` % of the nodes the interval lies above one
# half, for {glue:text}`none_share` % it lies below one quarter. (The intervals combine two exact ones
# {cite:p}`clopper1934` and are nominal: the variance of the control is {glue:text}`blind_dispersion` times the binomial
# one.) Exposed are nodes whose label comes as a surprise: models that were not trained on the node give
# it less than one half for {glue:text}`surprising_clear` % of those with an interval above one half, and for
# {glue:text}`surprising_all` % of all. Such a label can only be learnt by heart.
#
# **Three decisions, and one threshold for all.** The prior of the Bayes rule is the node's own,
# {eq}`eq-inclusion-prior`. The second table compares two attacks on the same models, node by node.

# %% tags=["hide-input"]
rows = []
for key in ("main", "half the ratio"):
    name, share, _ = SETTINGS[key]
    values, inside = observed(key)
    prior = inclusion_priors(name, data, share, seed=seed).prior
    prior = np.clip(prior, 0.5 / models, 1 - 0.5 / models)
    rules = {
        f"level {LEVEL:g}": likelihood_ratio_test(values, inside, LEVEL),
        "best threshold": best_threshold_test(values, inside, folds=FOLDS),
        "Bayes rule": bayes_rule_test(values, inside, prior),
        "one threshold for all nodes": global_threshold_test(values, inside),
    }
    for rule, found in rules.items():
        out, alarms, held, misses = (part[found.ok].astype(float) for part in found.arrays)
        rows.append(
            (
                f"{share:g}",
                rule,
                alarms.sum() / out.sum(),
                1 - misses.sum() / held.sum(),
                1 - (alarms + misses).sum() / (out + held).sum(),
                ((alarms == 0) & (misses == held)).mean(),
            )
        )
names = ["ratio", "rule", "false alarms", "hits", "right decisions", "nodes never called members"]
decisions = pd.DataFrame(rows, columns=names)
show_table(
    decisions,
    f"The same evidence under three rules, and the baseline; {access} access. Right decisions: of all, classes not weighted.",
)
silent = decisions[decisions["rule"] == "Bayes rule"]["nodes never called members"].iloc[-1]
glue_number("silent_share", 100 * silent)
glue_number("prior_half", ratio / 2)

attacks = {
    "a test for each node": likelihood_ratio_test(confidence, member, LEVEL),
    "one threshold for all": global_threshold_test(confidence, member),
}
per_node = {}
for name, found in attacks.items():
    out, alarms, held, misses = found.arrays
    per_node[name] = 1 - alarms / out - misses / held
tabled = pd.DataFrame(
    [
        (
            name,
            pooled_accuracy(np.stack(attacks[name].arrays, axis=1)),
            *np.quantile(values, [0.05, 0.5, 0.95]),
            100 * (values > 0.5).mean(),
        )
        for name, values in per_node.items()
    ],
    columns=["attack", "global accuracy", "5 % node", "median", "95 % node", "nodes above one half (%)"],
)
show_table(tabled, f"Advantage over nodes of two attacks on the same models, {access} access.")
for key, row in zip(("test", "threshold"), tabled.itertuples(index=False), strict=True):
    glue_number(f"{key}_accuracy", row[1])
    glue_number(f"{key}_high", row[4])
    glue_number(f"{key}_exposed", row[5])

# %% [markdown]
# At ratio {glue:text}`prior_half` the Bayes rule never says "member" of {glue:text}`silent_share` % of the nodes. It is
# the best guess and the worst probe: errors of 0 and 1 tell an audit nothing. The audit of the following chapters
# therefore counts the errors of the level test.
#
# Two attacks, one accuracy: a test for each node has {glue:text}`test_accuracy`, one threshold for all
# {glue:text}`threshold_accuracy`. But the 95 % points over nodes are {glue:text}`test_high` and
# {glue:text}`threshold_high`, and {glue:text}`test_exposed` % against {glue:text}`threshold_exposed` % of the nodes have an
# advantage above one half.
#
# **One accuracy, two settings.** Now one attack and several releases of several trainings. The
# *dispersion* is the variance of the advantage over nodes, divided by what binomial noise alone would give; the control's
# is that of the untrained model on the full graph. The true spread and the quantiles have that noise taken out.


# %% tags=["hide-input"]
def rows_of(key):
    """Error counts of every node and release of one live setting, in the columns of the published records."""
    name, share, epochs = SETTINGS[key]
    named = {"backbone": backbone, "sampler": name, "edges": "", "ratio": share, "epochs": epochs}
    frames = []
    for label in LABELS:
        arrays = likelihood_ratio_test(*observed(key, label), LEVEL).arrays
        part = pd.DataFrame(dict(zip(COUNTS, arrays, strict=True)))
        frames.append(part.assign(**named, release=label, node=np.arange(len(part))))
    return pd.concat(frames, ignore_index=True)


once = {setting: key for key, setting in SETTINGS.items()}  # with sampler="snowball" two controls are the same
live = settings_of(pd.concat([rows_of(key) for key in once.values()], ignore_index=True))
spreads = spread_table(live)
trained_rows = [number for number, setting in enumerate(live) if setting.trained]
shown_columns = ["setting", "global accuracy", "dispersion", "control", "true spread", "5 % point", "95 % point"]
tabled = spreads.iloc[trained_rows].sort_values("global accuracy")[shown_columns]
for common in (f"{backbone} ", f"{backbone}, ", f"{sampler} "):
    tabled["setting"] = tabled["setting"].str.replace(common, "", regex=False)
show_table(
    tabled.rename(columns={"global accuracy": "accuracy", "true spread": "spread"}),
    f"Trained settings ({backbone}, {sampler}) from the least to the most leaky: epochs where fewer, ratio, query graph, "
    "noise; their global accuracy and, over nodes, dispersion, that of the control, true spread and points.",
)
found = widest_pair(live)
glue_number("live_equal", EQUAL)
glue_number("live_pairs", 0 if found is None else found.pairs)
glue_text("live_upper", "none" if found is None else found.upper.text())
glue_text("live_lower", "none" if found is None else found.lower.text())
for key, value in (
    ("live_gap", None if found is None else found.gap),
    ("live_upper_accuracy", None if found is None else found.accuracies[0]),
    ("live_lower_accuracy", None if found is None else found.accuracies[1]),
    ("live_upper_high", None if found is None else found.quantiles[0]),
    ("live_lower_high", None if found is None else found.quantiles[1]),
):
    glue_text(key, "none") if value is None else glue_number(key, value)
trained_spreads = spreads.iloc[trained_rows]
glue_number("dispersion_low", trained_spreads["dispersion"].min())
glue_number("dispersion_high", trained_spreads["dispersion"].max())
glue_number("dispersion_control", trained_spreads["control"].max())
main = next(setting for setting in live if setting.name == (backbone, sampler, "", ratio, schedule.epochs, access))
everything, memberships = observed("main")
fewer = likelihood_ratio_test(everything[: models // 2], memberships[: models // 2], LEVEL)
both = main.usable & fewer.ok
glue_number("high_all", true_quantile(main.counts[both], QUANTILE, main.factor))
glue_number("high_fewer", true_quantile(np.stack(fewer.arrays, axis=1)[both], QUANTILE, main.factor))

# %% [markdown]
# The dispersion of the trained settings lies between {glue:text}`dispersion_low` and {glue:text}`dispersion_high`, that of
# the control is at most {glue:text}`dispersion_control`. Among {glue:text}`live_pairs` pairs of settings whose global
# accuracies differ by less than {glue:text}`live_equal`, the most different ones are *{glue:text}`live_upper`* (accuracy
# {glue:text}`live_upper_accuracy`, 95 % point {glue:text}`live_upper_high`) and *{glue:text}`live_lower`* (accuracy
# {glue:text}`live_lower_accuracy`, 95 % point {glue:text}`live_lower_high`). Chosen on half of the nodes and measured on
# the other half, the points differ by {glue:text}`live_gap`. Fits to fewer runs are poorer, which moves such a point too, but
# less: with half of the models that of the main setting is {glue:text}`high_fewer` instead of {glue:text}`high_all`. So
# the number hides two things. It never says how unequal nodes are. And it does not always say which of two settings has
# the more exposed nodes.
#
# **Structure, not memory.** An untrained model cannot have learnt anything about its sample. What the attack still finds
# is in the query graph or in the way of counting.

# %% tags=["hide-input"]
rows = []
for key in ("untrained", "untrained, half the ratio", "untrained snowball"):
    for view in ACCESS:
        scores, inside, aucs = node_scores(key, view)
        name, share, _ = SETTINGS[key]
        rows.append((name, f"{share:g}", view, auc(scores.ravel(), inside.ravel()), *np.quantile(aucs, [0.5, 0.95])))
columns = ["sampler", "ratio", "query graph", "global AUC", "median node AUC", "95 % node AUC"]
untrained = pd.DataFrame(rows, columns=columns)
show_table(untrained, f"The attack on untrained models of {dataset}: nothing was learnt, so nothing is remembered.")
halved, snowball = untrained.iloc[3:6].set_index("query graph"), untrained.iloc[6:].set_index("query graph")
glue_text("structure_sampler", sampler)
glue_number("structure_split", halved.loc["split", "median node AUC"])
glue_number("structure_full", halved.loc["full", "median node AUC"])
glue_number("pooled_full", snowball.loc["full", "global AUC"])
glue_number("pooled_median", snowball.loc["full", "median node AUC"])
scores, inside, _ = node_scores("untrained snowball", "full")
shuffled = numpy_generator(seed, "chapter", "shuffled").permuted(scores, axis=0)  # within nodes
glue_number("pooled_shuffled", auc(shuffled.ravel(), inside.ravel()))

# %% [markdown]
# Under `split` access the query graph itself depends on who was sampled: members have edges among themselves only, and so
# have the others. Where the two groups differ in size or in how their edges were chosen, a node's own surroundings tell
# to which it belongs. Under {glue:text}`structure_sampler` sampling at ratio {glue:text}`prior_half` the median node AUC is
# {glue:text}`structure_split` there, against {glue:text}`structure_full` under `full` access. That is structure, not
# memory: whoever serves queries over that graph gives membership away whatever the model learnt. What training adds must
# be judged against this row, or under `full` and `none`, where the query graph is the same for all.
#
# The global AUC has a second trap. With unequal priors it mixes nodes. Of a node that is rarely sampled there are few runs
# with it, their fit is poor, and its scores run low whatever the model says; of other nodes they do not. The global AUC of
# untrained snowball models under `full` access is {glue:text}`pooled_full`, and still {glue:text}`pooled_shuffled` when the
# scores of every node are shuffled over the models, while the median node AUC is {glue:text}`pooled_median`.
#
# **Posterior features.** One target model, the first of the main setting. The network learns from half of the nodes, with
# their memberships, and attacks the other half. The other two attacks are scored on the same nodes of the same model.

# %% tags=["hide-input"]
target_seed = derive_seed(seed, "shadow", 0)  # model 0 of train_shadows, trained once more
sample = sample_nodes(sampler, data, ratio, target_seed)
target = fit_shadow(training_graph(data, sample), backbone, target_seed, schedule)
logits = predict(target, query_graph(data, sample, access))
assert np.allclose(confidence_from_logits(logits, data.y), everything[0], atol=1e-3)
learnt = posterior_features_attack(
    logits.double().softmax(dim=1).numpy(),
    data.y.numpy(),
    memberships[0],
    access,
    seed,
    PosteriorFeaturesSettings(repeats=1),
)[0]
known = np.isin(learnt.targets, usable)
targets, truth = learnt.targets[known], learnt.labels[known]
ratios = likelihood_ratio(everything[:, targets], memberships[:, targets])[0]
usual = everything[1:].mean(axis=0)[targets]  # how sure the other models are of the node, sampled or not
rows = [
    (name, auc(scores, truth), np.corrcoef(scores, usual)[0, 1])
    for name, scores in (
        ("posterior features", learnt.scores[known]),
        ("confidence, one threshold", everything[0, targets]),
        ("likelihood ratio of each node", ratios),
    )
]
posterior = pd.DataFrame(rows, columns=["attack", "AUC on the target", "correlation with the node's usual confidence"])
show_table(posterior, f"Three attacks on one target model, on the same {len(targets)} nodes, {access} access.")
for key, row in zip(("features", "raw", "ratio"), posterior.itertuples(index=False), strict=True):
    glue_number(f"{key}_auc", row[1])
    glue_number(f"{key}_usual", row[2])

# %% [markdown]
# The learnt attack has an AUC of {glue:text}`features_auc`, raw confidence {glue:text}`raw_auc`, the likelihood ratio
# {glue:text}`ratio_auc`. Told who half of the members are, the network still finds one rule for all nodes: its score
# follows how sure any model is of the node (correlation {glue:text}`features_usual`), trained on it or not. The likelihood
# ratio takes that out ({glue:text}`ratio_usual`).
#
# **What one node does to the others.** First live, on the training graph of that target: take one node and its edges
# away at fixed weights and count what changes elsewhere; then delete it and train again from the same initial weights.

# %% tags=["hide-input"]
trained_on = training_graph(data, sample)
chosen = numpy_generator(seed, "chapter", "removed").choice(trained_on.num_nodes, 60, replace=False)
changes = changes_without(target, trained_on, chosen)
how = {"backbone": backbone, "training": schedule}
again = [moved_by_retraining(data, sample, target, int(node), target_seed, **how) for node in chosen[:5]]
near = np.bincount(trained_on.edge_index[0].numpy(), minlength=trained_on.num_nodes)[chosen]
glue_number("moved_tv", MOVED)
glue_number("live_hidden", changes.hidden.mean())
glue_number("live_outputs", changes.outputs.mean())
glue_number("live_moved", changes.moved.mean())
glue_number("live_retrained", 100 * np.mean(again))

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-one-node", "caption": "Live run, fixed weights: taking out one node changes the hidden rows of everything within two hops and the outputs within three, but only a few posteriors move by more than a hundredth."}, "image": {"alt": "Scatter plot of the number of other nodes that change against the degree of the removed node, with three clouds: outputs highest, hidden rows in the middle, posteriors that move lowest."}}
fig, ax = plt.subplots()
for values, colour, label in (
    (changes.outputs, PALETTE[2], "outputs change"),
    (changes.hidden, PALETTE[0], "hidden rows change"),
    (changes.moved, PALETTE[1], f"posterior moves by more than {MOVED:g}"),
):
    ax.plot(near, values, "o", color=colour, markersize=5, alpha=0.7, label=label)
ax.set(xlabel="degree of the removed node in the training graph", ylabel="other nodes", yscale="symlog")
ax.legend()
plt.show()

# %% [markdown]
# On average {glue:text}`live_hidden` other nodes get another hidden row, {glue:text}`live_outputs` other outputs, and
# {glue:text}`live_moved` a posterior that moves by more than {glue:text}`moved_tv` in total variation. Trained again
# without the node, {glue:text}`live_retrained` % of the nodes move so far.
#
# The same on real graphs (`python -m lethe_lib run one_node`), for training graphs of a tenth, of half and of all nodes:

# %% tags=["hide-input"]
published = left_out(0.05).sort_values(["graph", "ratio"])
show_table(
    pd.DataFrame(
        {
            "graph": published["graph"].map(TITLES),
            "ratio": published["ratio"].map("{:g}".format),
            "mean degree": published["mean_degree"],
            "hidden rows": published["hidden_mean"],
            "outputs": published["outputs_mean"],
            "posterior moves": published["moved_mean"],
            "retrained (%)": 100 * published["retrained_share"],
            "another seed (%)": 100 * published["other_seed_share"],
        }
    ),
    "Other nodes that change when one node is left out: mean numbers at fixed weights; shares after training again (blank: "
    "not run).",
)
whole, tenth = (published[published["ratio"] == share] for share in (1.0, 0.1))
again = published.dropna(subset="retrained_share")
thin = tenth["mean_degree"] < 1
for key, part in (("thin", tenth[thin]), ("dense", tenth[~thin])):
    ends = [as_text(end) for end in part["hidden_mean"].agg(["min", "max"])] if len(part) else ["none"]
    glue_text(f"tenth_{key}", " to ".join(dict.fromkeys(ends)))
    glue_text(f"tenth_{key}_graphs", ", ".join(part["graph"].map(TITLES)) or "no graph")
glue_number("whole_moved_low", whole["moved_mean"].min())
glue_number("whole_moved_high", whole["moved_mean"].max())
glue_text(
    "again_graphs", " and ".join(sorted(set(again["graph"].map(TITLES)), key=list(TITLES.values()).index)) or "no graph"
)
glue_number("again_low", 100 * again["retrained_share"].min())
glue_number("again_high", 100 * again["retrained_share"].max())
glue_number("seed_low", 100 * again["other_seed_share"].min())
glue_number("seed_high", 100 * again["other_seed_share"].max())
beyond_gap = (again["retrained_beyond"] - again["retrained_share"]).abs().max()
glue_number("beyond_gap", 100 * beyond_gap)

# %% [markdown]
# At fixed weights the number follows the density. In a sample of a tenth, one node touches {glue:text}`tenth_thin` others
# where the sample has a mean degree below one ({glue:text}`tenth_thin_graphs`), and {glue:text}`tenth_dense` elsewhere
# ({glue:text}`tenth_dense_graphs`); in whole graphs many, but of these only {glue:text}`whole_moved_low` to
# {glue:text}`whole_moved_high` posteriors move by more than {glue:text}`moved_tv`.
#
# On {glue:text}`again_graphs`, training again without the node moves {glue:text}`again_low` to {glue:text}`again_high` % of the others, wherever they
# are: beyond the reach of the removal it is the same share, within {glue:text}`beyond_gap` percentage points. Another
# seed, with no node left out, moves {glue:text}`seed_low` to {glue:text}`seed_high` %. So most of what retraining moves is
# not about the node that left; training amplifies any change of its input.
#
# **Pairs of equal accuracy on real graphs.** The published study of membership crosses samplers, ratios, query graphs and
# noise, with the error counts of every node (`python -m lethe_lib run membership`). For each graph, the pair of trained
# settings with nearly equal global accuracy whose exposed nodes differ most. A node that is in fewer samples is tested by a
# poorer fit, which is one way in which settings differ; the last column is the gap of the widest pair with the same sampler
# and ratio:

# %% tags=["hide-input"]
pairs = published_pairs()
show_table(
    pd.DataFrame(
        [
            (
                TITLES.get(pair["graph"], pair["graph"]),
                pair[side],
                pair[f"{side}_accuracy"],
                pair[f"{side}_quantile"],
                pair["effect"] if side == "upper" else None,
                pair["same_samples"] if side == "upper" else None,
            )
            for _, pair in pairs.iterrows()
            for side in ("upper", "lower")
        ],
        columns=["graph", "setting", "accuracy", f"{100 * QUANTILE:g} % point", "gap", "same samples"],
    ),
    f"Per graph, the more and the less exposed of two settings whose global accuracies differ by less than {EQUAL:g}; "
    f"{100 * QUANTILE:g} % points over nodes, noise removed; their gap, and that of the widest pair with the same samples.",
)
alike = pairs.dropna(subset="same_samples").set_index("graph")["same_samples"]
below = [TITLES.get(name, name) for name in alike.index[alike < LEAST_GAP]]
glue_text("same_below", " and ".join(below) or "no graph")
glue_number("same_count", len(alike))
glue_number("least_gap", LEAST_GAP)
glue_text("same_samples", f"{as_text(alike.min())} to {as_text(alike.max())}" if len(alike) else "no such pair")

# %% [markdown]
# ### Claim checks
#
# Each claim is decided by its worst graph, with intervals of joint level 95 %.

# %%
finding = check_claim("B12")

# %%
finding = check_claim("B20")

# %% [markdown]
# ## What would change our mind
#
# For B12, another meaning of "many" or of "change": by posteriors that move visibly there are few, and in sparse samples
# hardly any. For B20, a narrower comparison: among pairs with the same sampler and ratio, the gaps over graphs are
# {glue:text}`same_samples`; where that is below the threshold, the verdict rests on settings whose samples differ. And a
# finer global report: the attack's whole ROC curve at every node is not a global number, but a true-positive rate at a
# small false-positive rate already says more than accuracy. The intervals treat nodes as
# independent although they share shadow models; a second set of shadow models would settle how much that matters. All
# attacks here use one answer about the node itself. An attack that also reads the answers about its neighbours could find
# more, so that every advantage in this chapter is a lower bound.
#
# ## Summary
#
# - B12, one node changes many others: {glue:text}`B12_verdict`; {glue:text}`B12_effect` other nodes on the graph with the
#   fewest, interval {glue:text}`B12_interval`. By posteriors that move visibly, few do.
# - B20, global accuracy hides unequal nodes: {glue:text}`B20_verdict`; 95 % points {glue:text}`B20_effect` apart at equal
#   accuracy on the graph with the smallest gap, interval {glue:text}`B20_interval`. Among pairs with the same sampler and
#   ratio the gap is below {glue:text}`least_gap` on {glue:text}`same_below`, of {glue:text}`same_count` graphs.
# - Live, a global AUC of {glue:text}`global_auc` stands for nodes from {glue:text}`node_low` to {glue:text}`node_high`; for
#   {glue:text}`clear_share` % of them the interval of the advantage lies above one half.
# - A test for each node and one threshold for all can have the same accuracy and expose different numbers of nodes.
# - The logit-scaled confidence is nearly symmetric over models, as a normal law is; the loss is not.
# - Compare with an untrained model: `split` queries and pooling over unequal priors both make an attack look good that
#   found nothing in the model.
# - Errors have more than binomial noise, because one fit serves all runs of a node; the untrained control measures it.
#
# ## Exercises
#
# :::{exercise}
# :label: ex-shadow-fourth
# Compute the log ratio of the fourth model of the tiny example by hand.
# :::
#
# :::{solution} ex-shadow-fourth
# :class: dropdown
# It said 1 and did not hold the node. The models with the node have mean 4 and variance 1; the others without it said 0
# and 2: mean 1, variance 2. So $-(1-4)^2/2 + 0 + \tfrac12 \log 2 = -4.5 + 0.347 = -4.153$: strong evidence against
# membership.
# :::
#
# :::{exercise}
# :label: ex-shadow-six
# Why does the library refuse to score the tiny example with four models, two with the node and two without?
# :::
#
# :::{solution} ex-shadow-six
# :class: dropdown
# Leaving one out would leave a class with one model, from which no unbiased variance can be computed:
# `unit_status` says `few_in`.
# :::
#
# :::{exercise}
# :label: ex-shadow-access
# Run the chapter with `access="none"`. Which nodes become more exposed than under `full`, and why can answers without any
# edge tell more about membership?
# :::
#
# :::{solution} ex-shadow-access
# :class: dropdown
# `python -m lethe_lib chapters 03 -p access=none`. About three nodes in four. Isolated nodes gain nothing, since their answer
# is the same; nodes among neighbours of other classes gain least, since `full` exposes them already. Without edges an answer
# depends on the node's own features alone, which the weights were fitted to if the node was a member. With all edges it is
# averaged with the neighbours' features, which hides what was learnt from the node itself.
# :::

# %% tags=["hide-input", "nbval-ignore-output"]
provenance(
    {
        "dataset": dataset,
        "backbone": backbone,
        "sampler": sampler,
        "ratio": ratio,
        "models": models,
        "access": access,
        "seed": seed,
    },
    graphs=[data],
)
