"""Inclusion priors of every sampler on real graphs, and how well structure alone tells who was sampled.

    for every graph, sampler and ratio:
        draws 0 .. T/2 and T/2 .. T: in how many was each node?                          -> priors.parquet
        tenths of the nodes chosen by the first half, compared on the second half        -> draws.parquet
        further draws: AUC of degree, of a cross-fitted classifier on structure, and of the estimated prior, for
        telling sampled nodes from the others before anything is trained                 -> distinguishability.parquet

Counts are integers that depend on the seed only, so a recomputation must give exactly the same files' content.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lethe_lib import paths
from lethe_lib.data import adjacency, load_graph
from lethe_lib.errors import DataNotFound, InputError
from lethe_lib.registry import Registry
from lethe_lib.sampling import (
    SAMPLERS,
    decile_contrast,
    draw_counts,
    draw_memberships,
    inclusion_priors,
    priors_from_counts,
    sampling_graph,
)
from lethe_lib.seeding import derive_seed
from lethe_lib.study.provenance import environment
from lethe_lib.study.tables import read_table

GRAPHS = ("cora", "citeseer", "pubmed", "photo")
RATIOS = (0.1, 0.5)
DRAWS = 10_000
CHALLENGES = 30  # further draws on which membership is to be told from structure
FOLDS = 5
SEED = 0
TABLES = ("nodes", "priors", "draws", "distinguishability")


def structure_of(data) -> pd.DataFrame:
    """What is known of each node from the graph alone.

    Returns:
        One row a node: ``degree``, ``core`` (core number), ``component`` (size of the connected component),
        ``neighbour_degree`` (mean degree of the neighbours, 0 without any) and ``label``.
    """
    matrix = adjacency(data)
    degree = np.asarray(matrix.sum(axis=1)).ravel()
    parts, part = connected_components(matrix, directed=False)
    graph = nx.from_scipy_sparse_array(matrix)
    return pd.DataFrame(
        {
            "degree": degree.astype(np.int32),
            "core": np.array([core for _, core in sorted(nx.core_number(graph).items())], dtype=np.int32),
            "component": np.bincount(part, minlength=parts)[part].astype(np.int32),
            "neighbour_degree": np.divide(matrix @ degree, degree, out=np.zeros_like(degree), where=degree > 0).astype(
                np.float32
            ),
            "label": data.y.numpy().astype(np.int16),
        }
    )


def cross_fitted_auc(features: np.ndarray, member: np.ndarray, seed: int) -> float:
    """AUC of a logistic regression that tells members from non-members, on nodes that it was not fitted to.

    Args:
        features: (n, f) float.
        member: (n,) bool, with at least ``FOLDS`` nodes on either side.
        seed: of the folds.

    Returns:
        The mean over folds, in [0, 1]; 0.5 in expectation when membership does not depend on the features. Scores of
        different folds are never compared, since that biases the AUC below 0.5.
    """
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=derive_seed(seed, "folds") % 2**32)
    aucs = []
    for fitted, held_out in folds.split(features, member):
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(features[fitted], member[fitted])
        aucs.append(roc_auc_score(member[held_out], model.decision_function(features[held_out])))
    return float(np.mean(aucs))


def distinguishability(nodes: pd.DataFrame, memberships: np.ndarray, prior: np.ndarray, seed: int) -> pd.DataFrame:
    """How well sampled nodes are told from the others before any training, on each of several draws.

    Args:
        nodes: as returned by :func:`structure_of`.
        memberships: (draws, n) bool.
        prior: (n,) inclusion priors estimated on other draws.
        seed: of the folds.

    Returns:
        One row a draw: the signed AUC of ``degree``, of a cross-fitted classifier on ``structure`` (log degree, log
        core number, log component size, log mean neighbour degree), and of ``prior``; higher scores mean member.
    """
    features = np.log1p(nodes[["degree", "core", "component", "neighbour_degree"]].to_numpy(dtype=np.float64))
    rows = [
        {
            "challenge": challenge,
            "degree": roc_auc_score(member, nodes["degree"]),
            "structure": cross_fitted_auc(features, member, seed + challenge),
            "prior": roc_auc_score(member, prior),
        }
        for challenge, member in enumerate(memberships)
    ]
    return pd.DataFrame(rows).astype({"challenge": np.int16, "degree": "f4", "structure": "f4", "prior": "f4"})


def study_cell(data, nodes: pd.DataFrame, sampler: str, ratio: float, draws: int, seed: int, threads: int) -> dict:
    """The three tables of one graph, sampler and ratio: ``priors``, ``draws`` and ``distinguishability``."""
    graph, half = sampling_graph(data), draws // 2
    first = draw_counts(sampler, graph, ratio, half, seed, threads=threads)
    memberships = draw_memberships(sampler, graph, ratio, half, seed, first=half)
    second = memberships.sum(axis=0)
    contrast = decile_contrast(first.counts, memberships)
    del memberships
    challenges = draw_memberships(sampler, graph, ratio, CHALLENGES, seed, first=draws)
    prior = priors_from_counts(first.counts + second, 2 * half).prior
    exact_prior = exact_log_odds = np.full(len(nodes), np.nan)
    if SAMPLERS[sampler].exact_priors is not None:
        known = inclusion_priors(sampler, graph, ratio)
        exact_prior, exact_log_odds = known.prior, known.log_odds
    key = {"sampler": sampler, "ratio": ratio}
    return {
        "priors": pd.DataFrame(
            {
                **key,
                "node": np.arange(len(nodes), dtype=np.int32),
                "first_half": first.counts.astype(np.uint16),
                "second_half": second.astype(np.uint16),
                "exact_prior": exact_prior.astype(np.float32),
                "exact_log_odds": exact_log_odds.astype(np.float32),
            }
        ),
        "draws": pd.DataFrame(
            [
                {
                    **key,
                    "target": first.target,
                    "draws": 2 * half,
                    "mean_size": first.sizes.mean(),
                    "starved": first.starved.mean(),
                    "mean_starts": first.starts.mean(),
                    "top_tenth": contrast.top,
                    "bottom_tenth": contrast.bottom,
                    "log_ratio": contrast.log_ratio,
                    "log_ratio_error": contrast.standard_error,
                }
            ]
        ),
        "distinguishability": distinguishability(nodes, challenges, prior, seed).assign(**key),
    }


def study_graph(
    name: str, folder: Path, draws: int, seed: int, threads: int, samplers: Iterable[str], ratios: Iterable[float],
    progress: Callable[[str], None] = print,
) -> None:  # fmt: skip
    """Compute all tables of one graph and write them to ``folder / name``, with their provenance."""
    data = load_graph(name)
    nodes = structure_of(data)
    tables: dict[str, list[pd.DataFrame]] = {"priors": [], "draws": [], "distinguishability": []}
    for ratio in ratios:
        for sampler in samplers:
            progress(f"{name}: {sampler}, ratio {ratio}")
            for table, frame in study_cell(data, nodes, sampler, ratio, draws, seed, threads).items():
                tables[table].append(frame)
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    _write_table(nodes, target / "nodes.parquet")
    for table, frames in tables.items():
        frame = pd.concat(frames, ignore_index=True)
        _write_table(frame.astype({"sampler": "category", "ratio": np.float64}), target / f"{table}.parquet")
    provenance = {
        **environment(),
        "numba": version("numba"),
        "graph": name,
        "data_hash": data.content_hash,
        "draws": draws,
        "challenges": CHALLENGES,
        "seed": seed,
        "ratios": list(ratios),
        "settings": {sampler: asdict(SAMPLERS[sampler].settings()) for sampler in samplers},
    }
    _write_atomically(target / "provenance.json", lambda path: path.write_text(json.dumps(provenance, indent=2) + "\n"))


def load_sampling_priors(where: str | Path = "published", graphs: Iterable[str] | None = None) -> pd.DataFrame:
    """The priors of every node under every sampler and ratio, with their uncertainty.

    Args:
        where: "published", or a folder that ``python -m lethe_lib run sampling_priors`` wrote.
        graphs: names; all that the folder has by default.

    Returns:
        One row a (graph, sampler, ratio, node): the counts of both halves and ``draws``; ``prior``, ``log_odds``,
        ``standard_error`` (of the log-odds), ``lower`` and ``upper`` (95 %, of the prior) from all draws; the
        ``exact_prior`` and ``exact_log_odds`` where they are known; and the columns of :func:`structure_of`.

    Raises:
        DataNotFound: no such results.
    """
    frames = []
    for name, folder in _folders(where, graphs):
        draws = json.loads((folder / "provenance.json").read_text())["draws"] // 2 * 2
        frame = read_table(folder / "priors.parquet")
        counts = frame["first_half"].to_numpy(np.int64) + frame["second_half"].to_numpy(np.int64)
        # The quantiles behind the intervals are slow, and there are far fewer distinct counts than rows.
        distinct, position = np.unique(counts, return_inverse=True)
        found = priors_from_counts(distinct, draws)
        frame = frame.assign(
            graph=name,
            draws=draws,
            prior=found.prior[position],
            log_odds=found.log_odds[position],
            standard_error=found.standard_error[position],
            lower=found.interval[0][position],
            upper=found.interval[1][position],
        )
        nodes = read_table(folder / "nodes.parquet")
        frames.append(frame.join(nodes, on="node"))
    return pd.concat(frames, ignore_index=True)


def load_table(table: str, where: str | Path = "published", graphs: Iterable[str] | None = None) -> pd.DataFrame:
    """One of the stored tables of all graphs, with a column ``graph``.

    Args:
        table: "nodes", "draws" (one row a sampler and ratio) or "distinguishability" (one row a draw).
        where: "published" or a folder.
        graphs: names; all that the folder has by default.

    Raises:
        InputError: an unknown table.
        DataNotFound: no such results.
    """
    if table not in TABLES:
        raise InputError(f"unknown table {table!r}: choose one of {', '.join(TABLES)}")
    frames = [read_table(folder / f"{table}.parquet").assign(graph=name) for name, folder in _folders(where, graphs)]
    return pd.concat(frames, ignore_index=True)


def published_cells() -> list[str]:
    """What of the published tables can be recomputed on its own: graph, sampler and ratio."""
    draws = load_table("draws")
    return [f"{row.graph} {row.sampler} {row.ratio:g}" for row in draws.itertuples()]


def recomputed(cell: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Published rows and fresh ones, in the same order, of every table of one of the ``published_cells``."""
    name, sampler, ratio = cell.split()
    data, folder = load_graph(name), paths.results() / "sampling_priors" / name
    provenance = json.loads((folder / "provenance.json").read_text())
    nodes = structure_of(data)
    yield read_table(folder / "nodes.parquet"), nodes
    found = study_cell(data, nodes, sampler, float(ratio), provenance["draws"], provenance["seed"], 1)
    for table, fresh in found.items():
        published = read_table(folder / f"{table}.parquet")
        yield published[(published["sampler"] == sampler) & (published["ratio"] == float(ratio))], fresh


