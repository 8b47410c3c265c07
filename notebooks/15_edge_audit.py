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
# (ch-edge-audit)=
# # The randomised edge audit
#
# :::{admonition} In this chapter
# **Question.** How much does an unlearned model still remember of each edge it was asked to forget, when the graph itself
# cannot give the answer away?
#
# **At the end you can say** why published attacks cannot rank unlearners and a randomised trial can, how much trained
# models remember of single edges and where that memory lives, which methods reduce it, and what it means for
# $(\varepsilon_L, \varepsilon_R)$ of an edge.
#
# **Run time.** About a minute on a CPU. **Data.** A generated graph, computed here, and published records of the audit on
# real graphs.
# :::
#
# ## Claims
#
# Four are our own, fixed before the runs that decide them. The last is the benchmark's, which concludes it from attacks on the
# retained graph; here it is put to a test in which structure cannot score.
#
# :::{prf:conjecture} O10
# :label: claim-o10
# GCNs trained to convergence remember single edges, on every graph audited.
# :::
#
# :::{prf:conjecture} O11
# :label: claim-o11
# Low-centrality edges are remembered more than high-centrality edges.
# :::
#
# :::{prf:conjecture} O12
# :label: claim-o12
# Some approximate method removes at least half of what unlinking leaves, for at most one point of accuracy.
# :::
#
# :::{prf:conjecture} O13
# :label: claim-o13
# Certified methods reveal less of an edge than their certificate allows.
# :::
#
# :::{prf:conjecture} L27
# :label: claim-l27
# Low-centrality edges are the fatal weakness of all methods.
# :::
#
# ## Setting
#
# Attacks on the retained graph compare edges that were forgotten with pairs that never were edges. The two differ in
# structure: forgotten edges join similar nodes that stay close. A model without any training shows that as well
# ({ref}`ch-accuracy-is-blind`), so what such an attack scores is hardly about the model. The remedy is a randomised trial.
#
# Let $G$ be a graph, $P$ a **pool** of $m$ of its edges, and $B = G \setminus P$ the **base graph**. In trial
# $t = 1, \ldots, T$ a coin decides for every edge $e \in P$ whether it is in,
#
# $$s_{te} \sim \mathrm{Bernoulli}(\gamma_e), \quad \text{all independent.}$$ (eq-coins)
#
# The original of trial $t$ is trained on $B \cup \{e : s_{te} = 1\}$. The unlearner is asked to forget exactly these edges.
# What it releases, $\theta_t$, is asked **on $B$**, and gives a vector of statistics $x_{te}$ for every pair of the pool. The
# adversary calibrates each edge on its own {cite:p}`carlini2022lira`: with normal laws fitted to the other trials,
#
# $$\log \Lambda_{te} = \sum_k \log \mathcal N(x_{tek}; \mu^1_{ek}, \sigma^2_{ek}) -
# \log \mathcal N(x_{tek}; \mu^0_{ek}, \sigma^2_{ek}).$$ (eq-edge-ratio)
#
# If $\theta_t$ does not depend on the coins, then neither does anything that is read off it on $B$, and every score has an
# AUC of one half in expectation: structure cannot score. What is above one half is memory in the parameters. The headline is
# what is left of the memory that unlinking leaves,
#
# $$\rho = \frac{\mathrm{AUC} - \tfrac12}{\mathrm{AUC}_{\mathrm{UtU}} - \tfrac12}.$$ (eq-residual)
#
# **Threat model.** The adversary knows $B$, the pool, labels, and can run the training and the unlearner on coins of its
# own. A ladder of adversaries reads more and more: the posteriors on $B$; those, and the answers when the pair is put back
# into the query graph (*edge toggle*, the headline); the weights; the model before and after; and each of them with the seed
# of the training known.
#
# **Controls.** *Gold*, trained on $B$: exactly nothing to find. *Untrained*. *UtU*, the original asked on $B$
# {cite:p}`tan2024utu`: the memory that there is to remove. *Memoriser*: UtU with a planted term for every forgotten pair,
# which a working audit must see. *Tossed coins*: the same answers against coins tossed again.

# %% tags=["parameters"]
dataset: str = "synthetic"  # graph of the live audit, any name that load_graph takes
backbone: str = "gcn"  # network of the live audit
method: str = "fine_tuning"  # unlearner of the live audit, beside the controls
pool: str = "random"  # kind of forget set that the candidate edges come from
trials: int = 16  # trials of the live audit, at least 12
epochs: int = 100  # epochs of every original of the live audit, without early stopping and dropout
seed: int = 0  # seed of the split, the pool, the coins and the training
shown: str = "cora"  # published graph whose single edges are shown

# %% tags=["hide-input"]
import json
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore", message="IProgress not found")  # no progress bars here

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from scipy.stats import norm
from torch_geometric.data import Data

