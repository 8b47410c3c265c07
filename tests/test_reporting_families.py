"""What chapters 08 to 10 share: runs followed step by step, tables of records, and the checks behind L03, L23 and L24."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from torch.optim import optimizer as torch_optimizer

from lethe_lib.errors import InputError
from lethe_lib.evaluation import mean_interval, posterior_distance
from lethe_lib.models import predict
from lethe_lib.reporting import (
    claims_distillation_family,
    claims_gradient_family,
    claims_parameter_family,
    families,
)
from lethe_lib.reporting.claims_gradient_family import accuracy_kept
from lethe_lib.reporting.families import (
    accuracy_cells,
    accuracy_figure,
    backbones_table,
    chosen_table,
    collapsed_cells,
    excess_figure,
    family_records,
    mismatch_sentences,
    outcomes,
    prediction_interval,
    printed_rows,
    printed_table,
    search_figure,
    seeds_interval,
)
from lethe_lib.reporting.followed_runs import MEASURES, follow, live_case, path_figure
from lethe_lib.study import load_records
from lethe_lib.study.benchmark import with_outcomes
from lethe_lib.study.studies import GENERIC
from lethe_lib.study.tuning import chosen_settings
from lethe_lib.unlearning import UNLEARNERS, unlearn

NOISE = (-1e-4, 0.0, 1e-4)
CLAIMS = {
    claim.id: claim
    for module in (claims_gradient_family, claims_distillation_family, claims_parameter_family)
    for claim in module.CLAIMS
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


# Runs followed step by step


@pytest.fixture(scope="module")
def case():
    return live_case("synthetic-tiny", "gcn", 0, "high", 0.05)


def released(case, method, **settings):
    return unlearn(method, case.original, case.data, case.pairs, 0, **settings).model


@pytest.mark.parametrize(("method", "count"), [("fine_tuning", "steps"), ("npo", "steps"), ("salun", "epochs")])
def test_a_path_holds_what_shorter_runs_release(case, method, count):
    """SalUn puts frozen weights back after each step, so a look between step and restoration would differ."""
    path = follow(case, method, **{count: 4}).path
    assert path["step"].tolist() == [0, 1, 2, 3, 4]
    for number in range(5):
        assert path.drop(columns="step").iloc[number].to_dict() == case.measure(
            released(case, method, **{count: number})
        )


def test_a_path_starts_at_the_original_and_ends_at_the_released_model(case):
    for method in ("scrub", "adv_neg_grad_matched", "unsir", "fisher", "ssd"):
        run = follow(case, method)
        assert run.path.drop(columns="step").iloc[0].to_dict() == case.measure(case.original)
        assert run.path.drop(columns="step").iloc[-1].to_dict() == case.measure(run.result.model)


def test_steps_of_the_weights_are_counted_and_those_of_the_noise_are_not(case):
    run = follow(case, "unsir", noise_steps=3, impair_steps=2, repair_steps=4)
    assert len(run.path) - 1 == 2 + 4
    assert len(follow(case, "scrub", epochs=4, max_epochs=2).path) - 1 == 4 + 2
    assert len(follow(case, "fisher").path) == 2


def test_a_run_that_diverges_ends_at_its_last_finite_weights(case):
    run = follow(case, "neg_grad", steps=5, optimiser="sgd", learning_rate=1e38, clip=None, bound="none")
    assert run.result.status == "diverged"
    assert np.isfinite(run.path["weight_change"]).all()


def test_nothing_listens_to_optimisers_after_a_run(case):
    with pytest.raises(InputError, match="no setting"):
        follow(case, "fine_tuning", no_such_setting=1)
    follow(case, "fine_tuning", steps=1)
    assert len(torch_optimizer._global_optimizer_pre_hooks) == 0


def test_distances_are_measured_from_the_first_gold(case):
    assert len(case.golds) == 3
    first = case.measure(case.golds[0])
    assert first["distance"] == 0.0 and first["distance_other"] == pytest.approx(case.floor)
    logits = [predict(gold, case.request.retained) for gold in case.golds]
    by_hand = np.mean([float(posterior_distance(logits[0], other).mean()) for other in logits[1:]])
    assert case.floor == pytest.approx(by_hand) and case.floor > 0
    assert case.gold_levels["distance"].tolist()[0] == 0.0


def test_losses_are_means_over_the_nodes_they_name(case):
    found = case.measure(case.original)
    log_p = torch.log_softmax(predict(case.original, case.data), dim=1)
    train = set(case.request.split.train.tolist())
    ends = sorted(set(case.pairs.flatten().tolist()) & train)
    by_hand = -np.mean([float(log_p[v, case.data.y[v]]) for v in ends])
    assert found["forget_loss"] == pytest.approx(by_hand, rel=1e-5)
    assert found["weight_change"] == 0.0


def test_the_path_figure_draws_every_run_in_every_panel(case):
    runs = {"one": follow(case, "fine_tuning", steps=2), "two": follow(case, "ssd")}
    axes = path_figure(runs, case).axes
    assert [ax.get_title() for ax in axes[:-1]] == list(MEASURES.values())
    for ax, measure in zip(axes, MEASURES, strict=False):
        drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
        for name, run in runs.items():
            assert np.array_equal(drawn[name], run.path[measure])


# Records that are made up, so that every number is known


def records(changes=None, statuses=None, stealing=None, backbones=("gcn",), original=0.9):
    """Every method on five graphs, two sets, both presets, three seeds, up to 0.01 points of noise.

    Args:
        changes: (method, preset) -> change of accuracy; others 0. statuses: (method, preset, data) -> status, others ok.
        stealing: (method, preset) -> folded AUC; others 0.64. original: accuracy of the original.
    """
    changes, statuses, stealing = changes or {}, statuses or {}, stealing or {}
    rows = []
    for backbone in backbones:
        for data in families.GRAPHS if backbone == "gcn" else ("cora",):
            for preset in ("corrected", "published"):
                for forget in ("low", "high"):
                    for seed, noise in enumerate(NOISE):
                        for method in ("utu", "gold", "gold", *GENERIC, "npo"):
                            if preset not in UNLEARNERS[method].settings:
                                continue
                            key = (method, preset)
                            golds = sum(r["method"] == "gold" for r in rows[-2:]) if method == "gold" else 0
                            rows.append(
                                {
                                    "data": data,
                                    "preset": preset,
                                    "backbone": backbone,
                                    "forget": forget,
                                    "seed": seed,
                                    "method": method,
                                    "method_seed": 1000.0 if golds else np.nan,
                                    "status": statuses.get((*key, data), "ok"),
                                    "seconds": 4.0 if method == "gold" else 1.0,
                                    "accuracy_test": original + changes.get(key, 0.0) + noise,
                                    "original_accuracy_test": original,
                                    "link_stealing_auc_folded": stealing.get(key, 0.64) + noise,
                                    "link_stealing_auc": 1 - stealing.get(key, 0.64) - noise,
                                }
                            )
    return pd.DataFrame(rows)


def excess(values=None):
    """Excess of every method and attack; (method, attack) -> (low, middle, high), others around zero."""
    values = values or {}
    rows = []
    for data in families.GRAPHS:
        for preset in ("corrected", "published"):
            for forget in ("low", "high"):
                for method in ("utu", "gold", *GENERIC, "npo"):
                    if preset not in UNLEARNERS[method].settings:
                        continue
                    for attack in families.ATTACK_TITLES:
                        low, middle, high = values.get((method, attack), (-0.01, 0.0, 0.01))
                        rows.append(
                            {
                                "data": data,
                                "preset": preset,
                                "backbone": "gcn",
                                "forget": forget,
                                "method": method,
                                "attack": attack,
                                "excess": middle,
                                "excess_low": low,
                                "excess_high": high,
                            }
                        )
    return pd.DataFrame(rows)


@pytest.fixture
def use(monkeypatch):
    """Put made-up records in the place of the published ones."""

    def replace(table, excess_table=None):
        tables = {"generic_unlearning": table, "generic_unlearning_excess": excess_table}
        monkeypatch.setattr(families, "load_records", lambda study, where="published": tables[study])
        monkeypatch.setattr(claims_gradient_family, "benchmark_records", lambda: with_outcomes(table))

    return replace


def test_records_are_read_beside_their_golds(use):
    table = records({("salun", "published"): -0.05})
    table.loc[(table["method"] == "gold") & table["method_seed"].notna(), "seconds"] = 6.0  # the second Gold of a cell
    use(table)
    found = family_records()
    assert len(found) == len(table)
    assert (found.loc[found["method"] == "salun", "share"] == 1.0 / 5.0).all()
    mine = found[(found["method"] == "salun") & (found["preset"] == "published") & (found["seed"] == 1)]
    assert np.allclose(mine["change"], -0.05)
    assert not found["broken"].any()


def test_cells_are_means_over_seeds(use):
    use(records({("scrub", "published"): -0.05}, {("scrub", "published", "photo"): "collapsed"}))
    cells = accuracy_cells(family_records()).set_index(["method", "preset", "backbone", "data", "forget"])
    row = cells.loc[("scrub", "published", "gcn", "photo", "high")]
    assert (row["change"], row["low"], row["high"]) == pytest.approx(mean_interval([-0.0501, -0.05, -0.0499]))
    assert (row["least"], row["most"], row["spread"]) == pytest.approx((-0.0501, -0.0499, 1e-4))
    assert (row["broken"], row["runs"]) == (3, 3)
    assert cells.loc[("gold", "corrected", "gcn", "cora", "low"), "runs"] == 6


def test_a_failed_run_has_no_accuracy_and_stays_in_the_count(use):
    table = records()
    lost = (table["method"] == "ssd") & (table["data"] == "dblp") & (table["seed"] == 0)
    table.loc[lost, "accuracy_test"] = np.nan
    table.loc[lost, "status"] = "failed"
    use(table)
    cells = accuracy_cells(family_records())
    mine = cells[(cells["method"] == "ssd") & (cells["data"] == "dblp")]
    assert (mine["broken"] == 1).all() and (mine["runs"] == 3).all() and mine["change"].notna().all()


def test_seeds_interval_says_what_it_does_not_know():
    assert seeds_interval(pd.Series([1.0, 2.0, 3.0])) == mean_interval([1.0, 2.0, 3.0])
    assert seeds_interval(pd.Series([1.0, np.nan])) == (1.0, -np.inf, np.inf)
    assert np.isnan(seeds_interval(pd.Series([np.nan]))).all()


def test_outcomes_count_cells_and_runs(use):
    statuses = {("neg_grad", "published", data): "collapsed" for data in ("photo", "cora")}
    marked = {("neg_grad", "link_stealing"): (0.01, 0.02, 0.03), ("neg_grad", "e_umia"): (-0.03, -0.02, -0.01)}
    use(records({("neg_grad", "published"): -0.03}, statuses), excess(marked))
    table = outcomes(("gold", "neg_grad", "npo")).set_index(["method", "preset"])
    assert list(table.index) == [
        *(("Gold", preset) for preset in ("corrected", "published")),
        *(("NegGrad", preset) for preset in ("corrected", "published")),
        ("NPO", "corrected"),
    ]
    row = table.loc[("NegGrad", "published")]
    assert row["collapsed"] == "12 of 30" and row["accuracy, points"] == "-3.0" and row["seeds"] == "±0.0"
    assert row["time, % of Gold"] == "25"
    assert row["Link Stealing above/below"] == "10/0 of 10" and row["E-UMIA above/below"] == "0/10 of 10"
    assert row["LinkTeller above/below"] == "0/0 of 10"
    assert collapsed_cells(("neg_grad",)) == (
        "NegGrad under published on Photo low (3 of 3), Photo high (3 of 3), Cora low (3 of 3), Cora high (3 of 3)"
    )
    assert collapsed_cells(("gold", "npo")) == "nowhere"


def test_figures_draw_every_cell_and_mark_collapse(use):
    use(
        records({("scrub", "published"): -0.05}, {("scrub", "published", "photo"): "collapsed"}),
        excess({("scrub", "link_stealing"): (0.01, 0.02, 0.03)}),
    )
    fig = accuracy_figure(("gold", "scrub"))
    drawn = [line for ax in fig.axes for line in ax.get_lines() if line.get_marker() in ("o", "x")]
    assert len(drawn) == 4 * 2 * 5
    crosses = [line for line in drawn if line.get_marker() == "x"]
    assert len(crosses) == 2 and np.allclose([line.get_xdata()[0] for line in crosses], -5.0)
    axes = {ax.get_title(): ax for ax in excess_figure(("scrub",), "published").axes}
    points = [line for line in axes["Link Stealing, low set"].get_lines() if line.get_marker() in ("o", "x")]
    assert len(points) == 5 and np.allclose([line.get_xdata()[0] for line in points], 0.02)
    assert sum(line.get_marker() == "x" for line in points) == 1
    use(records({("scrub", "corrected"): -0.05}).query("method != 'scrub' or preset == 'corrected'"))
    notes = {ax.get_title(): [text.get_text() for text in ax.texts] for ax in accuracy_figure(("gold", "scrub")).axes}
    assert notes["corrected, low set"] == [] and notes["published, high set"] == ["not run"]


def test_backbones_stand_side_by_side(use):
    table = records({("salun", "corrected"): -0.02}, backbones=("gcn", "gat"))
    table.loc[(table["backbone"] == "gat") & (table["method"] == "salun"), "status"] = "collapsed"
    use(table)
    found = backbones_table(("utu", "salun")).set_index("method")
    assert list(found.columns) == ["GCN", "GAT"]
    assert found.loc["SalUn"].tolist() == ["-2.0", "-2.0 (collapsed)"]
    assert found.loc["UtU"].tolist() == ["0.0", "0.0"]


# The benchmark's table


def test_prediction_interval_by_hand_and_by_coverage():
    half = 4.302653 * 1.0 * np.sqrt(4 / 3)  # Student's t with two degrees of freedom, s = 1
    assert prediction_interval(pd.Series([1.0, 2.0, 3.0])) == pytest.approx((2 - half, 2 + half), abs=1e-5)
    generator = np.random.default_rng(0)
    draws = generator.normal(size=(2000, 4))
    hits = [low <= row[3] <= high for row in draws for low, high in [prediction_interval(pd.Series(row[:3]))]]
    assert abs(np.mean(hits) - 0.95) < 0.02
    with pytest.raises(InputError, match="at least two"):
        prediction_interval(pd.Series([1.0]))


def test_a_table_that_agrees_has_no_sentence(use):
    accuracy, stealing = families.PRINTED["photo"]["utu"]
    use(records(original=accuracy, stealing={("utu", "published"): stealing}))
    rows = printed_rows(("utu",))
    assert (rows[["accuracy_agrees", "stealing_agrees"]] == "yes").all(axis=None)
    assert mismatch_sentences(rows) == []
    assert printed_table(rows).iloc[0].tolist() == [
        *("Original", "90.8", "90.8 (90.8 to 90.8)", "yes"),
        *("0.639", "0.639 (0.639 to 0.639)", "yes"),
    ]


def test_a_number_that_does_not_agree_has_its_sentence(use):
    accuracy, stealing = families.PRINTED["photo"]["utu"]
    use(
        records(
            {("neg_grad", "published"): -0.05, ("fine_tuning", "published"): 0.01},
            stealing={("utu", "published"): stealing},
            original=accuracy,
        )
    )
    rows = printed_rows(("utu", "fine_tuning", "neg_grad"))
    assert rows["accuracy_agrees"].tolist() == ["yes", "no", "no"]
    sentences = [sentence for sentence in mismatch_sentences(rows) if ", accuracy:" in sentence]
    assert len(sentences) == 2
    assert sentences[0] == (
        "Fine-tuning, accuracy: 91.8 against 88.8 printed (+1.0 against -2.0 points from the Original of its table, not the "
        "same direction); a further seed of ours would not give it (91.8 to 91.8)."
    )
    assert sentences[1].startswith("NegGrad, accuracy: 85.8 against 80.6 printed (-5.0 against -10.2 points from the ")
    assert "of its table, the same direction); a further seed" in sentences[1]


def test_a_number_just_outside_the_seeds_may_still_be_a_further_seed(use):
    accuracy, _ = families.PRINTED["photo"]["utu"]
    use(records(original=accuracy - 0.0002))  # seeds within 0.0001 of their mean, a further one within 0.0005
    rows = printed_rows(("utu",))
    assert rows["accuracy_agrees"].tolist() == ["perhaps"]
    assert "a further seed of ours might give it" in mismatch_sentences(rows)[0]


def test_only_the_gold_with_the_originals_start_is_compared(use):
    table = records()
    others = (table["method"] == "gold") & table["method_seed"].notna()
    table.loc[others, "accuracy_test"] = 0.1
    use(table)
    assert printed_rows(("gold",))["accuracy_ours"].iloc[0] == pytest.approx(0.9)
    use(table[table["method"] != "gold"])
    with pytest.raises(InputError, match="no published-preset record of gold on photo"):
        printed_rows(("gold",))


# The search


def test_the_chosen_settings_are_those_of_the_published_search():
    methods = ("fine_tuning", "scrub", "ssd")
    table = chosen_table(methods).set_index("method")
    for method, settings in chosen_settings(load_records("tuning")).items():
        if method in methods:
            for name, value in settings.items():
                assert f"{name.replace('_', ' ')} {value:g}" in table.loc[families.METHOD_TITLES[method], "chosen"]
    assert table["admissible"].str.fullmatch(r"\d+ of 12").all()


def test_the_search_figure_rings_the_chosen_setting():
    fig = search_figure(("neg_grad", "fisher"))
    search = families.search(("neg_grad", "fisher"))
    for ax, method, aim in zip(fig.axes, ("neg_grad", "fisher"), ("gap", "weight_change"), strict=True):
        tried = search[search["method"] == method]
        (ring,) = [line for line in ax.get_lines() if line.get_markersize() == 11]
        (best,) = tried[tried["chosen"]].to_dict("records")
        assert (ring.get_xdata()[0], ring.get_ydata()[0]) == pytest.approx((100 * best["accuracy_change"], best[aim]))
        assert sum(len(line.get_xdata()) for line in ax.get_lines() if line.get_markersize() == 5) == len(tried)
        left, right = ax.get_xlim()
        assert left < 100 * tried["accuracy_change"].min() and 100 * tried["accuracy_change"].max() < right


# The claims


def test_l03_holds_where_nothing_moves_and_names_what_does(use):
    use(records())
    assert CLAIMS["L03"].check().verdict == "holds"
    use(records({("neg_grad", "published"): -0.05}))
    finding = CLAIMS["L03"].check()
    assert finding.verdict == "fails" and finding.effect == pytest.approx(-0.05)
    assert "10 wholly beyond" in finding.detail and "exceeds two points in 10 cells" in finding.detail
    assert "NegGrad (Photo, low, published: -5.0 points), NegGrad (" in finding.detail


def test_l03_counts_a_gain_like_a_loss(use):
    use(records({("salun", "corrected"): 0.04}))
    assert CLAIMS["L03"].check().verdict == "fails"


def test_l03_is_undecided_at_the_limit(use):
    use(records({("neg_grad", "published"): -0.02}))
    finding = CLAIMS["L03"].check()
    assert finding.verdict == "inconclusive" and "10 undecided" in finding.detail


def test_l03_leaves_out_collapse_additions_and_other_backbones(use):
    statuses = {("neg_grad", "published", data): "collapsed" for data in families.GRAPHS}
    table = records({("neg_grad", "published"): -0.5, ("npo", "corrected"): -0.5}, statuses, backbones=("gcn", "gat"))
    table.loc[table["backbone"] == "gat", "accuracy_test"] = 0.3
    use(table)
    finding = CLAIMS["L03"].check()
    assert finding.verdict == "holds" and "10 cells with a collapsed run are left out" in finding.detail
    kept = accuracy_kept()
    assert set(kept["method"]) == {*GENERIC, "utu"} and len(kept) == 10 * 5 * 2 * 2 - 10


def test_l03_reads_the_graph_native_methods_each_on_its_backbone(use):
    table = records()
    table = table[table["data"].isin(["photo", "cora"]) & table["method"].isin(["gold", "utu", "salun"])]
    rows = table[table["method"] == "salun"]
    native = [rows.assign(method="idea"), rows.assign(method="cgu", backbone="sgc"), rows.assign(method="gif")]
    table = pd.concat([table, *native, rows.assign(method="gnn_delete", status="unsupported")], ignore_index=True)
    use(table)
    assert CLAIMS["L03"].check().verdict == "holds"
    assert set(accuracy_kept()["method"]) == {"utu", "salun", "idea", "cgu"}
    for method in ("idea", "cgu"):
        use(table.assign(accuracy_test=table["accuracy_test"].mask(table["method"] == method, 0.7)))
        assert CLAIMS["L03"].check().verdict == "fails"
    alone = (table["method"] == "idea") & (table["seed"] > 0)
    use(table[~alone].assign(accuracy_test=table["accuracy_test"].mask(table["method"] == "idea", 0.7)))
    assert CLAIMS["L03"].check().verdict == "holds"  # one seed has no interval


@pytest.mark.parametrize(("change", "verdict"), [(-0.32, "holds"), (-0.02, "fails"), (-0.1, "inconclusive")])
def test_l24(use, change, verdict):
    use(records({("scrub", "published"): change}, {("scrub", "published", "computers"): "collapsed"}))
    finding = CLAIMS["L24"].check()
    assert finding.verdict == verdict and finding.effect == pytest.approx(change)
    assert finding.interval[0] < change < finding.interval[1]
    assert "3 collapsed; preset corrected: accuracy 90.0 to 90.0 %" in finding.detail


def test_l24_needs_the_benchmarks_own_form(use):
    table = records()
    use(table[table["preset"] == "corrected"])
    with pytest.raises(InputError, match="no record of scrub"):
        CLAIMS["L24"].check()


@pytest.mark.parametrize(
    ("tuned", "relabelled", "verdict"),
    [(0.70, 0.72, "holds"), (0.70, 0.60, "fails"), (0.70, 0.64, "inconclusive"), (0.60, 0.60, "fails")],
)
def test_l23(use, tuned, relabelled, verdict):
    moved = {("fine_tuning", "published"): tuned, ("salun", "published"): relabelled}
    table = records(stealing=moved)
    shaken = (table["method"] == "salun") & (table["seed"] == 0)
    table.loc[shaken, "link_stealing_auc_folded"] += 1e-5  # else the paired differences have no spread
    use(table)
    finding = CLAIMS["L23"].check()
    assert finding.verdict == verdict
    assert finding.effect == pytest.approx(min(tuned, relabelled) - 0.64, abs=1e-4)
    assert "SalUn, corrected: +0.000" in finding.detail and "signed" in finding.detail


def test_l23_pairs_by_seed(use):
    """What all methods of a seed share drops out of the difference."""
    table = records(stealing={(m, "published"): 0.70 for m in ("fine_tuning", "salun")})
    table["link_stealing_auc_folded"] += 0.05 * table["seed"]
    use(table)
    assert CLAIMS["L23"].check().verdict == "holds"
