"""Runs all networks and words what came out."""

import numpy as np

from tests.differential.networks.running import run_network
from tests.differential.networks.table import networks


def run_networks(seed: int, count: int, every: bool, narrow: bool = False) -> tuple[list[str], int]:
    """Run all networks, or the narrow ones, at as many sizes.

    Returns:
        The lines of a table, and how many runs were wrong.
    """
    lines = [
        "",
        f"{'network':<22}{'runs':>6}{'wrong':>7}{'numpy':>10}{'native':>10}{'allowed':>10}   largest share",
    ]
    wrong = 0
    for network in networks():
        if narrow and not network.name.endswith("narrow"):
            continue
        runs = list(run_network(network, seed, count, every))
        bad = [run for run in runs if run.is_wrong]
        numpy_off = max((run.off for run in runs if run.how == "numpy"), default=np.nan)
        native_off = max((run.off for run in runs if run.how != "numpy"), default=np.nan)
        lines.append(
            f"{network.name:<22}{len(runs):>6}{len(bad):>7}{numpy_off:>10.1e}{native_off:>10.1e}{network.share:>10.0e}"
        )
        lines += [f"  {run.size}, {run.how}: off by {run.off:.1e} {run.text}" for run in bad]
        wrong += len(bad)
    return [*lines, ""], wrong