from lethe_lib import paths
from lethe_lib.attacks import attack
from lethe_lib.attacks.edge_design import edge_design, release
from lethe_lib.attacks.edge_membership import edge_scores, residual_memory, smallest_detectable
from lethe_lib.attacks.edge_statistics import edge_statistics
from lethe_lib.bmp import audit
from lethe_lib.data import canonical, load_graph, undirected_edges
from lethe_lib.models import build
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
from lethe_lib.reporting.claims_edge_audit import audited_runs, certified_bound, plain_runs, removing_methods
from lethe_lib.reporting.families import TITLES
from lethe_lib.structure import forget_set
from lethe_lib.study import RecordStore, load_records, run
from lethe_lib.study.edge_audit import (
    CONTROLS,
    HEADLINE,
    EdgeAuditConfiguration,
    load_audited_edges,
    memory_frame,
)

check_parameters(globals())
use_style()
GRAPHS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "dblp": "DBLP", "photo": "Photo"}
METHODS = {name: TITLES[name] for name in CONTROLS}
RUNGS = {"posteriors": "posteriors", "toggle": "and edge toggle", "weights": "and weights"}


def title(name):
    return TITLES.get(name, GRAPHS.get(name, name.replace("_", " ")))


# %% [markdown]
# ## Tiny example
#
# A square $0-1-2-3$ with the pool $P = \{0-1, 2-3\}$. The base graph is the two edges that are left. Six trials, six tosses
# for each edge of the pool; the training graph is the base graph and what the coins add.

# %%
square = canonical(
    Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1, 2, 0], [1, 2, 3, 3]]), y=torch.tensor([0, 0, 1, 1])), "square"
)
tiny = edge_design(square, torch.tensor([[0, 2], [1, 3]]), trials=6, seed=2)
assert undirected_edges(tiny.base).T.tolist() == [[0, 3], [1, 2]]
show_table(
    pd.DataFrame(
        {
            "trial": range(6),
            "coin of 0-1": tiny.member[:, 0].astype(int),
            "coin of 2-3": tiny.member[:, 1].astype(int),
            "training graph": [
                ", ".join(f"{u}-{v}" for u, v in undirected_edges(tiny.graph(t)).T.tolist()) for t in range(6)
            ],
            "asked on": ["0-3, 1-2"] * 6,
        }
    ),
    "The design on a square: the training graph follows the coins, the graph of the questions never changes.",
)

# %% [markdown]
# The score by hand. One edge, three trials without it with the statistic 0, 1, 2, three with it with 4, 5, 6. Take the trial
# with 4. The others with the edge have mean 5.5, those without it mean 1, and the pooled variance of these five is
# $(\tfrac12 + 2) / 3 = \tfrac56$. So
#
# $$\log \Lambda = \frac{(4 - 1)^2 - (4 - 5.5)^2}{2 \cdot \tfrac56} = 4.05,$$
#
# and the value 4 speaks for the edge although no trial with it was as low.

# %%
values, coins = np.array([0.0, 1, 2, 4, 5, 6]), np.arange(6) >= 3
by_hand = edge_scores(values[:, None, None], coins[:, None]).values[:, 0]
assert abs(by_hand[3] - 4.05) < 1e-12
show_table(
    pd.DataFrame({"statistic": values, "edge in": coins, "log ratio, without the trial": by_hand}),
    "Six trials of one edge and their scores.",
)

# %% [markdown]
# ## Method
#
# The design, one step a function:

# %%
show_source(edge_design, release)

# %% [markdown]
# What is read off a released model:

# %%
show_source(edge_statistics)

# %% [markdown]
# The attack is the likelihood ratio of {ref}`ch-shadow-models`, unchanged, with edges in the place of nodes:

# %%
show_source(edge_scores, residual_memory)

# %% [markdown]
# **Differences from the papers**
#
# 1. {cite:t}`carlini2022lira` ask about training examples; here the unit is an edge, every trial serves all edges of the
#    pool at once, and the variance is one for both classes, which a few dozen trials can carry.
# 2. {cite:t}`hayes2024inexact` ask per example whether a model was unlearned from it or never saw it. The same contrast is made
#    here by one coin, so the two groups differ in nothing else.
# 3. Several statistics are used, their log ratios added; the joint normal fit with shrunk correlations stands beside it.
# 4. Intervals are over trials, since the edges of one trial share a model: a jackknife over groups of trials, which errs on the
#    wide side. The spread without memory comes from tossing the coins again, which is exact.
# 5. The edge toggle is exact and local: for two layers it recomputes the rows that the pair reaches and no others.
#
# ## Experiment
#
# The live audit trains every original for a fixed number of epochs without early stopping and dropout, which leaves much to
# remember, and once more as preset `corrected` does, with early stopping.

