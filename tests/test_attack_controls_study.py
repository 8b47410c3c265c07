"""The study of attacks beside their controls, what the book shows of it, and the claims that rest on it."""

import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from lethe_lib.reporting import VERDICTS, attack_controls, claims_attacks
from lethe_lib.study import records as study_records
from lethe_lib.study.attack_controls import (
    EDGES,
    MAIN,
    SEEDS,
    TEMPORAL,
    TREND,
    AttackControlsConfiguration,
    frames,
    is_blind,
    question,
)
from lethe_lib.study.attack_controls import attack_controls as study
from lethe_lib.study.records import configuration, load_records, publish
from lethe_lib.study.runner import run, run_all
from lethe_lib.study.store import RecordStore

ASKED = tuple(
    entry
    for entry in MAIN
    if entry[1] in ("retained", "original") and entry[0] in ("link_teller", "link_stealing", "edge_toggle", "e_umia")
) + (*EDGES, *TREND)
TRAINING = (("epochs", 40), ("hidden", 16))


@pytest.fixture(scope="module")
def configs():
    methods = [("gold", None), ("gold", 7), ("utu", None), ("untrained", None), ("memoriser", None)]
    return [
        AttackControlsConfiguration(
            "synthetic-tiny", 0, method=method, method_seed=other, fraction=0.1, asked=ASKED, training=TRAINING
        )
        for method, other in methods
    ]


@pytest.fixture(scope="module")
def store(configs, tmp_path_factory):
    kept = RecordStore(tmp_path_factory.mktemp("records"))
    run_all(configs, kept, progress=lambda line: None)
    return kept


def test_a_record_answers_every_question_and_is_the_same_again(configs, store):
    record = store.read(configs[0].key)
    assert record["status"] == "ok"
    assert configuration(record["kind"], record["config"]).key == configs[0].key
    arrays = store.arrays(configs[0].key)
    for name, query, negatives in ASKED:
        tag = question(name, query, negatives)
        assert 0.0 <= record["metrics"][f"{tag}_auc"] <= 1.0
        assert 0.0 <= record["metrics"][f"{tag}_tpr"] <= 1.0
        assert arrays[f"{tag}_scores"].shape == arrays[f"{tag}_labels"].shape
    again = run(configs[0])
    assert record["metrics"].keys() == again["metrics"].keys()
    for name, value in record["metrics"].items():
        if name != "seconds":
            assert again["metrics"][name] == pytest.approx(value, abs=0, nan_ok=True)


def test_hop_numbers_of_a_record(configs, store):
    numbers = store.read(configs[0].key)["metrics"]
    for negatives in ("uniform", "matched"):
        tag = f"link_teller.retained.{negatives}"
        assert sum(numbers[f"{tag}_forgotten_{s}"] for s in ("2", "3", ">3")) == numbers[f"{tag}_positives"]
        assert numbers[f"{tag}_auc_>3"] == 0.5
    assert numbers["link_teller.retained.matched_auc_near"] == 0.5
    near = numbers["link_teller.retained.uniform_forgotten_2"] - numbers["link_teller.retained.uniform_negatives_2"]
    assert numbers["link_teller.retained.uniform_auc_near"] == pytest.approx(
        0.5 + near / numbers["link_teller.retained.uniform_positives"] / 2
    )
    assert "link_teller.original.uniform_auc_near" not in numbers


def test_the_memoriser_labels_attacks(configs, store):
    table = frames(configs, store)["excess"]
    assert len(table) == 4 * len(ASKED)
    own = table[(table["method"] == "memoriser") & (table["query"] == "retained")].set_index(["attack", "negatives"])
    for negatives in ("uniform", "matched"):
        assert own.loc[("link_teller", negatives), "blind"]
        assert not own.loc[("edge_toggle", negatives), "blind"]
        assert own.loc[("edge_toggle", negatives), "excess"] > 0.3
    gold = table[(table["method"] == "gold") & (table["query"] == "retained")]
    assert (gold["excess"] == 0).all()
    full = table[(table["method"] == "utu") & (table["query"] == "original")]
    assert full["excess"].notna().all()
    assert full["excess_low"].isna().all()
    assert [is_blind(low) for low in (-0.1, 0.0, 0.1, float("nan"))] == [True, True, False, True]


