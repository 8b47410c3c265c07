"""Published records: from the store to ``results/``, and from there into a data frame.

``results/<study>.parquet`` has one row per run: the configuration, status and reason, every metric, seconds, memory,
provenance. For studies of unlearning with attacks, ``results/<study>_excess.parquet`` holds the leakage of every method
in excess of Gold, with bootstrap intervals over pairs and seeds; for the study of membership there are the error counts of
every node and their posteriors; for the edge audit, residual memory, the error counts of every edge and their posteriors.
"""

import json
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path

import pandas as pd

from lethe_lib import paths
from lethe_lib.errors import InputError
from lethe_lib.evaluation import excesses_over_gold
from lethe_lib.study import attack_controls, certified_requests, edge_audit, edge_audit_tables, membership
from lethe_lib.study.centrality_rank import CentralityRankConfiguration
from lethe_lib.study.configuration import Configuration, DisplacementConfiguration, UnlearningConfiguration
from lethe_lib.study.cost import CentralityCostConfiguration
from lethe_lib.study.one_node import OneNodeConfiguration
from lethe_lib.study.store import RecordStore
from lethe_lib.study.tables import read_table
from lethe_lib.study.tuning import TuningConfiguration

KINDS = {
    kind.__name__: kind
    for kind in (
        UnlearningConfiguration,
        DisplacementConfiguration,
        CentralityCostConfiguration,
        TuningConfiguration,
        membership.MembershipConfiguration,
        OneNodeConfiguration,
        CentralityRankConfiguration,
        edge_audit.EdgeAuditConfiguration,
        certified_requests.CertifiedRequestConfiguration,
        attack_controls.AttackControlsConfiguration,
    )
}
TABLES_BESIDE = {
    membership.MembershipConfiguration: membership.frames,
    edge_audit.EdgeAuditConfiguration: edge_audit_tables.frames,
    attack_controls.AttackControlsConfiguration: attack_controls.frames,
    certified_requests.CertifiedRequestConfiguration: certified_requests.frames,
}
"""Kind of run -> the further tables of its study, by the last part of their name."""

SETTING = {
    UnlearningConfiguration: ("data", "preset", "backbone", "forget", "fraction", "hops"),
    attack_controls.AttackControlsConfiguration: ("data", "forget", "attack"),
}
"""Kind of run -> the columns that name its rows in the table of excesses over Gold."""

TIMED = (
    "seconds",
    "original_seconds",
    "wall_seconds",
    "products_seconds",
    "peak_memory_mib",
    "gold_seconds",
    "own_seconds",
    "retraining_seconds",
)
"""Metrics that two honest runs of one configuration may differ in."""


def configuration(kind: str, config: dict) -> Configuration:
    """The configuration object that a record was made from."""
    if kind not in KINDS:
        raise InputError(f"unknown kind of record {kind!r}; known: {', '.join(KINDS)}")
    frozen = {name: _freeze(value) for name, value in config.items()}
    return KINDS[kind](**frozen)


def _freeze(value: object) -> object:
    return tuple(_freeze(item) for item in value) if isinstance(value, list) else value


def frame(records: list[dict]) -> pd.DataFrame:
    """One row per record, sorted by configuration: fields, metrics and provenance as columns."""
    rows = []
    for record in records:
        config = {k: v for k, v in record["config"].items() if not isinstance(v, list)}
        provenance = {f"provenance_{k}": v for k, v in record["provenance"].items()}
        row = {**config, "status": record["status"], "reason": record["reason"], **record["metrics"]}
        row |= {name: record[name] for name in ("wall_seconds", "peak_memory_mib", "peak_memory_scope", "key", "kind")}
        rows.append({**row, **provenance, "config_json": json.dumps(record["config"], sort_keys=True)})
    return pd.DataFrame(rows).sort_values("config_json", ignore_index=True)


def load_records(study: str, where: str | Path = "published") -> pd.DataFrame:
    """The records of a study, one row per run.

    Args:
        study: a name of ``STUDIES`` (or ``<study>_excess``).
        where: ``published`` reads ``results/``; a path reads a record store.

    Raises:
        InputError: there are none; the message says how to make them.

    Example:
        >>> from lethe_lib.study import load_records
        >>> "link_teller_auc" in load_records("first_slice").columns
        True
    """
    if where == "published":
        path = paths.results() / f"{study}.parquet"
        if not path.exists():
            raise InputError(f"{path} does not exist: compute it with `python -m lethe_lib run {study} --publish`")
        return read_table(path)
    store = RecordStore(Path(where))
    keys = list(store.keys())
    if not keys:
        raise InputError(f"no record in {where}: compute some with `python -m lethe_lib run {study} --records {where}`")
    return frame([store.read(key) for key in keys])


