"""What ``make bench`` prints is measured on equal work: the values that the compared ways compute agree."""

from lethe_lib.data import load_graph
from lethe_lib.models import train
from lethe_lib.study import bench_certified, bench_unlearning


def test_unlearning_is_a_share_of_retraining(capsys):
    graph = load_graph("synthetic-tiny")
    found = bench_unlearning.fractions(train(graph, epochs=5), graph, ("utu", "neg_grad", "cgu"))
    assert found["gold"] == 1.0 and set(found) == {"gold", "utu", "neg_grad"} and found["utu"] > 0.0
    assert "cgu applies to sgc, not to gcn" in capsys.readouterr().out


def test_methods_for_sgc_alone_are_measured_on_sgc():
    graph = load_graph("synthetic-tiny")
    found = bench_unlearning.fractions(train(graph, "sgc", epochs=5), graph, bench_unlearning.SGC_ALONE)
    assert set(found) == {"gold", *bench_unlearning.SGC_ALONE}


def test_pushed_features_and_solved_steps_are_the_exact_ones():
    found = bench_certified.bench(load_graph("synthetic-tiny"))
    assert found["error"] <= found["bound"] + 1e-12
    assert found["cg_difference"] < 1e-6
    assert min(found[name] for name in ("push_ratio", "cg_ratio", "block_ratio")) > 0.0