def test_what_the_chapter_shows(configs, store, tmp_path, monkeypatch):
    monkeypatch.setenv("LETHE_RESULTS", str(tmp_path))
    publish("attack_controls", configs, store)
    assert len(load_records("attack_controls")) == len(configs)
    structure = attack_controls.structure_table().set_index(["attack", "negatives"])
    assert structure.loc[("LinkTeller", "uniform"), "reads"] == "the graph, blind"
    assert structure.loc[("Edge toggle", "matched"), "blind"] == "0 of 1"
    assert "LinkTeller (uniform)" in attack_controls.blind_attacks()
    assert "LinkTeller (matched)" in attack_controls.graph_readers()
    models = attack_controls.setting_table("synthetic-tiny", "low", "uniform")["model"].tolist()
    assert models[:4] == ["Original, full graph", "Original's weights (UtU)", "Gold", "Untrained"]
    memory = attack_controls.memory_table("memoriser").set_index("attack")
    counts = ["settings", "above", "below", "settings, one seed", "above, one seed", "below, one seed"]
    assert memory.loc["Edge toggle", counts].tolist() == [0, 0, 0, 1, 1, 0]
    monkeypatch.setattr(attack_controls, "WIDER", ("synthetic-tiny",))
    every = attack_controls.every_method().set_index(["method", "attack"])
    assert every.loc[("memoriser", "edge_toggle"), ["settings", "above", "below"]].tolist() == [1, 1, 0]
    excess = attack_controls.controls_excess().set_index(["method", "attack", "query", "negatives"])
    assert (
        every.loc[("utu", "link_stealing"), "excess"]
        == excess.loc[("utu", "link_stealing", "retained", "matched"), "excess"]
    )
    asked = excess.xs("retained", level="query").sort_index()
    for (method, attack), row in every.iterrows():  # one setting: its interval decides
        one = asked.loc[(method, attack)].drop(index="uniform", errors="ignore").iloc[0]
        assert (row["above"], row["below"]) == (one["excess_low"] > 0, one["excess_high"] < 0) and not one["blind"]
    assert "link_teller" not in every.index.get_level_values("attack")  # blind against matched negatives
    assert every.index[0][0] == "utu" and "gold" not in every.index.get_level_values("method")
    kept = attack_controls.kept_edges_table().set_index("model")
    assert kept.index.tolist() == ["Original's weights (UtU)", "Gold", "Untrained", "Memoriser"]
    assert kept.loc["Memoriser", "kept edges: AUC"] > kept.loc["Gold", "kept edges: AUC"]
    assert kept.loc["Gold", "matched: above, below"] == "0, 0 of 1"
    trend = attack_controls.trend_table().set_index("model")
    assert trend.index.tolist()[:3] == ["Original, full graph", "Original's weights (UtU)", "Gold"]
    for title, method, query in (("Gold", "gold", "retained"), ("Original, full graph", "utu", "original")):
        asked_there = excess.loc[(method, "trend_attack", query, "matched")]
        assert trend.loc[title, "matched: forgotten"] == pytest.approx(asked_there["auc"])
        assert trend.loc[title, "matched: 1 %"] == pytest.approx(asked_there["tpr"])
    flags = excess.loc[("gold", "trend_attack", "retained")]["blind"].astype(bool)
    words = attack_controls.blind_settings("trend_attack")
    assert all(f"{kind} {int(flags[kind])} of 1" in words for kind in ("uniform", "matched"))
    assert attack_controls.blind_settings("link_stealing_supervised") == "not asked"
    rates = attack_controls.rate_table("matched").set_index("model")
    assert rates.loc["Memoriser", "Edge toggle"] > rates.loc["Gold", "Edge toggle"]
    strata = attack_controls.strata_table().iloc[0]
    assert strata["negatives, 2 hops"] < attack_controls.FEWEST_NEGATIVES and np.isnan(strata["weights, 2 hops"])
    assert strata["negatives, smallest class"] <= strata["negatives, 2 hops"] and np.isnan(strata["stratified"])
    monkeypatch.setattr(attack_controls, "FEWEST_NEGATIVES", 1)
    strata = attack_controls.strata_table().iloc[0]
    assert strata["AUC beyond"] == 0.5 and 0 <= strata["weights, 2 hops"] <= 1


def test_a_run_that_is_done_again_takes_all_its_settings_with_it(configs, monkeypatch):
    """Its rows stand beside those of other runs, so none of these may keep the old rows."""
    both, second = configs[0], replace(configs[1], asked=(("link_teller", "none", "uniform"),))
    rows = [{"kind": type(c).__name__, "config_json": json.dumps(asdict(c))} for c in (both, second)]
    monkeypatch.setattr(study_records, "load_records", lambda study: pd.DataFrame(rows))
    keys = {both.key, second.key}
    assert study_records.published_settings("attack_controls", [both, second]) == keys
    assert study_records.published_settings("attack_controls", [both, second, replace(both, forget="high")]) == keys
    first = replace(
        second, asked=(("e_umia", "none", ""),)
    )  # shares a setting with the one, and that one with the other
    assert study_records.published_settings("attack_controls", [both, second, first]) == set()


def test_the_study_is_a_list_of_distinct_runs_with_controls():
    configs = study()
    assert len({config.key for config in configs}) == len(configs)
    cells = {}
    for config in configs:
        cells.setdefault((config.data, config.seed, config.forget, config.asked), []).append(config.method)
    for (*_, forget, asked), methods in cells.items():
        wanted = {"utu", "untrained"}
        if asked != TEMPORAL and forget != "community_louvain":
            wanted |= {"memoriser"}
            assert methods.count("gold") == 2
        assert wanted <= set(methods)
    assert {config.data for config in study(["cora"])} == {"cora"}
    assert set(SEEDS) <= {config.data for config in configs}


