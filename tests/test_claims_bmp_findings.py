"""The checks of the experimental claims give the right verdict on tables whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from lethe_lib.reporting import claims_bmp_findings as claims

GRAPHS = ("cora", "citeseer", "photo", "pubmed")
NODES = 400


def table(advantage, eps_right=1.0, eps_left=1.0, log_odds=None, **axes) -> pd.DataFrame:
    """Rows of four graphs in one setting; functions of (generator, frame) or numbers give the columns."""
    frames = []
    for number, name in enumerate(GRAPHS):
        generator = np.random.default_rng(number)
        frame = pd.DataFrame(
            {
                "graph": name,
                "node": np.arange(NODES),
                "n_in": 100,
                "n_out": 100,
                "degree": generator.integers(1, 50, NODES),
                "core": generator.integers(1, 5, NODES),
                "homophily": generator.random(NODES),
                "log_odds": generator.normal(size=NODES) if log_odds is None else log_odds,
            }
        )
        for column, value in (
            ("advantage", advantage),
            ("corner_right 50%", eps_right),
            ("corner_left 50%", eps_left),
        ):
            frame[column] = value(generator, frame) if callable(value) else value
        frames.append(frame.assign(**axes))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def give(monkeypatch):
    def give(*tables):
        rows = pd.concat(tables, ignore_index=True)
        monkeypatch.setattr(claims, "cells", lambda **axes: rows)

    return give


def noise(generator, frame):
    return generator.normal(size=len(frame))


@pytest.mark.parametrize(("slope", "verdict"), [(1.0, "holds"), (-1.0, "holds"), (0.0, "fails"), (0.1, "inconclusive")])
def test_leakage_that_follows_the_prior(slope, verdict, give):
    give(table(lambda g, f: slope * f["log_odds"] + noise(g, f)))
    finding = claims.check_sampling_probability()
    if slope == 0.0:
        assert finding.verdict in ("fails", "inconclusive") and abs(finding.effect) < 0.1
    else:
        assert finding.verdict == verdict
    assert finding.by_form["odds"] == "holds"  # eps_R is constant, so its odds form is the log odds itself


def test_leakage_that_follows_the_degree(give):
    give(table(lambda g, f: np.log(f["degree"]) + 0.3 * noise(g, f)))
    assert claims.check_position().verdict == "holds"
    give(table(noise))
    assert claims.check_position().verdict != "holds"


def two_samplers(right_of_snowball, log_odds_of_snowball=0.0):
    return (
        table(0.0, lambda g, f: g.random(len(f)), log_odds=0.0, sampler="uniform", ratio=0.5),
        table(
            0.0,
            lambda g, f: g.random(len(f)) + right_of_snowball,
            log_odds=log_odds_of_snowball,
            sampler="snowball",
            ratio=0.5,
        ),
    )


def test_snowball_above_uniform_by_form(give):
    give(*two_samplers(1.0))
    assert claims.check_sampler().by_form == {"ratio": "holds", "odds": "holds"}
    give(*two_samplers(-1.0, 3.0))  # less evidence, but hubs that are nearly always sampled
    finding = claims.check_sampler()
    assert finding.by_form == {"ratio": "fails", "odds": "holds"} and finding.verdict == "fails"


def test_samplers_are_compared_on_nodes_that_both_have(give):
    uniform, snowball = two_samplers(1.0)
    rare = uniform["node"] < 100  # hardly ever sampled by the walk, and much exposed when sampled uniformly
    uniform.loc[rare, "corner_right 50%"] = 9.0
    snowball.loc[rare, "n_in"] = claims.LEAST_MODELS - 1
    give(uniform, snowball)
    found = claims.sampler_contrasts(0.05)
    assert (found["nodes"] == NODES - 100).all() and (found["effect"] - 1 < 0.2).all() and (found["low"] > 0.8).all()


def test_a_ratio_that_leaves_few_nodes_to_both_samplers_is_left_out(give):
    tables = two_samplers(1.0)
    small = [one.assign(ratio=0.1) for one in two_samplers(-5.0)]
    few = (small[0]["graph"] == "photo") & (small[0]["node"] >= claims.LEAST_NODES - 1)
    small[0].loc[few, "n_out"] = claims.LEAST_MODELS - 1
    give(*tables, *small)
    assert set(claims.sampler_contrasts(0.05)["ratio"]) == {0.5}
    assert "Undecided at ratio 0.1" in claims.check_sampler().detail
    small[0].loc[few, "n_out"] = 100
    give(*tables, *small)
    assert set(claims.sampler_contrasts(0.05)["ratio"]) == {0.1, 0.5}


def test_changes_in_words():
    rows = [
        ("cora", 0.2, 0.1, 0.3),
        ("pubmed", 0.01, 0.0, 0.019),
        ("photo", 0.02, 0.01, 0.03),
        ("dblp", -0.2, -0.3, -0.1),
    ]
    found = claims.change_in_words(pd.DataFrame(rows, columns=["graph", "effect", "low", "high"]), 0.02)
    assert found == "beyond 0.02 on Cora 0.200, DBLP -0.200; within 0.02 on PubMed 0.0100; undecided on Photo 0.0200"


@pytest.mark.parametrize(("change", "verdict"), [(0.2, "holds"), (-0.2, "holds"), (0.0, "fails")])
def test_contrasts_on_the_same_nodes(change, verdict, give):
    small = 0.001
    give(
        table(lambda g, f: change + small * noise(g, f), ratio=0.1, release="none"),
        table(lambda g, f: small * noise(g, f), ratio=0.5, release="full"),
    )
    for check in (claims.check_training_size, claims.check_edge_access):
        finding = check()
        assert finding.verdict == verdict
        assert finding.effect == pytest.approx(change, abs=0.001)


def test_one_sided_against_two_sided(give):
    give(*(table(0.0, 1.0, 1.5, log_odds=-2.0, sampler=s, ratio=0.1) for s in ("uniform", "snowball")))
    finding = claims.check_below_mp()
    assert finding.verdict == "holds" and finding.effect == 1.0
    assert claims.check_uniform_notions().verdict == "inconclusive"  # too strict everywhere, too weak nowhere

    def mixed(generator, frame):
        return np.where(np.arange(len(frame)) % 2, 2.0, -2.0)

    tables = [table(0.0, 1.0, 1.0, log_odds=0.0, sampler=s, ratio=0.1) for s in ("uniform", "snowball")]
    for one in tables:
        one["log_odds"] = mixed(None, one)
    give(*tables)
    assert claims.check_below_mp().verdict == "fails"
    assert claims.check_uniform_notions().verdict == "holds"


def test_nodes_with_few_models_are_left_out():
    rows = table(0.0)
    rows.loc[:9, "n_in"] = claims.LEAST_MODELS - 1
    assert len(claims.enough_models(rows)) == len(rows) - 10
