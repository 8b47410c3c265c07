"""The checks of the experimental claims give the right verdict on tables whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from lethe_lib.reporting import claims_bmp_findings as claims

GRAPHS = ("cora", "citeseer", "photo", "pubmed")
NODES = 400


def table(advantage, eps_right=1.0, eps_left=1.0, log_odds=None, epochs=claims.TRAINED, **axes) -> pd.DataFrame:
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
        frames.append(frame.assign(epochs=epochs, **axes))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def give(monkeypatch):
    def give(*tables):
        rows = pd.concat(tables, ignore_index=True)
        monkeypatch.setattr(claims, "DRAWS", 200)
        monkeypatch.setattr(claims, "cells", lambda epochs=claims.TRAINED, **axes: rows[rows["epochs"] == epochs])

    return give


def noise(generator, frame):
    return generator.normal(size=len(frame))


@pytest.mark.parametrize(("slope", "verdict"), [(1.0, "holds"), (-1.0, "holds"), (0.0, "fails"), (0.1, "inconclusive")])
def test_leakage_that_follows_the_prior(slope, verdict, give):
    give(table(noise, eps_right=lambda g, f: slope * f["log_odds"] + noise(g, f)))
    finding = claims.check_sampling_probability()
    if slope == 0.0:
        assert finding.verdict in ("fails", "inconclusive") and abs(finding.effect) < 0.1
    else:
        assert finding.verdict == verdict
    assert finding.by_form["ratio"] == finding.verdict
    assert (finding.by_form["odds"] == "holds") == (slope != -1.0)  # there the odds take away what eps_R has


def test_leakage_that_follows_the_degree(give, monkeypatch):
    give(table(lambda g, f: np.log(f["degree"]) + 0.3 * noise(g, f)))
    assert claims.check_position().verdict == "holds"
    give(table(lambda g, f: np.log(f["degree"]) + 0.3 * noise(g, f)))
    finding = claims.check_position()  # one feature is enough
    assert finding.verdict == "holds" and finding.effect > 0.5 and "Cora degree" in finding.detail
    give(table(noise))
    assert claims.check_position().verdict != "holds"
    part = {"low": [-0.05, 0.5], "high": [0.05, 0.7], "effect": [0.0, 0.6], "feature": ["degree", "core"]}
    frames = [pd.DataFrame(part).assign(graph=name) for name in ("cora", "photo")]
    monkeypatch.setattr(claims, "position_correlations", lambda level: pd.concat(frames, ignore_index=True))
    assert claims.check_position().verdict == "holds"  # a feature that says nothing does not refute another
    frames[0] = frames[0].assign(low=-0.05, high=0.05, effect=0.0)
    finding = claims.check_position()  # with all features of a graph near zero it fails
    assert finding.verdict == "fails" and finding.effect == 0.0
    monkeypatch.undo()
    everywhere = table(lambda g, f: np.log(f["degree"]) + 0.3 * noise(g, f))
    nothing = everywhere["graph"] == "cora"
    everywhere.loc[nothing, "advantage"] = np.random.default_rng(0).normal(size=int(nothing.sum()))
    give(everywhere)
    assert claims.check_position().verdict != "holds"  # but on every graph


def two_samplers(right_of_snowball, log_odds_of_snowball=0.0, untrained=0.0):
    """Trained and untrained models under both samplers; snowball adds to eps_R of the one and of the other."""
    return [
        table(
            0.0,
            lambda g, f, added=added: g.random(len(f)) + added,
            log_odds=log_odds_of_snowball if added_to == "snowball" else 0.0,
            sampler=added_to,
            ratio=0.5,
            epochs=epochs,
        )
        for epochs, extra in ((claims.TRAINED, right_of_snowball), (claims.UNTRAINED, untrained))
        for added_to, added in (("uniform", 0.0), ("snowball", extra))
    ]


def test_snowball_above_uniform_by_form(give):
    give(*two_samplers(1.0))
    assert claims.check_sampler().by_form == {"ratio": "holds", "odds": "holds"}
    give(*two_samplers(-1.0))
    finding = claims.check_sampler()
    assert finding.by_form == {"ratio": "fails", "odds": "fails"} and finding.verdict == "fails"


def test_what_untrained_models_show_of_a_sampler_is_not_counted(give):
    give(*two_samplers(1.0, untrained=0.4))
    finding = claims.check_sampler()
    assert finding.effect == pytest.approx(0.6) and finding.verdict == "holds"
    assert "Cora 1.00 (0.400)" in finding.detail and "priors alone" not in finding.detail
    give(*two_samplers(0.4, untrained=0.4))
    assert claims.check_sampler().verdict == "inconclusive"  # exactly 0
    give(*two_samplers(-0.1, 3.0))  # a little less evidence, but nodes that are nearly always sampled
    finding = claims.check_sampler()
    assert finding.by_form == {"ratio": "fails", "odds": "fails"}
    assert "Cora 2.90 (3.00)" in finding.detail and "In odds form the priors alone decide" in finding.detail


def test_samplers_are_compared_on_nodes_that_both_have(give):
    uniform, snowball, *untrained = two_samplers(1.0)
    rare = uniform["node"] < 100  # hardly ever sampled by the walk, and much exposed when sampled uniformly
    uniform.loc[rare, "corner_right 50%"] = 9.0
    snowball.loc[rare, "n_in"] = claims.LEAST_MODELS - 1
    give(uniform, snowball, *untrained)
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


def against_mp(right, left, log_odds, untrained=(1.0, 1.0)):
    """Trained and untrained models under both samplers at ratio 0.1."""
    return [
        table(0.0, *parameters, log_odds=log_odds, sampler=sampler, ratio=0.1, epochs=epochs)
        for sampler in ("uniform", "snowball")
        for epochs, parameters in ((claims.TRAINED, (right, left)), (claims.UNTRAINED, untrained))
    ]


def share_of_nodes(share, then, otherwise):
    """A column whose first nodes have one value and the others another."""
    return np.where(np.arange(NODES) < share * NODES, then, otherwise)


def test_below_the_two_sided_parameter_by_form(give):
    give(*against_mp(1.0, 1.5, -2.0))  # the left parameter is the larger one everywhere
    finding = claims.check_below_mp()
    assert finding.by_form == {"ratio": "holds", "odds": "holds"} and finding.effect == 1.0
    give(*against_mp(1.5, 1.0, -2.0))  # the right one is, so that eps_R is the two-sided parameter
    finding = claims.check_below_mp()
    assert finding.by_form == {"ratio": "fails", "odds": "holds"} and finding.verdict == "fails"  # as printed
    assert "Ratio form: smallest share 0.00" in finding.detail and "so that the prior alone decides" in finding.detail
    give(*against_mp(1.0, 3.0, 1.0, untrained=(1.0, 1.0)))  # below in spite of the prior
    finding = claims.check_below_mp()
    assert finding.by_form == {"ratio": "holds", "odds": "holds"} and "prior alone" not in finding.detail


def test_nodes_with_enough_models_stand_beside(give):
    few = share_of_nodes(0.99, claims.LEAST_MODELS - 1, 100)
    tables = against_mp(1.0, 1.0, share_of_nodes(0.99, -2.0, 2.0))
    give(*(one.assign(n_in=np.tile(few, len(GRAPHS))) for one in tables))
    finding = claims.check_below_mp()
    assert (
        "Odds form: smallest share 0.99" in finding.detail
        and "only nodes with 30 models on either side 0.00 (fails)" in finding.detail
    )


@pytest.mark.parametrize(
    ("weak", "verdict"),
    [(0.5, "holds"), (0.0, "fails"), (0.01, "fails"), (0.06, "inconclusive"), (1.0, "fails")],
)
def test_too_strict_for_some_and_too_weak_for_others(weak, verdict, give):
    give(*against_mp(1.0, 1.0, share_of_nodes(weak, 2.0, -2.0)))  # MP is too strict for the others
    finding = claims.check_uniform_notions()
    assert finding.verdict == verdict and finding.by_form == {"ratio": "fails", "odds": verdict}
    smaller = min(weak, 1 - weak)
    assert finding.effect == pytest.approx(smaller) and finding.interval[0] <= smaller <= finding.interval[1]
    assert "so that the prior alone decides" in finding.detail


def test_uniform_notions_in_ratio_form_can_be_too_strict(give):
    give(*against_mp(1.0, 3.0, 0.0))
    finding = claims.check_uniform_notions()
    assert "exceeds eps_R by as much for 1.00 to 1.00 (untrained models 0.00 to 0.00)" in finding.detail
    assert "falls short of it for none, by definition" in finding.detail and finding.by_form["ratio"] == "fails"


def test_nodes_with_few_models_are_left_out():
    rows = table(0.0)
    rows.loc[:9, "n_in"] = claims.LEAST_MODELS - 1
    assert len(claims.enough_models(rows)) == len(rows) - 10