# %% tags=["nbval-ignore-output"]
long = (("epochs", epochs), ("patience", epochs), ("always_restore", False))
long += (("dropout", 0.0),) if backbone != "sgc" else ()
with tempfile.TemporaryDirectory() as folder:
    store = RecordStore(Path(folder) / "records")
    common = {"data": dataset, "seed": seed, "backbone": backbone, "pool": pool, "trials": trials}
    configs = {
        name: EdgeAuditConfiguration(**common, method=name, training=long, toggle=backbone != "gat")
        for name in dict.fromkeys([*CONTROLS, method])
    }
    configs["early stopping"] = EdgeAuditConfiguration(**common, toggle=backbone != "gat")
    live = {name: run(config, store, Path(folder) / "models") for name, config in configs.items()}
    memory = memory_frame(list(configs.values()), store).set_index(["key", "adversary"])
    own_auc = store.arrays(configs["utu"].key)["edge_auc"]
assert all(record["status"] != "failed" for record in live.values())
rows = []
for name, record in live.items():
    found = memory.loc[(record["key"], HEADLINE)]
    metrics = record["metrics"]
    rows.append(
        {
            "method": title(name) if name != "early stopping" else "UtU, early stopping",
            "status": record["status"],
            "AUC": found["auc"],
            "low": found["low"],
            "high": found["high"],
            "spread without memory": metrics["null_error"],
            "coins tossed again": metrics["null_auc"],
            "residual memory": found["residual"],
            "test accuracy": metrics["accuracy_test"],
        }
    )
table = pd.DataFrame(rows)
show_table(table, f"Live audit, {trials} trials, {len(own_auc)} edges in the pool; 95 % intervals over trials.")
by_method = table.set_index("method")
glue_number("live_utu", by_method.loc["UtU", "AUC"])
glue_number("live_gold", by_method.loc["Gold", "AUC"])
glue_number("live_memoriser", by_method.loc["Memoriser", "AUC"])
glue_number("live_early", by_method.loc["UtU, early stopping", "AUC"])
glue_number("live_untrained", by_method.loc["Untrained", "AUC"])

# %% [markdown]
# Unlinking has an AUC of {glue:text}`live_utu`, Gold {glue:text}`live_gold`, an untrained model {glue:text}`live_untrained` and
# the Memoriser {glue:text}`live_memoriser`. With early stopping unlinking has {glue:text}`live_early`: how long a model trains
# decides how much it remembers.
#
# The same untrained model under an attack that compares forgotten edges with non-edges, and under the audit:

# %%
data = load_graph(dataset)
forgotten = forget_set(data, pool, 0.05, seed)
untrained = build(data, backbone, seed)
structural = attack("link_stealing", untrained, data, forgotten, seed)
show_table(
    pd.DataFrame(
        {
            "question": ["forgotten edges against non-edges", "coins"],
            "AUC of an untrained model": [structural.auc, by_method.loc["Untrained", "AUC"]],
            "expected without memory": ["depends on the graph", "0.5, exactly"],
        }
    ),
    "Link Stealing on the retained graph scores an untrained model; the randomised audit cannot.",
)
glue_number("structural_auc", structural.auc)

# %% [markdown]
# Link Stealing gives the untrained model {glue:text}`structural_auc`.
#
# ## Results
#
# ### Do models remember edges?

# %% mystnb={"figure": {"name": "fig-memory", "caption": "Exact answers and untrained models stand at one half and the Memoriser near one, as they must; how far the unlinked original stands above one half depends on the graph and on the pool. AUC over edges and trials with 95 % intervals over trials, GCN, preset corrected."}, "image": {"alt": "One panel per pool, one row of points per graph. Gold and Untrained lie on the dotted line at one half, the Memoriser near one, and UtU in between, at a place that depends on the graph."}} tags=["hide-input"]
plain = plain_runs()
gcn = plain[(plain["backbone"] == "gcn") & (plain["preset"] == "corrected")]
graphs = [name for name in GRAPHS if name in set(gcn["data"])]
graphs += [name for name in gcn["data"].unique() if name not in graphs]
pools = [name for name in ("low", "high", "random") if name in set(gcn["pool"])]
fig, axes = plt.subplots(1, len(pools), figsize=(9, 1.6 + 0.55 * len(graphs)), sharex=True, sharey=True, squeeze=False)
for ax, kind in zip(axes[0], pools, strict=True):
    for number, (name, colour, marker) in enumerate(zip(METHODS, PALETTE, ("o", "D", "x", "s"), strict=False)):
        part = gcn[(gcn["pool"] == kind) & (gcn["method"] == name)].set_index("data").reindex(graphs)
        place = np.arange(len(graphs)) + 0.16 * (number - 1.5)
        reach = np.stack([part["auc"] - part["low"], part["high"] - part["auc"]])
        ax.errorbar(
            part["auc"], place, xerr=reach, fmt=marker, color=colour, label=METHODS[name], markersize=5, capsize=2
        )
    ax.axvline(0.5, color="0.5", linestyle=":")
    ax.set(title=f"{kind} pool", xlabel="AUC", yticks=range(len(graphs)), yticklabels=[title(name) for name in graphs])
