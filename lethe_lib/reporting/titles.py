"""What tables and figures call graphs, methods, attacks and backbones; their order is the order in which they are shown."""

GRAPH_TITLES = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "dblp": "DBLP",
    "photo": "Photo",
    "computers": "Computers",
}

METHOD_TITLES = {
    "original": "Original on G",
    "utu": "UtU",
    "gold": "Gold",
    "untrained": "Untrained",
    "fine_tuning": "Fine-tuning",
    "neg_grad": "NegGrad",
    "adv_neg_grad": "AdvNegGrad",
    "adv_neg_grad_matched": "AdvNegGrad, matched",
    "unsir": "UNSIR",
    "npo": "NPO",
    "l1_sparse": "l1-sparse",
    "bad_teaching": "BadTeaching",
    "scrub": "SCRUB",
    "fisher": "Fisher Forgetting",
    "ssd": "SSD",
    "ssd_edge_diff": "SSD, edge difference",
    "salun": "SalUn",
    "salun_edge_diff": "SalUn, edge difference",
    "memoriser": "Memoriser",
    "ceu": "CEU",
    "idea": "IDEA",
    "gif": "GIF",
    "cgu": "CGU",
    "scalegun": "ScaleGUN",
    "gnn_delete": "GNNDelete",
}

ATTACK_TITLES = {"link_teller": "LinkTeller", "link_stealing": "Link Stealing", "e_umia": "E-UMIA"}
"""Of the attacks that the benchmark runs on every model."""

BACKBONE_TITLES = {"gcn": "GCN", "gat": "GAT", "gin": "GIN", "sage": "SAGE", "sgc": "SGC"}


def graph_title(name: str) -> str:
    """The name of a graph as tables show it; of a reader's own graph the name that it was given."""
    return {**GRAPH_TITLES, "arxiv-like": "generated, arxiv-like"}.get(name, name)


def method_title(name: str) -> str:
    """The name of a method as tables show it; of a reader's own method the name that it was registered with."""
    return METHOD_TITLES.get(name, name)
