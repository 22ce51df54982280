"""How many replicas a load needs: measures servers of one and of two processes, simulates them, and plans.

Run: python -m tests.bench.scaling [--rounds N] [--seconds N] [--save]; needs wrk and the extra [bench].

`--plan` prints the plan of the figures that are kept, for `--rate` requests per second and a `--price` of a core-hour,
without measuring anything.
"""

import argparse
import datetime
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.machine import machine
from tests.bench.scaling.capacity import find_capacity, plan
from tests.bench.scaling.fitting import FITTED, fit, is_predicted, share, split
from tests.bench.scaling.measure import Measured, measure_model
from tests.bench.scaling.report import tables
from tests.bench.scaling.results import BUILD, SAVED, Comparison, Profile, ScalingReport, from_json, to_json
from tests.bench.scaling.simulation import Demand, Machine, lognormal, simulate_closed
from tests.bench.scaling.surroundings import measure_surroundings
from tests.bench.service.load import LoadError

REQUESTS = 10_000
"""Simulated for each load that is compared."""


def main() -> int:
    """Measure or plan, and print; returns the exit code."""
    arguments = parse()
    if arguments.plan and not SAVED.exists():
        sys.exit(f"there is no {SAVED}: python -m tests.bench.scaling --save measures and writes it")
    if arguments.plan:
        print_plan(from_json(SAVED.read_text()), arguments.rate, arguments.price)
        return 0
    report = run(arguments.models, arguments.rounds, arguments.seconds, arguments.slowdown)
    print(tables(report))
    for path in [BUILD, SAVED] if arguments.save else [BUILD]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_json(report))
    return 0


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--models", type=Path, default=Path(".venv-bench/models"), help="folder of the models"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of each load; the median one counts")
    parser.add_argument("--seconds", type=int, default=2, help="whole seconds for each load")
    parser.add_argument("--slowdown", type=float, default=4.0, help="the 99th percentile over an idle median")
    parser.add_argument("--save", action="store_true", help="write docs/bench/ as well")
    parser.add_argument("--plan", action="store_true", help="only plan, with the figures that are kept")
    parser.add_argument("--rate", type=int, default=10_000, help="requests per second to plan for")
    parser.add_argument("--price", type=float, default=0.04, help="of a core-hour, in any currency")
    return parser.parse_args()


def run(models: Path, rounds: int, seconds: int, slowdown: float) -> ScalingReport:
    """Measure and simulate."""
    from tests.bench.service.models import make_models  # needs PyTorch

    cores = len(os.sched_getaffinity(0))
    served = make_models(models.resolve())
    measured = {model.name: measure_model(model, cores, rounds, seconds) for model in served}
    demands = find_demands(measured, cores)
    profiles = tuple(profile_of(name, demands[name], one) for name, one in measured.items())
    return ScalingReport(
        machine(("numpy", "llvmlite", "uvicorn")),
        datetime.datetime.now(datetime.UTC).date().isoformat(),
        rounds,
        slowdown,
        profiles,
        tuple(compare(measured, demands, cores)),
        tuple(find_capacity(profile, slowdown) for profile in profiles),
        measure_surroundings(served[0], seconds),
    )


def find_demands(measured: Mapping[str, Measured], cores: int) -> dict[str, Demand]:
    """Return what a request for each model takes; the hand-over is fitted to loads of the first model."""
    first, *_ = measured.values()
    on = Machine(1, cores, cores)
    demands = split([one.times for one in measured.values()])
    alone, few = (first.loads[1, connections].outcome for connections in (1, FITTED))
    fitted = fit(demands[0], on, alone.p50, few.per_second, first.spread)
    others = [
        share(demand, fitted, on, one.spread) for demand, one in zip(demands, measured.values(), strict=True)
    ]
    return dict(zip(measured, [fitted, *others[1:]], strict=True))


def compare(
    measured: Mapping[str, Measured], demands: Mapping[str, Demand], cores: int
) -> Iterator[Comparison]:
    """Simulate each load that was measured."""
    fitted = next(iter(measured))
    for name, one in measured.items():
        for (processes, connections), load in sorted(one.loads.items()):
            on = Machine(processes, max(cores // processes, 1), cores)
            simulated = simulate_closed(demands[name], on, connections, REQUESTS, lognormal(one.spread))
            is_new = is_predicted(name, fitted, processes, connections)
            yield Comparison(name, processes, connections, load.outcome, simulated, is_new)


def profile_of(name: str, demand: Demand, measured: Measured) -> Profile:
    """Return what is kept of a model."""
    core_seconds = measured.times.loop + measured.times.others
    sizes = measured.memory_bytes, measured.model_bytes
    return Profile(
        name, demand, core_seconds, measured.spread, *sizes, measured.cold_seconds, measured.warm_seconds
    )


def print_plan(report: ScalingReport, rate: int, price: float) -> None:
    """Print what a rate needs of each model, and what that costs."""
    around = report.surroundings
    for profile, capacity in zip(report.profiles, report.capacities, strict=True):
        found = plan(profile, capacity, rate, around.balancer_seconds, around.scrape_bytes)
        print(
            f"{profile.model}: {found.replicas} replicas, {found.memory_bytes / 1e9:.1f} GB, "
            f"{found.core_hours * price:.2f} an hour, {found.cost(price):.4f} for 1,000,000 requests"
        )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LoadError as error:
        sys.exit(str(error))