axes[0, 0].invert_yaxis()
fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()

# %%
unlinked = gcn[gcn["method"] == "utu"].sort_values(["data", "pool"])
show_table(
    pd.DataFrame(
        {
            "graph": unlinked["data"].map(title),
            "pool": unlinked["pool"],
            "trials": unlinked["trials"],
            "AUC": unlinked["auc"],
            "TPR at 1 % FPR": unlinked["toggle_sum_tpr_1"],
            "joint fit": unlinked["toggle_joint_auc"],
            "one classifier for all": unlinked["pooled_auc"],
            "spread without memory": unlinked["null_error"],
            "p": unlinked["p_value"],
            "smallest detectable excess": unlinked["null_error"].map(smallest_detectable),
        }
    ).head(20),
    "What unlinking leaves, on every graph and pool: posteriors and edge toggle. The last column is the excess over one half "
    "that these trials find with probability 0.8.",
)
finding = check_claim("O10")
gold = gcn[gcn["method"] == "gold"]
distance = (gold["auc"] - 0.5).abs() / gold["null_error"]
glue_number("gold_runs", len(gold))
glue_number("gold_within", int((distance < 2).sum()))
glue_number("gold_worst", distance.max(), 2)
memoriser = gcn[gcn["method"] == "memoriser"]
glue_number("memoriser_least", memoriser["auc"].min())

# %% [markdown]
# {glue:text}`O10_detail` The controls: Gold is within two standard errors of one half in {glue:text}`gold_within` of
# {glue:text}`gold_runs` settings (at most {glue:text}`gold_worst` away), and the Memoriser is never below
# {glue:text}`memoriser_least`. One classifier for all edges sees far less than the attack that calibrates each edge: the
# memory has no common direction.
#
# ### Which statistic tells it, and who must know what

# %%
first = shown if shown in set(gcn["data"]) else graphs[0]
cells = unlinked[unlinked["data"] == first].set_index("pool")
single = [name for name in cells.columns if name.startswith("single_")]
wide = cells[single].T
wide.index = [name.removeprefix("single_").removesuffix("_auc").replace("_", " ") for name in single]
show_table(
    wide.reset_index(names="statistic"), f"AUC of single statistics, unlinked GCN on {title(first)}, one column a pool."
)
rungs = {f"{RUNGS[name]}, {fit}": cells[f"{name}_{fit}_auc"] for name in RUNGS for fit in ("sum", "joint")}
ladder = pd.DataFrame(rungs).T
same = audited_runs()
same = same[(same["data"] == first) & (same["method"] == "utu") & same["same_seed"] & (same["preset"] == "corrected")]
if len(same):
    ladder.loc["and edge toggle, seed known, sum"] = same.set_index("pool")["auc"].reindex(ladder.columns)
show_table(
    ladder.reset_index(names="adversary reads, statistics combined by"), f"The ladder of adversaries on {title(first)}."
)

# %% [markdown]
# ### Which edges

# %% mystnb={"figure": {"name": "fig-edges", "caption": "The AUC of single edges spreads widely around its mean, far more than without memory, and the place of an edge in the graph explains part of it. Unlinked GCN; each point one edge, its AUC over trials; the grey band holds the middle 90 % of the edges of Gold."}, "image": {"alt": "Three panels with one point per edge: its own AUC against the rank of its centrality, against the smaller degree of its ends, and by the number of its ends that are training nodes, for the pools that are published."}} tags=["hide-input"]
keys = {kind: cells.loc[kind, "key"] for kind in cells.index}
edges = load_audited_edges(keys.values())
edges["pool"] = edges["key"].astype(str).map({key: kind for kind, key in keys.items()})
null_edges = load_audited_edges(gold[gold["data"] == first]["key"])["edge_auc"].dropna()
fig, axes = plt.subplots(1, 3, figsize=(9, 3.4), sharey=True)
for colour, kind in zip(PALETTE, keys, strict=False):
    part = edges[edges["pool"] == kind]
    style = {"color": colour, "s": 10, "alpha": 0.5, "linewidths": 0}
    axes[0].scatter(part["centrality"].rank(pct=True), part["edge_auc"], label=kind, **style)
    axes[1].scatter(part["smaller_degree"], part["edge_auc"], **style)
    means = part.groupby("training_ends")["edge_auc"].agg(["mean", "sem"])
    axes[2].errorbar(means.index, means["mean"], yerr=1.96 * means["sem"], fmt="o-", color=colour, capsize=2)
for ax, label in zip(
    axes, ("rank of centrality in the pool", "smaller degree of the ends", "training nodes at the ends")
):
    if len(null_edges):
        ax.axhspan(*null_edges.quantile([0.05, 0.95]), color="0.85", zorder=0)
    ax.axhline(0.5, color="0.5", linestyle=":")
    ax.set_xlabel(label)
