"""Runs random networks of quantized layers and words what came out."""

from tests.differential.quantized.running import run_quantized


def run_quantized_networks(seed: int, first: int, count: int) -> tuple[list[str], int]:
    """Run as many networks; returns the lines of a table, and how many runs were wrong."""
    runs = [run for index in range(first, first + count) for run in run_quantized(seed, index)]
    bad = [run for run in runs if run.text]
    ties, whole = (sum(run.ties[place] for run in runs) for place in (0, 1))
    tensors = sum(run.tensors for run in runs)
    said = f"{count} networks of quantized layers: {len(runs)} runs, {len(bad)} wrong; {tensors} tensors"
    lines = ["", f"{said}, {ties} of {whole} integers are ties"]
    return [*lines, *(f"  {run.how}: {run.text}" for run in bad), ""], len(bad)
