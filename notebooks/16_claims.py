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
# (ch-claims)=
# # Every claim and its verdict
#
# :::{admonition} In this chapter
# **Question.** Which published statements about privacy in graph neural networks survive a check?
#
# **At the end you can say** for every claim what was measured, how large it is, and what we conclude.
#
# **Run time.** About two minutes on a CPU. **Data.** The claim objects of the other chapters: exact enumeration, and published
# records of six real graphs.
# :::
#
# ## Claims
#
# A claim is an object of the library: an id, a sentence, its source, an estimand, a threshold and a check that computes the finding.
# Estimand and threshold were fixed before looking at results, but for the claims listed under Results, which say in their estimand
# what was changed and why. The sources make 53 statements, B01 to B25 and L01 to L28. This page runs every check again. Ids beginning with B come from the paper on
# Bayesian Membership Privacy {cite:p}`yildirim2026bmp`, with L from the Lethe benchmark {cite:p}`lethe2026`, with O from us.
# A failed claim stays in the table as failed.
#
# ## Setting
#
# The verdicts are `holds`, `fails`, `inconclusive` (the interval does not decide) and `not testable here` (data are missing, or
# what would be tested is not built). Claims that depend on the form of Bayesian Membership Privacy have a verdict for each form; the overall verdict is
# that of the printed one, the ratio form (of B16m, which fails in ratio form by definition, that of the odds form). A claim
# about all graphs, nodes or methods holds when it holds in each case and fails when it fails in one; what was found says in how many.

# %% tags=["parameters"]
only: str = ""  # first letters of the ids to check, for example "L"; empty for all

# %% tags=["hide-input"]
import warnings

warnings.filterwarnings("ignore", message="IProgress not found")  # no progress bars here

import matplotlib.pyplot as plt
import pandas as pd

from lethe_lib.reporting import (
    CLAIMS,
    PALETTE,
    VERDICTS,
    Claim,
    check_parameters,
    glue_number,
    glue_text,
    provenance,
    show_source,
    show_table,
    use_style,
)
from lethe_lib.reporting.verdicts import NOT_TESTED, SOURCE_IDS, ClaimsView, decided_later, untested

check_parameters(globals())
use_style()

# %% [markdown]
# ## Tiny example
#
# One claim, by hand: what its object says before any number is looked at.

# %%
example = CLAIMS["L07"]
show_table(
    pd.DataFrame(
        {
            "field": ["id", "sentence", "source", "estimand", "threshold", "chapter"],
            "value": [
                getattr(example, name) for name in ("id", "sentence", "source", "estimand", "threshold", "chapter")
            ],
        }
    ),
    "The claim L07.",
)

# %% [markdown]
# ## Method

# %%
show_source(Claim)

# %% [markdown]
# ## Experiment
#
# All checks, one after the other. Each returns a finding; a check that cannot find its records is an error, not a verdict.

# %%
findings = {name: claim.check() for name, claim in CLAIMS.items() if name.startswith(only)}
assert findings, "no claim begins with these letters"
assert all(finding.verdict in VERDICTS for finding in findings.values())
counts = pd.Series([finding.verdict for finding in findings.values()]).value_counts().reindex(VERDICTS, fill_value=0)
glue_number("claims_checked", int(counts.sum()))
for verdict, count in counts.items():
    glue_number(f"claims_{verdict.replace(' ', '_')}", int(count))
missing = [name for name in untested() if name.startswith(only)]
of_sources = {name[:3] for name in findings} & set(SOURCE_IDS)  # B16m is the measured part of B16
glue_number("claims_of_sources", len(of_sources))
glue_number("claims_own", sum(name[:3] not in SOURCE_IDS for name in findings))
glue_number("claims_all_sources", len(SOURCE_IDS))
glue_text("claims_later", ", ".join(name for name in decided_later() if name in findings) or "none")
without = f"Without a check: {len(missing)}, {', '.join(missing)}." if missing else "Every one of them has a check."
glue_text("claims_without", without)