axes[1].set_xscale("log")
axes[2].set_xticks([0, 1, 2])
axes[0].set_ylabel("AUC of the edge")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, title="pool", markerscale=2.5)
plt.show()

# %%
rows = []
for kind, part in edges.groupby("pool"):
    known = part.dropna(subset="edge_auc")
    row = {"pool": kind, "edges": len(part)}
    row |= {f"{level} %": known["edge_auc"].quantile(level / 100) for level in (5, 25, 50, 75, 95)}
    for name in ("centrality", "smaller_degree", "larger_degree", "same_label", "training_ends"):
        values = known[name].astype(float)
        row[f"with {name.replace('_', ' ')}"] = (
            values.corr(known["edge_auc"].astype(float), method="spearman") if values.nunique() > 1 else np.nan
        )
    rows.append(row)
show_table(
    pd.DataFrame(rows),
    f"AUC of single edges on {title(first)}: quantiles, and rank correlation with the place of the edge in the graph.",
    digits=2,
)
finding = check_claim("O11")

# %% [markdown]
# {glue:text}`O11_detail`
#
# ### Where memory lives
#
# How the originals were trained, on one graph: with early stopping (preset `corrected`), by the published schedule, for a fixed
# number of epochs without dropout, and from one seed that the adversary knows.

# %%
trained = audited_runs()
trained = trained[(trained["data"] == first) & (trained["backbone"] == "gcn") & (trained["method"] == "utu")]
trained = trained[trained["spread"] == 0].copy()
trained["training"] = [
    ", ".join(f"{k.replace('_', ' ')} {v:g}" for k, v in json.loads(text)["training"] if k in ("epochs", "dropout"))
    or "as the preset says"
    for text in trained["config_json"]
]
show_table(
    pd.DataFrame(
        {
            "preset": trained["preset"],
            "training": trained["training"],
            "seed": np.where(trained["same_seed"], "known", "fresh"),
            "pool": trained["pool"],
            "AUC": trained["auc"],
            "low": trained["low"],
            "high": trained["high"],
            "training accuracy": trained["accuracy_train"],
            "test accuracy": trained["accuracy_test"],
        }
    ).head(20),
    f"Unlinking on {title(first)}: how the originals were trained and what they remember.",
)

# %% [markdown]
# One thing varied at a time, unlinking alone, on random pools: length of training, width, weight decay, features, edges,
# training nodes, size of the pool.

# %%
if (paths.results() / "edge_audit_variations.parquet").exists():
    varied = load_records("edge_audit_variations")
    rows = []
    for record in varied.to_dict("records"):
        config = json.loads(record["config_json"])
        changed = dict(map(tuple, config["training"]))
        changed |= {k: config[k] for k in ("edge_share", "feature_share", "train_share") if config[k] != 1.0}
        changed |= {"projection": config["projection"]} if config["projection"] else {}
        changed |= {"pool, share of edges": config["fraction"]} if config["fraction"] != 0.05 else {}
        kept = {k: v for k, v in changed.items() if k not in ("patience", "always_restore")}
        what = ", ".join(f"{k.replace('_', ' ')} {v:g}" for k, v in kept.items()) or "main setting"
        rows.append({"varied": what, "graph": title(record["data"]), "AUC": record[f"{HEADLINE}_sum_auc"]})
    wide = pd.DataFrame(rows).pivot_table(index="varied", columns="graph", values="AUC", sort=False)
    for number, start in enumerate(range(0, len(wide), 20)):
        show_table(
            wide.iloc[start : start + 20].reset_index(), f"AUC of unlinking, one thing varied (part {number + 1})."
        )
    main = wide.iloc[:, 0]
    ranked = main.drop("main setting").sort_values(ascending=False)
    most, least = (
        ", ".join(f"{name} ({value:.2f})" for name, value in part.items()) for part in (ranked[:5], ranked[:-6:-1])
    )
    glue_text(
        "varied_note",
        f"On {main.name} the AUC of the main setting is {main['main setting']:.2f}. It is largest with {most}, and smallest with "
        f"{least}.",
    )
else:
    glue_text(
        "varied_note",
        "The variations on real graphs are not published yet; the live audit above varies the length alone.",
    )

# %% [markdown]
# {glue:text}`varied_note` Where nothing is said of epochs, training stops early, so that a setting also acts through how long
# it lets a model train; the fixed lengths keep the last epoch.
#
# ### Which methods forget

