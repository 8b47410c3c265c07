"""Training speed: one epoch of our GCN against one of PyTorch Geometric's ``GCNConv`` over ``edge_index``."""

import statistics
import time

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from lethe_lib.data import load_graph, split_nodes
from lethe_lib.errors import DataNotFound
from lethe_lib.models import build

ROUNDS, EPOCHS = 7, 3


class Reference(torch.nn.Module):
    """Two cached ``GCNConv`` layers with the weights of our model and no dropout."""

    def __init__(self, ours: torch.nn.Module):
        super().__init__()
        self.convs = torch.nn.ModuleList()
        for layer in ours.layers:
            conv = GCNConv(layer.in_features, layer.out_features, cached=True)
            conv.lin.weight.data.copy_(layer.weight.data)
            conv.bias.data.copy_(layer.bias.data)
            self.convs.append(conv)

    def forward(self, data: Data) -> torch.Tensor:
        return self.convs[1](torch.relu(self.convs[0](data.x, data.edge_index)), data.edge_index)


def bench(name: str = "photo") -> dict[str, float]:
    """Measure, check and print; both sides train the same network on the same graph, in turn, in this process.

    An epoch is forward, backward and an Adam step on the training nodes. Dropout is off, so that both do the same
    arithmetic, and their losses after the run are compared.

    Args:
        name: a graph; ``photo-like`` is generated where Photo cannot be had.

    Returns:
        ``ours`` and ``reference`` (CPU milliseconds an epoch, medians), ``ratio``, ``difference`` (of the losses).
    """
    try:
        data = load_graph(name)
    except DataNotFound:
        data = load_graph("photo-like")
    nodes = split_nodes(data, 0).train
    ours = build(data, "gcn", dropout=0.0)
    models = {"ours": ours, "reference": Reference(ours)}
    optimisers = {key: torch.optim.Adam(model.parameters(), lr=0.01) for key, model in models.items()}
    times, losses = {key: [] for key in models}, {}
    for turn in range(ROUNDS + 1):
        for key, model in models.items():
            start = time.process_time()
            for _ in range(EPOCHS):
                optimisers[key].zero_grad(set_to_none=True)
                loss = cross_entropy(model.train()(data)[nodes], data.y[nodes])
                loss.backward()
                optimisers[key].step()
            if turn:  # the first turn builds what is remembered afterwards, on both sides
                times[key].append((time.process_time() - start) / EPOCHS)
            losses[key] = float(loss.detach())
    result = {key: 1000 * statistics.median(values) for key, values in times.items()}
    result["ratio"] = result["reference"] / result["ours"]
    result["difference"] = abs(losses["ours"] - losses["reference"]) / losses["reference"]
    print(
        f"GCN epoch on {data.name}: PyTorch Geometric {result['reference']:.1f} ms, ours {result['ours']:.1f} ms, "
        f"ratio {result['ratio']:.1f}x (target 5x); losses differ by {result['difference']:.1g} relative"
    )
    return result