# %% [markdown]
# ## Results
#
# {glue:text}`claims_of_sources` of the {glue:text}`claims_all_sources` statements of the sources have a check, some of them two, and
# {glue:text}`claims_own` of our own. Of these {glue:text}`claims_checked` checks {glue:text}`claims_holds` hold as printed,
# {glue:text}`claims_fails` fail, {glue:text}`claims_inconclusive` are inconclusive and {glue:text}`claims_not_testable_here` cannot be
# tested here. {glue:text}`claims_without` Estimands that were changed after a first look at results, mostly to count
# runs that had been left out: {glue:text}`claims_later`. Effects of accuracy are fractions, not points.

# %% mystnb={"figure": {"name": "fig-verdicts", "caption": "Of the statements on Bayesian Membership Privacy most hold as printed, of those of the Lethe benchmark most do not. Claims by source. B: Bayesian Membership Privacy, L: Lethe benchmark, O: our own."}, "image": {"alt": "Stacked horizontal bars, one per source, with the number of claims that hold, fail, are inconclusive, or cannot be tested."}} tags=["hide-input"]
rows = [(name[0], finding.verdict) for name, finding in findings.items()] + [(name[0], NOT_TESTED) for name in missing]
table = pd.DataFrame(rows, columns=["source", "verdict"]).value_counts().unstack(fill_value=0).sort_index()
colours = dict(zip((*VERDICTS, NOT_TESTED), (PALETTE[2], PALETTE[3], PALETTE[1], PALETTE[7], "0.9"), strict=True))
fig, ax = plt.subplots(figsize=(7, 2.8))
left = 0
for verdict, colour in colours.items():
    if verdict in table:
        ax.barh(table.index, table[verdict], left=left, color=colour, edgecolor="0.4", linewidth=0.5, label=verdict)
        left = left + table[verdict]
ax.invert_yaxis()
ax.set(xlabel="claims", ylabel="source")
ax.xaxis.get_major_locator().set_params(integer=True)
fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% tags=["full-width"]
view = ClaimsView(findings, missing)
assert len(view.rows) == len(findings) + len(missing)
if not only:
    assert set(SOURCE_IDS) <= {row[0] for row in view.rows}
view

# %%
for name, finding in findings.items():
    glue_text(f"verdict_{name}", finding.verdict)

# %% [markdown]
# The evidence stands in the chapters: {ref}`ch-bmp-theory`, {ref}`ch-sampling-priors`, {ref}`ch-shadow-models`,
# {ref}`ch-mcmc-audit`, {ref}`ch-bmp-findings`, {ref}`ch-walk-centrality`, {ref}`ch-accuracy-is-blind`,
# {ref}`ch-gradient-family`, {ref}`ch-distillation-family`, {ref}`ch-parameter-family`, {ref}`ch-certified-family`,
# {ref}`ch-structural-family`, {ref}`ch-attacks`, {ref}`ch-benchmark`, {ref}`ch-edge-audit`. Each id in the table leads to the block that
# states the claim; its check stands further down on that page. Estimand and threshold unfold under the statement. Under L10 and O12
# the interval is a range, over cells and over settings; what any other is, its estimand says.
#
# ## What would change our mind
#
# Each chapter says so for its own claims. In general: another reading of a vague sentence, other graphs, or an error in a
# check. The checks are short functions; each id leads to the chapter that shows its own.
#
# ## Summary
#
# - {glue:text}`claims_checked` checks: {glue:text}`claims_holds` hold, {glue:text}`claims_fails` fail, {glue:text}`claims_inconclusive` are
#   inconclusive, {glue:text}`claims_not_testable_here` cannot be tested here.
# - The sources make {glue:text}`claims_all_sources` statements. {glue:text}`claims_without`
#
# ## Exercises
#
# :::{exercise}
# :label: ex-claims-threshold
# Choose a claim that fails. How far would its threshold have to move for it to hold, and would you accept that threshold?
# :::
#
# :::{solution} ex-claims-threshold
# :class: dropdown
# The effect and its interval are in the table; a threshold beyond the interval's far end would make it hold. Whether that is
# acceptable depends on what the claim is used for, which is why a threshold is best fixed before looking.
# :::

# %% tags=["hide-input", "nbval-ignore-output"]
provenance({"only": only})
