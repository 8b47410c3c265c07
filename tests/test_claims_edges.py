"""The checks behind the claims of chapters 06 and 07, on records that are made up so that the verdict is known."""

import numpy as np
import pandas as pd
import pytest

from lethe_lib.errors import InputError
from lethe_lib.evaluation import mean_interval, ratio_interval
from lethe_lib.reporting import CLAIMS, claims_accuracy_is_blind, claims_walk_centrality

NOISE = (0.99, 1.0, 1.01)


def displacement(single, together, graphs=("photo", "computers", "cora")):
    """Records in which low over high is ``single`` for one edge and ``together`` for the set, up to 1 % of noise."""
    rows = []
    for data in graphs:
        for preset in ("corrected", "published"):
            for seed, noise in enumerate(NOISE):
                for forget in ("low", "high"):
                    rows.append(
                        {
                            "data": data,
                            "preset": preset,
                            "seed": seed,
                            "forget": forget,
                            "single_mean": single * noise if forget == "low" else 1.0,
                            "set_mean": together * noise if forget == "low" else 1.0,
                        }
                    )
    return pd.DataFrame(rows)


def use(monkeypatch, module, records):
    monkeypatch.setattr(module, "load_records", lambda study, where="published": records)


@pytest.mark.parametrize(("ratio", "verdict"), [(5.2, "holds"), (6.0, "holds"), (2.0, "fails"), (6.5, "inconclusive")])
def test_printed_ratio(monkeypatch, ratio, verdict):
    use(monkeypatch, claims_walk_centrality, displacement(ratio, 0.1))
    finding = CLAIMS["L07"].check()
    assert finding.verdict == verdict
    assert finding.effect == pytest.approx(ratio, rel=0.01)
    assert finding.interval[0] < ratio < finding.interval[1]


@pytest.mark.parametrize(
    ("single", "together", "verdict"), [(5.0, 2.0, "holds"), (5.0, 0.1, "fails"), (5.0, 1.0, "inconclusive")]
)
def test_absorption(monkeypatch, single, together, verdict):
    use(monkeypatch, claims_walk_centrality, displacement(single, together))
    assert CLAIMS["L09"].check().verdict == verdict


@pytest.mark.parametrize(("power", "verdict"), [(0.0, "holds"), (-0.2, "holds"), (0.5, "fails")])
def test_cost(monkeypatch, power, verdict):
    rows = [
        {
            "hops": hops,
            "seed": seed,
            "edges": n,
            "pairs": n,
            "products_seconds": n * 1e-8,
            "seconds": n * 1e-8 * n**power * noise,
        }
        for seed, noise in enumerate(NOISE)
        for hops in (2, 4)
        for n in (10**5, 10**6, 10**7)
    ]
    use(monkeypatch, claims_walk_centrality, pd.DataFrame(rows))
    finding = CLAIMS["L06"].check()
    assert finding.verdict == verdict
    assert finding.effect == pytest.approx(power, abs=0.01)


def removal(change, graphs=("cora", "photo")):
    return pd.DataFrame(
        [
            {
                "data": data,
                "forget": forget,
                "fraction": fraction,
                "seed": seed,
                "original_accuracy_test": 0.9,
                "accuracy_test": 0.9 + (change if fraction == 0.5 else 0.0) + 0.001 * (noise - 1),
            }
            for data in graphs
            for forget in ("random", "low")
            for fraction in (0.05, 0.5)
            for seed, noise in enumerate(NOISE)
        ]
    )


@pytest.mark.parametrize(
    ("change", "verdict"), [(-0.01, "holds"), (-0.12, "fails"), (0.12, "fails"), (-0.05, "inconclusive")]
)
def test_accuracy(monkeypatch, change, verdict):
    use(monkeypatch, claims_accuracy_is_blind, removal(change))
    finding = CLAIMS["L02"].check()
    assert finding.verdict == verdict
    assert finding.effect == pytest.approx(change, abs=1e-3)


def test_changes_are_means_over_seeds(monkeypatch):
    use(monkeypatch, claims_accuracy_is_blind, removal(-0.03))
    table = claims_accuracy_is_blind.accuracy_changes().set_index(["data", "forget", "fraction"])
    row = table.loc[("cora", "random", 0.5)]
    assert row["change"] == pytest.approx(-0.03) and row["seeds"] == 3
    assert row["low"] < row["change"] < row["high"]


def test_changes_of_a_small_request_are_means_over_the_golds_of_a_seed(monkeypatch):
    rows = [
        {
            "data": "cora",
            "forget": forget,
            "preset": preset,
            "method": method,
            "seed": seed,
            "original_accuracy_test": 0.9,
            "accuracy_test": 0.9 + (0.0 if forget == "random" else -0.01 + 0.02 * gold) + 0.001 * (noise - 1),
        }
        for forget in ("low", "random")
        for preset in ("corrected", "published")
        for method in ("gold", "original")
        for seed, noise in enumerate(NOISE)
        for gold in ((0, 0.1, 0.2) if method == "gold" and preset == "corrected" else (9,))
    ]
    use(monkeypatch, claims_accuracy_is_blind, pd.DataFrame(rows))
    table = claims_accuracy_is_blind.small_request_changes().set_index("forget")
    assert table["change"].to_dict() == pytest.approx({"low": -0.008, "random": 0.0}, abs=1e-9)
    assert table.loc["low", "high"] < 0 < table.loc["random", "high"]


def test_intervals():
    mean, low, high = mean_interval([1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * np.std([1, 2, 3, 4], ddof=1) / 2  # Student's t with 3 degrees of freedom
    assert (mean, low, high) == pytest.approx((2.5, 2.5 - half, 2.5 + half), abs=1e-5)
    assert ratio_interval([2.0, 8.0], [1.0, 2.0])[0] == pytest.approx(np.sqrt(8))
    with pytest.raises(InputError, match="at least two"):
        mean_interval([1.0])
    with pytest.raises(InputError, match="positive"):
        ratio_interval([1.0, -1.0], [1.0, 1.0])


def test_intervals_cover_at_the_nominal_rate():
    generator = np.random.default_rng(0)
    hits = sum(low <= 0.0 <= high for _, low, high in (mean_interval(generator.normal(size=3)) for _ in range(2000)))
    assert abs(hits / 2000 - 0.95) < 0.02
