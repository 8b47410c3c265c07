"""The claims about single nodes: what one node does to the others, and what one global accuracy says about single nodes.

B12 is measured by leaving single nodes out of the training graphs of the study ``one_node``. B20 is measured on the error
counts of the study ``membership``: a test at one level, node by node, 200 shadow models a setting.

A node's advantage, TPR - FPR of its own test, is known from its own runs only, up to a few hundredths. So the spread over
nodes that is seen is the true one plus noise, and two settings differ in noise when nodes are in different numbers of
samples. Binomial noise is not all of it: one threshold is fitted to all runs of a node, and its error is shared by them. The
control is an untrained model on the full graph, whose answers cannot depend on the sample; the true spread there is 0, so its
observed spread over the binomial one is the factor by which noise is larger than binomial.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import t

from lethe_lib.errors import InputError
from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.claims_sampling_priors import smallest_cell
from lethe_lib.reporting.glue import as_text
from lethe_lib.reporting.titles import graph_title
from lethe_lib.seeding import numpy_generator
from lethe_lib.shadow import ShadowTraining
from lethe_lib.study.membership import COUNTS, load_membership
from lethe_lib.study.one_node import MOVED
from lethe_lib.study.records import load_records

CHAPTER = "03_shadow_models"
LEVEL = 0.05

LEAST_NODES = 10  # B12: "many"

LEAST_GAP = 0.1  # B20: difference of advantages
EQUAL = 0.01  # difference of balanced accuracies below which two settings count as equally leaky
QUANTILE = 0.95
LEAST_RUNS = 10  # with and without a node, below which its errors are not used
LEAST_SHARED = 50  # nodes that both settings of a pair must have in either half
RESAMPLES = 1000
SETTING = ["backbone", "sampler", "edges", "ratio", "epochs", "release"]


def left_out(level: float) -> pd.DataFrame:
    """Other nodes that change when one node is left out, per graph and ratio, with t intervals over the removed nodes.

    Args:
        level: probability that an interval misses.

    Returns:
        The columns of the study and ``effect``, ``low``, ``high``: the mean number of other nodes whose hidden rows change.
    """
    table = load_records("one_node")
    width = t.ppf(1 - level / 2, table["removed"] - 1) * table["hidden_error"]
    return table.assign(
        graph=table["data"],
        effect=table["hidden_mean"],
        low=table["hidden_mean"] - width,
        high=table["hidden_mean"] + width,
    )


def check_one_node() -> Finding:
    """B12: other nodes whose hidden rows change when one node is taken out of the whole graph, at fixed weights."""
    graphs = load_records("one_node")["data"].nunique()
    table = left_out(LEVEL / graphs)
    whole = table[table["ratio"] == 1.0]
    verdict, worst = smallest_cell(whole, LEAST_NODES)
    samples = table[table["ratio"] < 1.0].groupby("ratio")["effect"]
    retrained = table[table["retrained"] > 0]
    detail = (
        f"Whole graphs, fixed weights: {as_text(whole['effect'].min())} ({graph_title(worst['graph'])}) to "
        f"{as_text(whole['effect'].max())} other nodes on average. Few of them move much: posteriors of "
        f"{as_text(whole['moved_mean'].min())} to {as_text(whole['moved_mean'].max())} nodes by more than {MOVED:g}. In "
        "uniform samples the number follows the density: "
        + ", ".join(
            f"ratio {ratio:g}: {as_text(low)} to {as_text(high)}"
            for ratio, low, high in samples.agg(["min", "max"]).itertuples()
        )
        + ". Trained again without the node, a share of "
        f"{as_text(retrained['retrained_share'].min())} to {as_text(retrained['retrained_share'].max())} of the others moves "
        f"so far; under another seed with no node left out, {as_text(retrained['other_seed_share'].min())} to "
        f"{as_text(retrained['other_seed_share'].max())}."
    )
    return Finding(verdict, float(worst["effect"]), (float(worst["low"]), float(worst["high"])), detail)


@dataclass(frozen=True)
class Setting:
    """The errors of one attack in one setting, node by node.

    Attributes:
        name: values of the columns SETTING. counts: (n, 4), in the order of ``COUNTS``.
        factor: by how much noise is larger than binomial, from the untrained control.
    """

    name: tuple
    counts: np.ndarray
    factor: float = 1.0

    @property
    def trained(self) -> bool:
        return self.name[SETTING.index("epochs")] > 0

    @property
    def samples(self) -> tuple:
        """Sampler and ratio."""
        return self.name[SETTING.index("sampler")], self.name[SETTING.index("ratio")]

    @property
    def control(self) -> tuple:
        """What an untrained control shares with it: backbone, sampler, edges and ratio."""
        return tuple(self.name[SETTING.index(axis)] for axis in ("backbone", "sampler", "edges", "ratio"))

    @property
    def usable(self) -> np.ndarray:
        """Nodes with enough runs on either side, (n,) bool."""
        return (self.counts[:, 0] >= LEAST_RUNS) & (self.counts[:, 2] >= LEAST_RUNS)

    def text(self) -> str:
        """A name for sentences."""
        backbone, sampler, edges, ratio, epochs, release = self.name
        kind = f"{sampler} ({edges})" if edges else sampler
        training = {0: " untrained", ShadowTraining().epochs: ""}.get(epochs, f" {epochs} epochs")
        return f"{backbone}{training}, {kind} {ratio:g}, {release}"


def advantages(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """TPR - FPR of every node, and an unbiased estimate of its binomial variance.

    Args:
        counts: (n, 4), in the order of ``COUNTS``; at least 2 runs on either side.
    """
    n_out, false_positives, n_in, false_negatives = np.asarray(counts, dtype=np.float64).T
    alpha, beta = false_positives / n_out, false_negatives / n_in
    return 1 - alpha - beta, alpha * (1 - alpha) / (n_out - 1) + beta * (1 - beta) / (n_in - 1)


def pooled_accuracy(counts: np.ndarray) -> float:
    """Balanced accuracy over all decisions of all nodes: the one global number."""
    n_out, false_positives, n_in, false_negatives = np.asarray(counts, dtype=np.float64).sum(axis=0)
    return float(1 - 0.5 * (false_positives / n_out + false_negatives / n_in))


def dispersion(counts: np.ndarray) -> float:
    """Variance of the advantage over nodes, over what binomial noise alone would give: 1 when all nodes are alike."""
    value, noise = advantages(counts)
    return float(value.var(ddof=1) / noise.mean())


def true_spread(counts: np.ndarray, factor: float = 1.0) -> float:
    """Standard deviation of the true advantage over nodes: observed variance minus ``factor`` times the binomial one."""
    value, noise = advantages(counts)
    return float(np.sqrt(max(0.0, value.var(ddof=1) - factor * noise.mean())))


def true_quantile(counts: np.ndarray, level: float, factor: float = 1.0) -> float:
    """A quantile over nodes of the true advantage: observed ones drawn towards their mean until their spread is true."""
    value, _ = advantages(counts)
    spread = value.std(ddof=1)
    shrink = true_spread(counts, factor) / spread if spread > 0 else 0.0
    return float(value.mean() + shrink * (np.quantile(value, level) - value.mean()))


def settings_of(nodes: pd.DataFrame) -> list[Setting]:
    """The settings of one graph, each with the noise factor of its untrained control.

    Args:
        nodes: rows of one graph as in :func:`lethe_lib.study.membership.nodes_frame`.

    Raises:
        InputError: a backbone, sampler, edges and ratio without an untrained control on the full graph.
    """
    nodes = nodes.sort_values("node")
    found = [Setting(key, cell[COUNTS].to_numpy()) for key, cell in nodes.groupby(SETTING, observed=True)]
    factors = {}
    for setting in found:
        if not setting.trained and setting.name[SETTING.index("release")] == "full":
            factors[setting.control] = max(1.0, dispersion(setting.counts[setting.usable]))
    missing = {setting.control for setting in found} - set(factors)
    if missing:
        raise InputError(f"no untrained control on the full graph for {sorted(missing)}: run it, with epochs=0")
    return [Setting(s.name, s.counts, factors[s.control]) for s in found]


def spread_table(settings: list[Setting]) -> pd.DataFrame:
    """What the global number says and what it leaves out, one row a setting, over the nodes with enough runs.

    Returns:
        ``setting``, ``nodes``, ``global accuracy``, ``mean``, ``dispersion`` (see :func:`dispersion`), ``control`` (that of
        the untrained control), ``true spread``, and the 5 % and 95 % points of the true advantage.
    """
    rows = []
    for setting in settings:
        counts, factor = setting.counts[setting.usable], setting.factor
        rows.append(
            {
                "setting": setting.text(),
                "nodes": len(counts),
                "global accuracy": pooled_accuracy(counts),
                "mean": float(advantages(counts)[0].mean()),
                "dispersion": dispersion(counts),
                "control": factor,
                "true spread": true_spread(counts, factor),
                "5 % point": true_quantile(counts, 1 - QUANTILE, factor),
                "95 % point": true_quantile(counts, QUANTILE, factor),
            }
        )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Pair:
    """Two settings with nearly equal global accuracy, found on the nodes of even number, measured on those of odd number.

    Attributes:
        upper, lower: the setting with the larger and with the smaller quantile, as found.
        accuracies: global accuracies of upper and lower, over all nodes that both have.
        quantiles: of the true advantage, upper and lower, on the odd nodes.
        gap: first minus second. interval: bootstrap over nodes.
        pairs: how many pairs were equal enough.
    """

    upper: Setting
    lower: Setting
    accuracies: tuple[float, float]
    quantiles: tuple[float, float]
    gap: float
    interval: tuple[float, float]
    pairs: int


def widest_pair(settings: list[Setting], level: float = LEVEL, same_samples: bool = False) -> Pair | None:
    """Among pairs of trained settings of equal global accuracy, the one whose quantiles differ most; None without any.

    Args:
        settings: of one graph. level: probability that the interval misses.
        same_samples: only pairs with the same sampler and ratio, in which every node was in about as many samples, so
            that its test was fitted to as many runs.

    Nodes are resampled as if they were independent; they share their shadow models, so the interval leaves that part of the
    noise out.
    """
    trained = [setting for setting in settings if setting.trained]
    odd = np.arange(len(trained[0].counts)) % 2 == 1 if trained else np.zeros(0, dtype=bool)
    best, equal = None, 0
    for first, second in combinations(trained, 2):
        if same_samples and first.samples != second.samples:
            continue
        shared = first.usable & second.usable
        if min((shared & odd).sum(), (shared & ~odd).sum()) < LEAST_SHARED:
            continue
        accuracies = [pooled_accuracy(s.counts[shared]) for s in (first, second)]
        if abs(accuracies[0] - accuracies[1]) >= EQUAL:
            continue
        equal += 1
        here = [true_quantile(s.counts[shared & ~odd], QUANTILE, s.factor) for s in (first, second)]
        gap = abs(here[0] - here[1])
        if best is None or gap > best[0]:
            order = (first, second) if here[0] >= here[1] else (second, first)
            best = gap, order, tuple(accuracies if order[0] is first else accuracies[::-1])
    if best is None:
        return None
    _, (upper, lower), accuracies = best
    nodes = np.flatnonzero(upper.usable & lower.usable & odd)

    def quantiles(chosen):
        return tuple(true_quantile(s.counts[chosen], QUANTILE, s.factor) for s in (upper, lower))

    generator = numpy_generator(0, "equal accuracy", "resampled nodes")
    drawn = [quantiles(generator.choice(nodes, len(nodes))) for _ in range(RESAMPLES)]
    low, high = np.quantile([a - b for a, b in drawn], [level / 2, 1 - level / 2])
    found = quantiles(nodes)
    return Pair(upper, lower, accuracies, found, found[0] - found[1], (float(low), float(high)), equal)


def published_pairs(level: float = LEVEL) -> pd.DataFrame:
    """The widest pair of every published graph.

    Args:
        level: joint probability that an interval misses.

    Returns:
        ``graph``, ``upper``, ``lower`` (names), ``upper_accuracy``, ``lower_accuracy``, ``upper_quantile``,
        ``lower_quantile``, ``effect``, ``low``, ``high``, ``pairs``; ``same_samples``, the effect among pairs with the same
        sampler and ratio; ``dispersion_low``, ``dispersion_high`` over the trained settings without noise and
        ``control_high`` over the untrained ones. Graphs without a pair have no row.
    """
    graphs = sorted(load_records("membership")["data"].unique())
    rows = []
    for name in graphs:
        settings = settings_of(load_membership(graph=name)[[*SETTING, "node", *COUNTS]])
        pair = widest_pair(settings, level / len(graphs))
        if pair is None:
            continue
        alike = widest_pair(settings, level / len(graphs), same_samples=True)
        plain = [s for s in settings if s.trained and "," not in s.name[-1]]
        spreads = [dispersion(s.counts[s.usable]) for s in plain]
        rows.append(
            {
                "graph": name,
                "upper": pair.upper.text(),
                "lower": pair.lower.text(),
                "upper_accuracy": pair.accuracies[0],
                "lower_accuracy": pair.accuracies[1],
                "upper_quantile": pair.quantiles[0],
                "lower_quantile": pair.quantiles[1],
                "effect": pair.gap,
                "low": pair.interval[0],
                "high": pair.interval[1],
                "pairs": pair.pairs,
                "same_samples": np.nan if alike is None else alike.gap,
                "dispersion_low": min(spreads),
                "dispersion_high": max(spreads),
                "control_high": max(s.factor for s in settings),
            }
        )
    return pd.DataFrame(rows)


def check_hidden_heterogeneity() -> Finding:
    """B20: how far apart the nodes at risk can be in two settings that one global accuracy cannot tell apart."""
    table = published_pairs()
    if table.empty:
        return Finding("not testable here", detail="No two published settings have equal global accuracy.")
    verdict, worst = smallest_cell(table, LEAST_GAP)
    detail = (
        f"Smallest on {graph_title(worst['graph'])}, among {worst['pairs']} pairs: {worst['upper']} against {worst['lower']}, "
        f"global accuracies {as_text(worst['upper_accuracy'])} and {as_text(worst['lower_accuracy'])}, 95 % points "
        f"{as_text(worst['upper_quantile'])} and {as_text(worst['lower_quantile'])}; largest over graphs "
        f"{as_text(table['effect'].max())}. {_same_samples(table)} Within single settings the variance over nodes is "
        f"{as_text(table['dispersion_low'].min())} to {as_text(table['dispersion_high'].max())} times binomial; for the "
        f"untrained control, at most {as_text(table['control_high'].max())} times."
    )
    return Finding(verdict, float(worst["effect"]), (float(worst["low"]), float(worst["high"])), detail)


def _same_samples(table: pd.DataFrame) -> str:
    """What is left when pairs with other samplers or ratios do not count."""
    known = table["same_samples"].dropna()
    if known.empty:
        return "No pair with the same sampler and ratio has equal accuracy."
    return f"With the same sampler and ratio: {as_text(known.min())} to {as_text(known.max())}."


CLAIMS = (
    Claim(
        id="B12",
        sentence="Including one node in the training graph changes the representations of many other nodes.",
        source="yildirim2026bmp",
        estimand="number of other nodes whose rows in the hidden layer of a trained GCN change when one random node and its "
        "edges are taken out of the whole graph, at fixed weights; mean over nodes, smallest over graphs (our reading of "
        "'representations')",
        threshold=f"holds when every graph's interval lies above {LEAST_NODES}, fails when one lies below it (our 'many')",
        chapter=CHAPTER,
        check=check_one_node,
    ),
    Claim(
        id="B20",
        sentence="The global accuracy of a membership attack hides how differently single nodes are exposed.",
        source="yildirim2026bmp",
        estimand=f"among pairs of trained settings on one graph whose balanced accuracies over all nodes differ by less than "
        f"{EQUAL:g}, the largest difference of the 95 % points over nodes of the advantage TPR - FPR, noise removed; pair "
        "chosen on half of the nodes and measured on the other half; smallest over graphs (our reading)",
        threshold=f"holds when every graph's interval lies above {LEAST_GAP:g}, fails when one lies below it (ours)",
        chapter=CHAPTER,
        check=check_hidden_heterogeneity,
    ),
)
