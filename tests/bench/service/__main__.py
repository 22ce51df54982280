"""This server against others on the same weights, machine and load, in one run.

Run: make bench-service      (or python -m tests.bench.service [--seconds N] [--leads] [--save])

Every server has as many workers as there are cores, each with one thread inside a run. This one is measured with one
process and with two, among which its workers are divided. Tables are printed; build/bench-service.json has the figures.
With --save they go to docs/bench/ as well.
"""

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.machine import machine
from tests.bench.service.candidates import Candidate, candidates
from tests.bench.service.leads import measure_leads, too_small
from tests.bench.service.load import LoadError, Timings, find_wrk, measure
from tests.bench.service.models import make_models
from tests.bench.service.overhead import measure_overhead, too_slow
from tests.bench.service.report import leads_part, tables
from tests.bench.service.request import PostRequest
from tests.bench.service.results import BUILD, SAVED, LoadResult, ServiceReport, StartResult, to_json
from tests.bench.service.served_model import ServedModel
from tests.bench.service.server import MeasuredServer, free_port
from tests.bench.service.speedup import shortfalls, speedups

CONNECTIONS = (1, 4, 16)
SETTLE_SECONDS = 6
"""Seconds of load before the first figure: whatever a server prepares when it is first asked is prepared then."""
PACKAGES = ("fastapi", "uvicorn", "numpy", "llvmlite")
"""Packages of this server whose versions are printed."""
OTHERS = {
    "LitServe": ("litserve", "litserve"),
    "MLServer": ("mlserver", "mlserver"),
    "FastAPI": ("fastapi", "fastapi"),
    "nvidia-pytriton": ("triton", "nvidia-pytriton"),
}
"""What is compared -> its environment, and the package whose version is printed; Triton's server has none."""


def main() -> int:
    """Measure, print the tables and write the figures; returns the exit code."""
    arguments = parse()
    find_wrk()
    environments = arguments.environments.resolve()
    models = [model for model in make_models(environments / "models") if model.name in arguments.models]
    chosen = tuple(arguments.servers or ("",))
    servers = [one for one in candidates(environments) if one.name.startswith(chosen)]
    workers = len(os.sched_getaffinity(0))
    if arguments.leads:
        leads = measure_leads(models, servers, workers, arguments.seconds, SETTLE_SECONDS)
        print(leads_part(leads) or "none of the servers that are to be led is there")
        return _report(too_small(leads))
    ceiling = _ceiling(models[0], arguments.seconds)
    print(f"a server that does nothing: {ceiling}\n", flush=True)
    starts, loads = _measure(models, servers, workers, arguments.seconds)
    report = ServiceReport(
        machine(PACKAGES),
        datetime.datetime.now(datetime.UTC).date().isoformat(),
        _versions(environments),
        arguments.seconds,
        ceiling,
        tuple(loads),
        speedups(loads),
        tuple(starts),
        tuple(measure_overhead(arguments.seconds)),
        tuple(measure_leads(models, servers, workers, arguments.seconds, SETTLE_SECONDS)),
    )
    print(tables(report))
    for path in [BUILD, SAVED] if arguments.save else [BUILD]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_json(report))
    return _report([*shortfalls(report.speedups), *too_slow(report.overheads), *too_small(report.leads)])


def _report(missed: Sequence[str]) -> int:
    """Print what was missed; returns the exit code."""
    print(*missed, sep="\n")
    return 1 if missed else 0


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=3, help="whole seconds for each figure")
    parser.add_argument("--environments", type=Path, default=Path(".venv-bench"), help="of the other servers")
    parser.add_argument("--models", nargs="*", default=["digits", "resnet18"])
    parser.add_argument("--servers", nargs="*", help="beginnings of names; all by default")
    parser.add_argument(
        "--leads", action="store_true", help="only what is measured alternately; writes no file"
    )
    parser.add_argument("--save", action="store_true", help="write docs/bench/ as well")
    return parser.parse_args()


def _measure(
    models: Sequence[ServedModel], servers: Sequence[Candidate], workers: int, seconds: int
) -> tuple[list[StartResult], list[LoadResult]]:
    starts: list[StartResult] = []
    loads: list[LoadResult] = []
    for model in models:
        for candidate in servers:
            with (
                tempfile.TemporaryDirectory() as scratch,
                candidate.start(model, Path(scratch), workers) as server,
            ):
                idle = server.memory()
                settle = candidate.request(model, "binary").to_bytes()
                measure(server.url, settle, max(CONNECTIONS), SETTLE_SECONDS)
                for form in candidate.forms:
                    loads.extend(_load(candidate, model, form, server.url, seconds))
                figures = (server.ready_seconds, idle, server.memory())
                starts.append(StartResult(candidate.name, model.name, *figures))
    return starts, loads


def _load(
    candidate: Candidate, model: ServedModel, form: str, url: str, seconds: int
) -> Iterator[LoadResult]:
    """Check a response of a server, then measure it with each number of connections."""
    request = candidate.request(model, form)
    candidate.check(model, form, url)
    for connections in CONNECTIONS:
        timings = measure(url, request.to_bytes(), connections, seconds)
        print(f"{model.name}, {form}, {candidate.name}, {connections} at once: {timings}", flush=True)
        yield LoadResult(candidate.name, model.name, form, connections, timings)


def _ceiling(model: ServedModel, seconds: int) -> Timings:
    """Return what the generator makes of a server that does nothing."""
    port = free_port()
    request = PostRequest("/", model.array.tobytes(), {})
    with MeasuredServer([sys.executable, "-m", "tests.bench.service.echo", str(port)], port, "/") as server:
        return measure(server.url, request.to_bytes(), max(CONNECTIONS), seconds)


def _versions(environments: Path) -> dict[str, str]:
    """Return the versions of the other servers that are installed, and of wrk."""
    text = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    found = {}
    for name, (environment, package) in OTHERS.items():
        python = environments / environment / "bin/python"
        if python.exists():
            done = subprocess.run(
                [python, "-c", text, package], capture_output=True, check=False, text=True, cwd=environments
            )
            if done.returncode == 0:  # the wheel of Triton is not there for every platform
                found[name] = done.stdout.strip()
    # wrk's --version ends with status 1
    banner = subprocess.run([find_wrk(), "--version"], capture_output=True, check=False, text=True).stdout
    number = banner.partition(" ")[2].partition(" ")[0].rpartition("/")[2]  # as debian/4.1.0-3
    return found | {"wrk": number}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LoadError as error:
        sys.exit(str(error))
