"""Generated graphs: the announced sizes, the same seed the same graph, and neither noise nor a giveaway."""

import numpy as np
import pytest
import torch

from lethe_lib.data import BlockModel, generate, graph_statistics, load_graph, synthetic
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes", "homophily"),
    [
        ("synthetic-tiny", 120, 360, 60, 3, 0.8),
        ("synthetic", 1_000, 4_000, 300, 5, 0.8),
        ("photo-like", 7_650, 119_081, 745, 8, 0.827),
    ],
)
def test_announced_sizes(name, nodes, edges, features, classes, homophily):
    data = load_graph(name)
    counted = graph_statistics(data)
    assert (counted["nodes"], counted["edges"], counted["features"], counted["classes"]) == (
        nodes,
        edges,
        features,
        classes,
    )
    assert counted["homophily"] == pytest.approx(homophily, abs=0.06)
    assert data.x.unique().tolist() == [0, 1]
    assert len(data.y.unique()) == classes and data.name == name
    degree = torch.bincount(data.edge_index[0], minlength=nodes)
    assert degree.max() > 2 * degree.float().mean()


def test_seed_decides():
    assert synthetic("small", 3).content_hash == synthetic("small", 3).content_hash
    assert synthetic("small", 3).content_hash != synthetic("small", 4).content_hash
    assert load_graph("synthetic").content_hash == synthetic("small", 0).content_hash
    with pytest.raises(InputError, match="tiny, small"):
        synthetic("huge")


def test_photo_like_features_are_about_35_percent_dense():
    assert float((load_graph("photo-like").x != 0).float().mean()) == pytest.approx(0.35, abs=0.02)


def test_dense_features_and_late_years_of_the_arxiv_model():
    model = BlockModel(3_000, 9_000, 16, 8, 0.72, 1.1, 0.8, 0.05, None, 0.25, (1971, 2020))
    data = generate(model, numpy_generator(0, "test"), "arxiv-model")
    year = data.node_year.numpy()
    assert year.min() >= 1971 and year.max() == 2020 and np.median(year) >= 2014
    assert (data.x != 0).all() and data.x.dtype == torch.float32


def test_labels_are_learnable_but_not_given_away():
    """Majority vote of the neighbours beats the largest class by far, and errs because some labels are wrong."""
    data = synthetic("small")
    votes = torch.zeros(data.num_nodes, data.num_classes)
    votes.index_add_(0, data.edge_index[0], torch.nn.functional.one_hot(data.y[data.edge_index[1]]).float())
    accuracy = float((votes.argmax(1) == data.y).float().mean())
    assert 0.75 < accuracy < 0.95
    assert float(torch.bincount(data.y).max()) / data.num_nodes < 0.4


def test_block_model_without_inside_edges_has_few_equal_labels():
    apart = BlockModel(400, 1_200, 10, 4, 0.0, 0.5, 0.0, 0.0, 0.3, 1.0, None)
    together = BlockModel(400, 1_200, 10, 4, 1.0, 0.5, 0.0, 0.0, 0.3, 1.0, None)
    assert graph_statistics(generate(apart, numpy_generator(0, "a"), "a"))["homophily"] == 0
    assert graph_statistics(generate(together, numpy_generator(0, "a"), "a"))["homophily"] == 1
