"""Shadow models: many models, each trained on its own sample of the graph, and what they say of every node.

``train_shadows`` does it all; ``training_graph`` and ``query_graph`` are the graphs of one model, ``fit_shadow`` its
training, ``Release`` what an adversary may query.
"""

from lethe_lib.shadow.compiled_gcn import fit_compiled
from lethe_lib.shadow.fit import ShadowTraining, fit_shadow
from lethe_lib.shadow.many import train_shadows
from lethe_lib.shadow.statistics import (
    NOISE,
    Release,
    confidence_from_logits,
    loss_from_confidence,
    released_logits,
)
from lethe_lib.shadow.training_graph import ACCESS, query_graph, training_graph

__all__ = [
    "ACCESS",
    "NOISE",
    "Release",
    "ShadowTraining",
    "confidence_from_logits",
    "fit_compiled",
    "fit_shadow",
    "loss_from_confidence",
    "query_graph",
    "released_logits",
    "train_shadows",
    "training_graph",
]
