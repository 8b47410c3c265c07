"""``python -m lethe_lib bench``: speed ratios, each side by side in one process; nothing here is a test."""

import argparse

from lethe_lib.registry import Registry
from lethe_lib.study import (
    bench_audit,
    bench_certified,
    bench_edge_audit,
    bench_link_teller,
    bench_samplers,
    bench_shadow,
    bench_training,
    bench_unlearning,
    bench_walk_centrality,
)

BENCHES = Registry(
    "bench",
    {
        "training": bench_training.bench,
        "link_teller": bench_link_teller.bench,
        "walk_centrality": bench_walk_centrality.bench,
        "samplers": bench_samplers.bench_samplers,
        "shadow": bench_shadow.bench,
        "unlearning": bench_unlearning.bench,
        "audit": bench_audit.bench,
        "certified": bench_certified.bench,
        "edge_audit": bench_edge_audit.bench,
    },
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("only", nargs="*", help=f"which: {', '.join(BENCHES)} (default: all)")


def main(arguments: argparse.Namespace) -> int:
    """Run the benches; 0 when all of them ran."""
    for name in arguments.only or BENCHES:
        print(f"== {name}", flush=True)
        BENCHES[name]()
    return 0
