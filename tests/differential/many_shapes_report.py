"""Asks graphs for many shapes at once, and words what came out."""

from tests.differential.many_shapes import NETWORKS, PRECISIONS, run_many_shapes


def run_shapes(seed: int, count: int) -> tuple[list[str], int]:
    """Ask each network in each precision for as many shapes.

    Returns:
        The lines of a table, and how many networks were wrong.
    """
    lines = ["", f"{'many shapes at once':<26}{'by numpy':>10}{'by kernels':>12}{'by both':>9}{'off':>10}"]
    wrong = 0
    for network in NETWORKS:
        for precision in PRECISIONS:
            run = run_many_shapes(network, precision, seed, count)
            name = f"{network.name}, {precision}"
            lines.append(f"{name:<26}{run.by_numpy:>10}{run.by_kernels:>12}{run.by_both:>9}{run.off:>10.1e}")
            if run.text:
                lines.append(f"  {run.text}")
                wrong += 1
    return [*lines, ""], wrong