# %% mystnb={"figure": {"name": "fig-residual", "caption": "What a method leaves of the memory that unlinking leaves, what it costs in accuracy, and what it costs in time. At one a method removes nothing, at zero everything; far above one it writes the request into the model. One point a graph and pool with memory to remove, 95 % intervals over trials; the band is what the trials could not have seen; GCN, preset corrected; least residual memory first."}, "image": {"alt": "Three panels with one row per method. Left, residual memory on an axis that is linear up to one and a half and logarithmic above: Gold at zero, a few methods between zero and one half, most of them near one, GNNDelete far above. Middle, change of test accuracy in points. Right, seconds as a share of Gold's on a log axis."}} tags=["hide-input"]
able = gcn[gcn["to_remove"].eq(True) & ~gcn["method"].isin(["utu", "untrained", "memoriser"])].copy()
unlinked_accuracy = unlinked.set_index(["data", "pool"])["accuracy_test"]
gold_seconds = gold.set_index(["data", "pool"])["seconds"]
cell_of = pd.MultiIndex.from_frame(able[["data", "pool"]])
able["change"] = 100 * (able["accuracy_test"].to_numpy() - unlinked_accuracy.reindex(cell_of).to_numpy())
able["share"] = able["seconds"].to_numpy() / gold_seconds.reindex(cell_of).to_numpy()
order = able.groupby("method")["residual"].mean().sort_values().index
fig, axes = plt.subplots(1, 3, figsize=(9.5, 1.8 + 0.27 * len(order)), sharey=True, width_ratios=[2.2, 1, 1])
MARKERS = {"low": "o", "high": "D", "random": "s"}
shift = dict(zip(graphs, np.linspace(-0.22, 0.22, len(graphs)), strict=True))
for (name, kind), part in able.groupby(["data", "pool"], sort=False):
    place = part["method"].map({method: number for number, method in enumerate(order)}) + shift[name]
    style = {"color": PALETTE[graphs.index(name) % len(PALETTE)], "marker": MARKERS.get(kind, "v"), "markersize": 4.5}
    style |= {"linestyle": "none", "label": f"{title(name)}, {kind}"}
    reach = np.stack([part["residual"] - part["residual_low"], part["residual_high"] - part["residual"]])
    axes[0].errorbar(part["residual"], place, xerr=reach, elinewidth=0.8, **style)
    axes[1].plot(part["change"], place, **style)
    axes[2].plot(part["share"], place, **style)
axes[0].axvspan(0, able["detectable"].median(), color="0.88", zorder=0)
for level in (0, 1):
    axes[0].axvline(level, color="0.4", linestyle=":")
axes[1].axvline(0, color="0.4", linestyle=":")
axes[2].axvline(1, color="0.4", linestyle=":")
axes[0].set_xscale("symlog", linthresh=1.5)
axes[0].set_xticks([-0.5, 0, 0.5, 1, 2, 5], ["-0.5", "0", "0.5", "1", "2", "5"])
axes[0].set(xlabel="residual memory", yticks=range(len(order)), yticklabels=[title(name) for name in order])
axes[0].invert_yaxis()
axes[1].set_xlabel("accuracy, points")
axes[2].set(xscale="log", xlabel="time, share of Gold's")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()

# %%
methods = removing_methods()
cost = methods["method"].map(able.groupby("method")["share"].mean())
show_table(
    pd.DataFrame(
        {
            "method": methods["method"].map(title),
            "settings": methods["settings"],
            "residual memory, mean": methods["residual"],
            "lowest end": methods["residual_low"],
            "highest end": methods["residual_high"],
            "worst accuracy change": methods["accuracy_change"],
            "cost, share of Gold's": cost.round(2),
            "removes half": methods["removes"],
        }
    ).head(20),
    "Approximate methods over the settings with memory to remove, least residual memory first.",
    digits=2,
)
finding = check_claim("O12")
finding = check_claim("L27")
with_memory = unlinked[unlinked["to_remove"].eq(True)]
glue_number("settings_with_memory", len(with_memory))
glue_number("settings_all", len(unlinked))
least = with_memory["detectable"]
written = able[able["residual_low"] > 1].groupby("method")["residual"].agg(["size", "mean"])
glue_text(
    "written_in",
    ", ".join(f"{title(name)} ({row['size']:.0f} settings, mean {row['mean']:.2f})" for name, row in written.iterrows())
    or "none",
)
glue_text(
    "detectable_range", f"{least.min():.2f} to {least.max():.2f}" if len(least) else "undefined, as no setting has any"
)

# %% [markdown]
# {glue:text}`O12_detail` There is memory to remove in {glue:text}`settings_with_memory` of {glue:text}`settings_all` settings;
# a graph without memory cannot rank methods, and none is ranked on it. The smallest residual memory that the trials would have
# found with probability 0.8 is {glue:text}`detectable_range`. Shares of Gold's time are rough, since trials shared their
# processors with other work.
#
# Some methods reveal more than the original did, with the whole interval above one: {glue:text}`written_in`. Such a method acts
# on the edges of its request, and its action can be read off the model: unlearning becomes the leak. On the benchmark's statement: {glue:text}`L27_detail`
#
# ### What remains after the best method
#
# Means hide edges. The AUC of single edges after the method that leaves least, beside unlinking and Gold, in the same trials:

# %%
single_graph = gcn[gcn["data"] == first]
candidates = [name for name in methods["method"] if name in set(single_graph["method"])]
compared = [name for name in ("utu", *candidates[:1], "gold") if name in set(single_graph["method"])]
rows = []
for kind in pools:
    for name in compared:
        run_of = single_graph[(single_graph["pool"] == kind) & (single_graph["method"] == name)]
        own = load_audited_edges(run_of["key"])["edge_auc"].dropna() if len(run_of) else pd.Series(dtype=float)
        if len(own):
            rows.append(
                {"pool": kind, "method": title(name), "edges": len(own)}
                | {f"{level} %": own.quantile(level / 100) for level in (5, 25, 50, 75, 95)}
                | {"share above 0.8": (own > 0.8).mean()}
            )
show_table(pd.DataFrame(rows), f"AUC of single edges on {title(first)}: quantiles over edges.", digits=2)

# %% [markdown]
# Chance alone spreads the AUC of one edge widely over so few trials, as the rows of Gold show; only what exceeds them is memory.
#
# ### Other networks
#
# The low pool under the other backbones. Attention weights depend on features alone once the edge is gone, GraphSAGE and GIN do
# not normalise by degree: each stores edges in its own way.

# %%
networks = plain[(plain["data"] == first) & (plain["pool"] == "low") & (plain["preset"] == "corrected")]
wide = networks.pivot_table(index="method", columns="backbone", values="auc", sort=False)
wide = wide[wide.notna().sum(axis=1) > 1] if len(wide.columns) > 1 else wide
wide.index = [title(name) for name in wide.index]
show_table(
    wide.reset_index(names="method").head(20),
    f"AUC of the audit on the low pool of {title(first)}, one column a backbone; no entry where a method was not run.",
)
unlinking = networks[networks["method"] == "utu"].set_index("backbone")["auc"]
glue_text("backbone_memory", ", ".join(f"{name} {value:.2f}" for name, value in unlinking.items()))

# %% [markdown]
# AUC of unlinking by backbone: {glue:text}`backbone_memory`.
#
# ### Before and after
#
# Who has the model before unlearning needs no model after it. What unlearning itself gives away is the gain of reading both.

# %%
both = load_records("edge_audit_memory")
both = both[both["adversary"] == "before_after"].merge(gcn[["key", "data", "pool"]], on="key")
gains = both[both["data"] == first].sort_values("gain", ascending=False)
show_table(
    pd.DataFrame(
        {
            "method": gains["method"].map(title),
            "pool": gains["pool"],
            "AUC, before and after": gains["auc"],
            "gain over before alone": gains["gain"],
            "low": gains["gain_low"],
            "high": gains["gain_high"],
        }
    ).head(20),
    f"The adversary who saw the model before and after the request, on {title(first)}; largest gains.",
)

# %% [markdown]
# ### $(\varepsilon_L, \varepsilon_R)$ of an edge
#
# The errors of a test at level $\alpha = 0.1$, edge by edge, are counts like those of a node in {ref}`ch-mcmc-audit`, with the coin's
# $\gamma_e$ as the prior. In ratio form the parameters bound the likelihood ratio of the edge; in odds form the posterior odds,
# so that they also hold what the coin gives away: $\log o_e$ on the right, $-\log o_e$ on the left.

# %%
rising = audited_runs()
rising = rising[(rising["data"] == first) & (rising["method"] == "utu") & (rising["spread"] > 0)]
bmp_runs = pd.concat([cells.reset_index(), rising]) if len(rising) else cells.reset_index()
rows = []
for record in bmp_runs.to_dict("records"):
    part = load_audited_edges([record["key"]])
    part = part[part["n_in"] > 0]
    if part.empty:
        continue
    row = {"pool": record["pool"], "prior": "rising" if record["spread"] else "equal", "edges": len(part)}
    for side, sign in (("right", 1), ("left", -1)):
        bound = part[f"corner_{side} 5%"]
        row[f"{side}, ratio, median"] = bound.median()
        row[f"{side}, ratio, 95 %"] = bound.quantile(0.95)
        row[f"{side}, odds, 95 %"] = (bound + sign * part["log_odds"]).quantile(0.95)
    rows.append(row)
show_table(
    pd.DataFrame(rows),
    f"Audited lower bounds (5 % points of the corner posterior) of the edges of {title(first)}, unlinked GCN: median and 95 % "
    "point over edges.",
    digits=2,
)
example = audit(n_out=32, false_positives=3, n_in=32, false_negatives=8, priors=[0.25])
gap = float(example.quantile(0.5, "odds")[0, 1] - example.quantile(0.5, "ratio")[0, 1])
assert abs(gap - np.log(1 / 3)) < 1e-12

