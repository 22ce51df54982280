"""The kept run of `python -m tests.bench.scaling`."""

from collections.abc import Callable

from tests.bench.scaling import report, results
from tests.docs.generated.application import ROOT


def render_profiles() -> str:
    """Return what requests take."""
    return _render(report.profiles_part)


def render_comparisons() -> str:
    """Return measured and simulated loads."""
    return _render(report.comparisons_part)


def render_capacities() -> str:
    """Return what a replica takes."""
    return _render(report.capacities_part)


def render_plans() -> str:
    """Return what each rate needs."""
    return _render(report.plans_part)


def render_surroundings() -> str:
    """Return what a balancer and a scrape take."""
    return _render(report.surroundings_part)


def _render(part: Callable[[results.ScalingReport], str]) -> str:
    """Return a part of the kept run, or how to make one where none is kept."""
    path = ROOT / results.SAVED
    if path.exists():
        return part(results.from_json(path.read_text(encoding="utf-8")))
    return "No run is kept in this repository: the command prints what it measures on your machine."
