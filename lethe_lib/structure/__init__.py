"""Edges and what hangs on them: centrality, forget sets, removal, and how far a removal reaches."""

from lethe_lib.structure.affected import affected_nodes
from lethe_lib.structure.displacement import endpoint_displacement, set_displacement
from lethe_lib.structure.forget_sets import COHORT_TOLERANCE, FORGET_SETS, Draw, forget_set
from lethe_lib.structure.homophily import edge_homophily, node_homophily
from lethe_lib.structure.pairs import check_pairs, edge_positions, ordered_pairs, sample_non_edges
from lethe_lib.structure.removal import remove_edges
from lethe_lib.structure.walk_centrality import walk_centrality, walk_weights

__all__ = [
    "COHORT_TOLERANCE",
    "FORGET_SETS",
    "Draw",
    "affected_nodes",
    "check_pairs",
    "edge_homophily",
    "edge_positions",
    "endpoint_displacement",
    "forget_set",
    "node_homophily",
    "ordered_pairs",
    "remove_edges",
    "sample_non_edges",
    "set_displacement",
    "walk_centrality",
    "walk_weights",
]
