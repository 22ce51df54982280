"""Runs all networks in bfloat16 and int8 and words what came out."""

from tests.differential.networks.rounded import run_rounded
from tests.differential.networks.table import networks


def run_rounded_networks(seed: int, count: int, narrow: bool = False) -> tuple[list[str], int]:
    """Run all networks, or the narrow ones, in each precision at as many sizes.

    Returns:
        The lines of a table, and how many runs were wrong.
    """
    head = (
        f"{'network in bf16 and int8':<26}{'runs':>6}{'wrong':>7}{'tensors':>9}{'ties':>8}{'of integers':>13}"
    )
    lines = ["", f"{head}{'of allowed':>12}{'off':>10}"]
    wrong = 0
    for network in networks():
        if narrow and not network.name.endswith("narrow"):
            continue
        runs = list(run_rounded(network, seed, count))
        bad = [run for run in runs if run.text]
        lines.append(
            f"{network.name:<26}{len(runs):>6}{len(bad):>7}{sum(run.tensors for run in runs):>9}"
            f"{sum(run.ties[0] for run in runs):>8}{sum(run.ties[1] for run in runs):>13}"
            f"{max(run.share for run in runs):>12.2f}{max(run.off for run in runs):>10.1e}"
        )
        lines += [f"  {run.size}, {run.how}: {run.text}" for run in bad]
        wrong += len(bad)
    return [*lines, ""], wrong
