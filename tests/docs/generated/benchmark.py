"""What the kept runs of `make bench` and `make bench-service` found."""

import json

from tests.bench import accuracy, surroundings
from tests.bench.models import MODELS
from tests.bench.ratios import means, to_base
from tests.bench.report import secondary, summary, table
from tests.bench.results import BenchReport, from_json
from tests.bench.runtimes import BASE
from tests.bench.service import results
from tests.bench.service.report import scaling_table, speedups_line, tables
from tests.docs.generated.application import ROOT

RESULTS = ROOT / "docs" / "bench" / "results.json"


def render() -> str:
    """Return the tables of all models on all runtimes."""
    report = _report()
    machine = report.machine
    rounds = f"{report.rounds} rounds"
    if report.fewest_rounds < report.rounds:
        rounds += f" ({report.fewest_rounds} for the slowest models)"
    intro = (
        f"Batch 1, random weights from a fixed seed; medians of {rounds} in which the runtimes take turns; "
        f"{machine['processor']}, {machine['cores']} cores, {machine['instructions']}. "
        f"Versions: {machine['versions']}."
    )
    return "\n\n".join([intro, summary(report), secondary(report)])


def render_short() -> str:
    """Return the lines of the README."""
    report = _report()
    machine = report.machine
    place = f"{machine['cores']} cores with {machine['instructions']}"
    intro = f"Time of a run relative to {BASE}'s (less is better), on {place}:"
    lines = [_against_base(report, threads) for threads in report.threads]
    lines += [
        f"A trace of every layer changes the time of {_title(cost.model)} by {cost.overhead:+.1%}."
        for cost in report.traces[:1]
    ]
    if (build := report.split) is not None:
        seconds = build.read_seconds + build.bind_seconds + build.compile_seconds
        lines.append(
            f"{_title(build.model)} is ready {seconds:.1f} s after its files are opened, compilation included."
        )
    if service := _service():
        lines.append(speedups_line(service))
    return intro + "\n\n" + "\n".join(f"- {line}" for line in lines if line)


def render_service() -> str:
    """Return the tables of the kept run of `make bench-service`, or how to make one where none is kept."""
    if service := _service():
        return tables(service)
    return (
        "No run is kept in this repository: `make bench-service` measures on your machine and prints tables."
    )


def render_scaling() -> str:
    """Return requests per second of one and of two processes in the kept run of `make bench-service`."""
    if service := _service():
        machine = service.machine
        return (
            f"{machine['processor']}, {machine['cores']} cores; {service.date}.\n\n{scaling_table(service)}"
        )
    return "No run is kept in this repository: `make bench-service` measures on your machine."


def render_surroundings() -> str:
    """Return the kept figures of `python -m tests.bench.surroundings`."""
    path = ROOT / surroundings.SAVED
    if not path.exists():
        return "No run is kept in this repository: the command prints what it measures on your machine."
    return surroundings.sentence(surroundings.from_json(path.read_text()))


def render_accuracy() -> str:
    """Return the table of the kept run of `python -m tests.bench.accuracy --save`, or how to make one."""
    path = ROOT / accuracy.SAVED
    if not path.exists():
        return "No run is kept in this repository: the command prints what it measures on your machine."
    found = json.loads(path.read_text())
    rows = [[row["runtime"], f"{row['agreement']:.1%}", f"{row['error']:.4f}"] for row in found["rows"]]
    head = [
        "runtime",
        "crops with the class of float32",
        "norm of the difference over that of the logits",
    ]
    told = found["machine"]
    place = f"{told['processor']}, {told['instructions']}; {told['versions']}"
    intro = f"{found['crops']} crops, calibrated on {found['calibration']} others; {place}."
    return f"{intro}\n\n{table(head, rows)}"


def _against_base(report: BenchReport, threads: int) -> str:
    """Return how long the engine takes relative to the base: its mean, its best and its worst model."""
    ratios = {
        model: ratio
        for model in report.models
        if (ratio := to_base(report.find(model, threads), "native")) is not None
    }
    best, worst = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    mean, _ = means(report, threads, "native")
    count = sum(MODELS[name].is_averaged for name in report.models)
    return (
        f"{'One thread' if threads == 1 else f'{threads} threads'}: {mean:.2f} in the geometric mean of {count} "
        f"convolutional networks; from {ratios[best]:.2f} ({_title(best)}) to {ratios[worst]:.2f} ({_title(worst)})."
    )


def _report() -> BenchReport:
    return from_json(RESULTS.read_text())


def _service() -> results.ServiceReport | None:
    path = ROOT / results.SAVED
    return results.from_json(path.read_text()) if path.exists() else None


def _title(model: str) -> str:
    return MODELS[model].title.partition(",")[0]