def test_hanley_and_mcneil_against_draws():
    generator = np.random.default_rng(0)
    scores = generator.exponential(size=(4000, 60))  # exponential scores are what the formula is exact for
    scores[:, :30] *= 2.0
    areas = (scores[:, :30, None] > scores[:, None, 30:]).mean(axis=(1, 2))
    assert areas.std() == pytest.approx(attack_controls.hanley_mcneil(2 / 3, 30, 30), rel=0.05)


def records_with(**areas: float) -> pd.DataFrame:
    tag = "link_teller.retained.uniform"
    rows = [
        {"data": "dblp", "method": "utu", "forget": forget, f"{tag}_auc": area, f"{tag}_positives": 1000.0}
        for forget, area in areas.items()
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("community", "verdict"), [(0.65, "holds"), (0.50, "fails"), (0.90, "fails"), (0.575, "inconclusive")]
)
def test_a_community_set_is_between_or_not(monkeypatch, community, verdict):
    monkeypatch.setattr(
        attack_controls, "controls_records", lambda: records_with(low=0.75, high=0.57, community=community)
    )
    assert claims_attacks.check_community_between().verdict == verdict


def test_seeds_of_the_same_sets_do_not_shorten_the_interval(monkeypatch):
    once = records_with(low=0.75, high=0.57, community=0.65)
    found = []
    for records in (once, pd.concat([once] * 3)):
        monkeypatch.setattr(attack_controls, "controls_records", lambda records=records: records)
        found.append(attack_controls.community_margins().iloc[0][["margin", "low", "high"]].tolist())
    assert found[0] == pytest.approx(found[1])


def test_verdicts_follow_the_stated_thresholds(monkeypatch):
    cells = pd.DataFrame(
        {"accuracy": [0.50, 0.51], "low": [0.49, 0.49], "high": [0.51, 0.53], "area": [0.5, 0.5], "broken": False}
    ).assign(method=["gold", "untrained"], data="photo", forget="low")
    monkeypatch.setattr(claims_attacks, "e_umia_cells", lambda: cells)
    assert claims_attacks.check_e_umia_band().verdict == "holds"
    cells.loc[0, ["accuracy", "low", "high"]] = [0.60, 0.58, 0.62]
    assert claims_attacks.check_e_umia_band().verdict == "fails"
    cells.loc[0, "low"] = 0.52
    assert claims_attacks.check_e_umia_band().verdict == "inconclusive"

    excess = pd.DataFrame(
        {"data": "photo", "method": ["a", "b"], "auc": 0.9, "gold_auc": 0.8, "excess": [0.1, 0.1]}
    ).assign(excess_low=[0.05, 0.05], excess_high=[0.15, 0.15])
    monkeypatch.setattr(claims_attacks, "low_excess", lambda: excess)
    assert claims_attacks.check_nothing_resists().verdict == "holds"
    excess.loc[1, ["excess", "excess_low", "excess_high"]] = [0.001, -0.01, 0.01]
    assert claims_attacks.check_nothing_resists().verdict == "fails"
    excess.loc[1, ["excess", "excess_low", "excess_high"]] = [0.03, -0.01, 0.07]
    assert claims_attacks.check_nothing_resists().verdict == "inconclusive"
    small = excess.iloc[[1]].assign(data="cora", excess=0.01, excess_low=0.005, excess_high=0.015)
    both = pd.concat([excess, small], ignore_index=True)  # large on one graph, above zero on another: on none both
    monkeypatch.setattr(claims_attacks, "low_excess", lambda: both)
    assert claims_attacks.check_nothing_resists().verdict == "inconclusive"

    matched = excess.assign(blind=True)
    monkeypatch.setattr(claims_attacks, "matched_influence", lambda: matched)
    assert claims_attacks.check_influence_shows_memory().verdict == "inconclusive"
    matched["excess_low"], matched["excess_high"] = -0.01, 0.01
    assert claims_attacks.check_influence_shows_memory().verdict == "fails"


@pytest.mark.parametrize(
    ("area", "half", "verdict"), [(0.51, 0.05, "holds"), (0.6, 0.05, "fails"), (0.6, 0.09, "inconclusive")]
)
def test_gold_has_one_half_or_not(monkeypatch, area, half, verdict):
    cells = pd.DataFrame({"attack": ["link_teller", "e_umia"], "data": "photo", "forget": "low", "auc": [area, 0.5]})
    cells = cells.assign(low=cells["auc"] - half, high=cells["auc"] + half)
    matched = {"attack": "link_teller", "method": "gold", "query": "retained", "negatives": "matched", "auc": 0.5}
    monkeypatch.setattr(claims_attacks, "gold_areas", lambda: cells)
    monkeypatch.setattr(claims_attacks, "controls_excess", lambda: pd.DataFrame([matched]))
    finding = claims_attacks.check_perfect_is_half()
    assert finding.verdict == verdict and finding.effect == area
    assert finding.interval == pytest.approx((area - half, area + half))


@pytest.mark.parametrize("claim", claims_attacks.CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_has_a_finding_in_the_published_records(claim):
    finding = claim.check()
    assert finding.verdict in VERDICTS
    assert finding.detail.endswith(".")
    assert (claim.id == "L14") == (finding.verdict == "not testable here")
