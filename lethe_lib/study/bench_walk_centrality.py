"""WalkCentrality's speed: all edges of a random graph against the sparse products that the score is made of."""

from lethe_lib.study.cost import CentralityCostConfiguration


def bench() -> dict[str, float]:
    """Measure and print, for one and for ten million edges, k = 2.

    Returns:
        ``ratio`` (seconds of WalkCentrality over those of k scipy products, at ten million edges) and ``growth`` (how
        many times longer ten million edges take than one million, over the same of the products: 1 is linear).
    """
    found = {}
    for edges in (1_000_000, 10_000_000):
        metrics = CentralityCostConfiguration("generated", edges=edges).measure(None, "cpu").metrics
        found[edges] = metrics
        print(
            f"WalkCentrality, {int(metrics['pairs']):,} edges, k = 2: {metrics['seconds']:.3f} CPU s, k scipy products "
            f"{metrics['products_seconds']:.3f} CPU s, ratio {metrics['seconds'] / metrics['products_seconds']:.2f} (target 2)"
        )
    small, large = found.values()
    growth, products = large["seconds"] / small["seconds"], large["products_seconds"] / small["products_seconds"]
    print(f"growth from one to ten million edges: {growth:.1f}x; the products themselves {products:.1f}x")
    return {"ratio": large["seconds"] / large["products_seconds"], "growth": growth / products}