def _folders(where, graphs):
    folder = paths.results() / "sampling_priors" if where == "published" else Path(where)
    found = [name for name in GRAPHS if (folder / name / "provenance.json").exists()]
    wanted = found if graphs is None else list(graphs)
    missing = sorted(set(wanted) - set(found))
    if missing or not wanted:
        raise DataNotFound(
            f"no sampling priors of {', '.join(missing) or 'any graph'} in {folder}: "
            "compute them with `python -m lethe_lib run sampling_priors --publish`"
        )
    return [(name, folder / name) for name in wanted]


def _write_table(frame: pd.DataFrame, path: Path) -> None:
    _write_atomically(path, lambda unfinished: frame.to_parquet(unfinished, compression="zstd", index=False))


def _write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this study."""
    parser.add_argument("--only", nargs="+", default=list(GRAPHS), metavar="GRAPH", help="graphs (default: all four)")
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws per sampler and ratio (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="of the simulation (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=None, help="folder (default: results/sampling_priors)")


def main(arguments: argparse.Namespace) -> int:
    """Compute the study and write its tables."""
    known = Registry("graph of this study", dict.fromkeys(GRAPHS))
    for name in arguments.only:
        known[name]
    if not 2 <= arguments.draws <= 2 * np.iinfo(np.uint16).max:
        raise InputError(f"--draws must lie between 2 and {2 * np.iinfo(np.uint16).max}, not {arguments.draws}")
    folder = arguments.out or paths.results() / "sampling_priors"
    for name in arguments.only:
        study_graph(name, folder, arguments.draws, arguments.seed, arguments.threads, tuple(SAMPLERS), RATIOS)
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Inclusion priors of every sampler on real graphs.")
    add_arguments(options)
    raise SystemExit(main(options.parse_args()))