# %% [markdown]
# ### Certificates
#
# If released weights are $(\varepsilon, \delta)$-indistinguishable from retraining, whatever the coins, then those of two trials
# are within $2 \varepsilon$ of each other, and no attack has an AUC above $\tfrac12 (1 + \tanh \varepsilon)$ (leaving out the
# tiny $\delta$).

# %%
certified = plain[plain["certified_epsilon"].notna()]
show_table(
    pd.DataFrame(
        {
            "graph": certified["data"].map(title),
            "method": certified["method"].map(title),
            "epsilon": certified["certified_epsilon"],
            "bound on the AUC": certified["certified_epsilon"].map(certified_bound),
            "AUC": certified["auc"],
            "low": certified["low"],
            "high": certified["high"],
        }
    ).head(20),
    "Certified methods against the bound of their certificate.",
)
finding = check_claim("O13")

# %% [markdown]
# {glue:text}`O13_detail`
#
# ### How many trials?

# %%
quantile = float(norm.isf(0.05) + norm.isf(0.2))
rows = [
    {"graph": title(name), "trials": int(part["trials"].iloc[0]), "edges": int(part["usable_edges"].mean()),
     "spread without memory": part["null_error"].mean(), "detectable excess of the AUC": quantile * part["null_error"].mean()}
    for name, part in gold.groupby("data")
]  # fmt: skip
show_table(
    pd.DataFrame(rows),
    "Power: standard error of the AUC of Gold with the coins tossed again, and the excess found with probability 0.8 at level "
    "0.05, means over pools. Both fall with the root of trials times edges.",
)

# %% [markdown]
# ## What would change our mind
#
# A statistic that sees memory where ours see none would move O10, and with it every residual memory; the audit bounds memory
# from below only. Gold away from one half by more than its standard error, or a Memoriser below 0.95, would mean that a
# setting is not to be trusted at all. A method that hides memory from these statistics and not from others would be ranked too
# well. And the trials hold the training nodes fixed: memory of an edge may depend on which nodes carry labels.
#
# ## Summary
#
# - The same edge, the same query graph, a coin: structure cannot score, and the exact answer has an AUC of one half by
#   construction, as Gold shows.
# - O10, single edges are remembered on every graph: {glue:text}`O10_verdict`, largest AUC {glue:text}`O10_effect`, interval
#   {glue:text}`O10_interval`.
# - O11, low-centrality edges more: {glue:text}`O11_verdict`, difference {glue:text}`O11_effect`, interval
#   {glue:text}`O11_interval`.
# - O12, some approximate method removes half: {glue:text}`O12_verdict`, residual memory {glue:text}`O12_effect`, range
#   {glue:text}`O12_interval`.
# - O13, certificates hold: {glue:text}`O13_verdict`. L27, low-centrality edges the weakness of all methods:
#   {glue:text}`L27_verdict`, smallest difference {glue:text}`L27_effect`, interval {glue:text}`L27_interval`.
# - Calibration per edge finds what one classifier for all edges does not, and edges differ widely.
# - Where there is no memory to remove, no method is ranked; the smallest detectable memory is printed instead.
#
# ## Exercises
#
# :::{exercise}
# :label: ex-audit-own
# Audit an unlearner of your own on Cora. What must its file hold?
# :::
#
# :::{solution} ex-audit-own
# :class: dropdown
# A function `run(model, request, settings, seed)` that returns the model and a `StepLog`, and a line that registers it in
# `UNLEARNERS`. Then `python -m lethe_lib audit-edges --unlearner my_file.py --graph cora --trials 32` prints its residual memory
# beside the controls.
# :::
#
# :::{exercise}
# :label: ex-audit-query
# Suppose the released model of trial $t$ were asked on its own training graph instead of $B$. What AUC would an untrained
# model have?
# :::
#
# :::{solution} ex-audit-query
# :class: dropdown
# Far above one half, and near one if its weights are the same in every trial: the query graph would then hold the edge exactly
# when the coin says so, and the answers at its ends show it with any weights. The audit would measure the graph again.
# :::
#
# :::{exercise}
# :label: ex-audit-fixed
# With one training seed for all trials, Gold is the same model in every trial. What is its AUC, and why does the AUC of UtU rise?
# :::
#
# :::{solution} ex-audit-fixed
# :class: dropdown
# Exactly one half: constant statistics have no evidence. The spread that fresh seeds add to every statistic is gone, so the same
# effect of an edge stands out more. This is the adversary who knows the randomness of the training.
# :::

# %% tags=["hide-input", "nbval-ignore-output"]
provenance(
    {
        "dataset": dataset,
        "backbone": backbone,
        "method": method,
        "pool": pool,
        "trials": trials,
        "epochs": epochs,
        "seed": seed,
        "shown": shown,
    },
    graphs=[data],
)