def publish(
    study: str, configs: list[Configuration], store: RecordStore, kept: Collection[str] = frozenset()
) -> list[Path]:
    """Write the finished records of a study into ``results/``; returns the files written.

    Args:
        study: its name, that of the files.
        configs: all runs of the study. What stands in ``results/`` beside them is dropped.
        store: where the records lie.
        kept: keys of runs (:func:`published_settings`) whose rows stay as ``results/`` has them; the store need not hold them.

    Raises:
        InputError: a record of the study is missing, so that a half study is never published unseen.
    """
    new = [config for config in configs if config.key not in kept]
    missing = sum(not store.finished(config.key) for config in new)
    if missing:
        raise InputError(f"{missing} of {len(configs)} runs of {study} have no record yet: run them first")
    tables = {study: frame([store.read(config.key) for config in new])} if new else {}
    tables |= {f"{study}_{name}": table for name, table in _tables_beside(new, store).items()}
    if kept:
        tables = _beside_the_kept(study, configs, kept, tables)
    excess = f"{study}_excess"
    if excess in tables:
        by = list(SETTING[type(configs[0])])
        tables[excess] = tables[excess].sort_values(by, ignore_index=True, kind="stable")
    folder = paths.results()
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, table in tables.items():
        files.append(folder / f"{name}.parquet")
        table.to_parquet(files[-1], compression="zstd", index=False)
    return files


def _tables_beside(configs: list[Configuration], store: RecordStore) -> dict[str, pd.DataFrame]:
    """The further tables of a study, by the last part of their name."""
    attacked = [config for config in configs if isinstance(config, UnlearningConfiguration) and config.attacks]
    if attacked:
        return {"excess": excess_frame(attacked, store)}
    for kind, tables in TABLES_BESIDE.items():
        if configs and all(isinstance(config, kind) for config in configs):
            return tables(configs, store)
    return {}


def published_settings(study: str, configs: list[Configuration]) -> set[str]:
    """The keys of the runs whose setting stands in ``results/`` as the study has it now: nothing of it has to be done again.

    A setting is what rows of the table of excesses share, so they are made together: with one run more or fewer than are
    published, none of its runs is among the keys. A run that asks several attacks stands in several settings, and one that is
    done again takes all of them with it.

    Raises:
        InputError: nothing is published of the study, or its further tables cannot be put together from parts.
    """
    if any(type(config) not in SETTING for config in configs):
        raise InputError(f"{study} is published as a whole: leave out --extend")
    records = load_records(study)
    published = [
        configuration(*row) for row in zip(records["kind"], map(json.loads, records["config_json"]), strict=True)
    ]
    done, now = _by_setting(published), _by_setting(configs)
    again = {key for setting, keys in now.items() if keys != done.get(setting) for key in keys}
    while touched := set().union(*(keys for keys in now.values() if keys & again)) - again:
        again |= touched
    return {config.key for config in configs} - again


def _by_setting(configs: list[Configuration]) -> dict[tuple, set[str]]:
    """Setting -> keys of its runs."""
    found: dict[tuple, set[str]] = {}
    for config in configs:
        for setting in _settings(config):
            found.setdefault(setting, set()).add(config.key)
    return found


def _settings(config: Configuration) -> set[tuple]:
    """The settings in which a run stands."""
    if isinstance(config, attack_controls.AttackControlsConfiguration):
        return {(config.data, config.forget, name) for name, _, _ in config.asked}
    return {tuple(getattr(config, name) for name in SETTING[type(config)])}


def _beside_the_kept(
    study: str, configs: list[Configuration], kept: Collection[str], new: dict[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """The published rows of the kept runs and settings together with the new rows."""
    excess, names = f"{study}_excess", list(SETTING[type(configs[0])])
    own = load_records(study)
    parts = {study: [own[own["key"].isin(kept)], new.get(study)]}
    if (paths.results() / f"{excess}.parquet").exists():
        old, settings = load_records(excess), set(_by_setting([c for c in configs if c.key in kept]))
        stays = [row in settings for row in old[names].itertuples(index=False, name=None)]
        parts[excess] = [old[stays], new.get(excess)]
    tables = {name: pd.concat(both, ignore_index=True) for name, both in parts.items()}
    tables[study] = tables[study].sort_values("config_json", ignore_index=True)
    return tables


def excess_frame(configs: list[UnlearningConfiguration], store: RecordStore) -> pd.DataFrame:
    """Excess of every method's AUC over Gold, per setting and attack.

    A setting is a configuration without its seeds. Within a seed the excess is the method's AUC minus the mean AUC of
    that seed's Golds on the same pairs; the interval is a bootstrap over pairs and over seeds. Gold itself is measured
    against the other Golds of its seed, which shows the noise of an exact answer.
    """
    axes = [
        f.name for f in fields(UnlearningConfiguration) if f.name not in ("method", "seed", "method_seed", "settings")
    ]
    settings: dict[tuple, list] = {}
    for config in configs:
        settings.setdefault(tuple(getattr(config, axis) for axis in axes), []).append(config)
    rows = []
    for setting, members in settings.items():
        named = dict(zip(axes, setting, strict=True))
        for name in named.pop("attacks"):
            scores = {}
            for config in members:
                if store.read(config.key)["status"] in ("unsupported", "failed", "diverged"):
                    continue
                arrays = store.arrays(config.key)
                scores.setdefault(config.method, {}).setdefault(config.seed, []).append(
                    (arrays[f"{name}_scores"], arrays[f"{name}_labels"])
                )
            for method, found in excesses_over_gold(scores, scores["gold"]).items():
                rows.append({**named, "method": method, "attack": name, **found})
    table = pd.DataFrame(rows)
    return table[[c for c in table.columns if not table[c].map(lambda v: isinstance(v, tuple)).any()]]
