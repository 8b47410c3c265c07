"""What several test files start from: a small graph, a trained GCN and a request. A file may define its own of a name."""

import pytest
import torch
from torch_geometric.data import Data

from lethe_lib.data import load_graph
from lethe_lib.models import Backbone, train
from lethe_lib.structure import forget_set


@pytest.fixture(scope="module")
def graph() -> Data:
    return load_graph("synthetic-tiny")


@pytest.fixture(scope="module")
def model(graph) -> Backbone:
    return train(graph, "gcn", seed=0, hidden=16, epochs=60, patience=60)


@pytest.fixture(scope="module")
def forget(graph) -> torch.Tensor:
    return forget_set(graph, "random", 0.1, seed=0)
