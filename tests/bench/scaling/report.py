"""The tables of `docs/scaling.md`."""

from collections.abc import Sequence

from tests.bench.report import table
from tests.bench.scaling.capacity import Plan, plan
from tests.bench.scaling.results import Comparison, Profile, ScalingReport

RATES = (100, 10_000, 1_000_000)
"""Requests per second that are planned for."""


def profiles_part(report: ScalingReport) -> str:
    """Return what a request takes, and what a server needs to start."""
    head = [
        "model",
        "loop, ms",
        "worker, ms",
        "run, ms",
        "wake, ms",
        "hand-over, ms",
        "requests/s of a core",
        "memory of a replica, MB",
        "model files, MB",
        "ready without / with compiled code, s",
    ]
    return _intro(report) + "\n\n" + table(head, [_profile(profile) for profile in report.profiles])


def comparisons_part(report: ScalingReport) -> str:
    """Return the measured loads beside the simulated ones."""
    head = ["model", "processes", "at once", "measured, requests/s", "simulated", "error"]
    head += ["median measured, ms", "simulated", "error", "load is"]
    rows = [_comparison(one) for one in report.comparisons]
    predictions = [one for one in report.comparisons if one.is_predicted]
    rates = [abs(one.rate_error) for one in predictions]
    medians = [abs(one.median_error) for one in predictions]
    summary = (
        f"Of the predictions, the simulated rate differs from the measured one by {_mean(rates):.0%} in the mean "
        f"and by {max(rates):.0%} at most, the median by {_mean(medians):.0%} and {max(medians):.0%}."
    )
    return f"{table(head, rows)}\n\n{summary}"


def capacities_part(report: ScalingReport) -> str:
    """Return what a replica takes of requests that arrive at random."""
    head = ["model", "requests/s of a replica", "median, ms", "99th percentile, ms", "cores busy"]
    rows = [
        [
            one.model,
            f"{one.per_second:,.0f}",
            f"{one.outcome.p50:.2f}",
            f"{one.outcome.p99:.2f}",
            f"{one.busy:.0%}",
        ]
        for one in report.capacities
    ]
    return table(head, rows)


def plans_part(report: ScalingReport) -> str:
    """Return what each rate needs."""
    head = [
        "model",
        "requests/s",
        "replicas",
        "memory, GB",
        "core-hours an hour",
        "core-hours per 1,000,000 requests",
    ]
    head += ["HAProxy, cores", "metrics, MB/s", "copying the model, s"]
    return table(head, [_plan(name, one) for name, one in plans(report)])


def plans(report: ScalingReport) -> list[tuple[str, Plan]]:
    """Return the model's name and the plan of each model and rate."""
    around = report.surroundings
    return [
        (profile.model, plan(profile, capacity, rate, around.balancer_seconds, around.scrape_bytes))
        for profile, capacity in zip(report.profiles, report.capacities, strict=True)
        for rate in RATES
    ]


def tables(report: ScalingReport) -> str:
    """Return all parts."""
    return "\n\n".join(
        part(report)
        for part in (profiles_part, comparisons_part, capacities_part, plans_part, surroundings_part)
    )


def surroundings_part(report: ScalingReport) -> str:
    """Return what surrounds the replicas takes."""
    around = report.surroundings
    return (
        f"HAProxy takes {around.balancer_seconds * 1e6:.0f} µs of a core to pass on a request of digits, and "
        f"{around.large_balancer_seconds * 1e6:.0f} µs with buffers for bodies of 1 MiB. A scrape of "
        f"one server's metrics is {around.scrape_bytes:,} bytes and takes it {around.scrape_seconds * 1e3:.1f} ms of a "
        f"core."
    )


def _intro(report: ScalingReport) -> str:
    machine = report.machine
    return (
        f"Binary input over HTTP; the median of {report.rounds} rounds; {machine['processor']}, {machine['cores']} "
        f"cores, {machine['instructions']}, on which the load generator ran as well; {report.date}."
    )


def _profile(profile: Profile) -> list[str]:
    demand = profile.demand
    return [
        profile.model,
        f"{demand.loop * 1e3:.3f}",
        f"{demand.worker * 1e3:.3f}",
        f"{demand.run * 1e3:.3f}",
        f"{demand.wake * 1e3:.3f}",
        f"{demand.handover * 1e3:.3f}",
        f"{1 / profile.core_seconds:,.0f}",
        f"{profile.memory_bytes / 1e6:.0f}",
        f"{profile.model_bytes / 1e6:.1f}",
        f"{profile.cold_seconds:.1f} / {profile.warm_seconds:.1f}",
    ]


def _comparison(one: Comparison) -> list[str]:
    return [
        one.model,
        str(one.processes),
        str(one.connections),
        f"{one.measured.per_second:,.0f}",
        f"{one.simulated.per_second:,.0f}",
        f"{one.rate_error:+.0%}",
        f"{one.measured.p50:.2f}",
        f"{one.simulated.p50:.2f}",
        f"{one.median_error:+.0%}",
        "predicted" if one.is_predicted else "fitted",
    ]


def _plan(model: str, one: Plan) -> list[str]:
    return [
        model,
        f"{one.rate:,}",
        f"{one.replicas:,}",
        f"{one.memory_bytes / 1e9:,.1f}",
        f"{one.core_hours:,}",
        f"{one.cost(1.0):.3f}",
        f"{one.balancer_cores:,.2f}",
        f"{one.scrape_bytes_per_second / 1e6:,.2f}",
        f"{one.seconds_to_copy:,.2f}",
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
