"""What the kept runs of `make bench` and `make bench-service` found."""

import json
from dataclasses import replace

from tests.bench import accuracy, surroundings
from tests.bench.models import MODELS
from tests.bench.ratios import geometric_mean, to_same_precision
from tests.bench.report import secondary, summary, table
from tests.bench.results import BenchReport, from_json
from tests.bench.runtimes import BASE, PRECISIONS
from tests.bench.service import results
from tests.bench.service.report import scaling_table, servers_table, tables
from tests.bench.service.speedup import FORM, MODEL
from tests.docs.generated.application import ROOT

RESULTS = ROOT / "docs" / "bench" / "results.json"


def render() -> str:
    """Return the tables of all models on all runtimes with the fewest threads, and the means with more."""
    report = _report()
    machine = report.machine
    rounds = f"{report.rounds} rounds"
    if report.fewest_rounds < report.rounds:
        rounds += f" ({report.fewest_rounds} for the slowest models)"
    intro = (
        f"Batch 1, random weights from a fixed seed; medians of {rounds} in which the runtimes alternate; "
        f"{machine['processor']}, {machine['cores']} cores, {machine['instructions']}. "
        f"Versions: {machine['versions']}."
    )
    fewest, *more = report.threads
    shown = tuple(result for result in report.results if result.threads == fewest)
    parts = [intro, summary(replace(report, results=shown)), *(_means(report, count) for count in more)]
    return "\n\n".join([*parts, secondary(report)])


def _means(report: BenchReport, threads: int) -> str:
    """Return a sentence on the speed with a number of threads; `tests.bench.report` prints the tables."""
    found = {name: report.find(name, threads) for name in report.models if MODELS[name].is_averaged}
    means = []
    for precision in PRECISIONS:
        ratios = [to_same_precision(results, precision) for results in found.values()]
        if mean := geometric_mean([ratio for ratio in ratios if ratio is not None]):
            means.append(f"{mean:.2f} in {precision}")
    return f"With {threads} threads, the geometric mean of the ratio to the fastest peer is {' and '.join(means)}."


def render_engines() -> str:
    """Return the README's table of engines: milliseconds of a run on one thread, by network."""
    report = _report()
    machine = report.machine
    shown = ("native", BASE, "openvino", "ncnn", "torch")
    rows = []
    for model in report.models:
        results = report.find(model, report.threads[0])
        times = [result.seconds if (result := results.get(name)) else None for name in shown]
        rows.append([_title(model), *("fails" if time is None else f"{time * 1e3:.1f}" for time in times)])
    head = ["network", "Kuiper Serve", "ONNX Runtime", "OpenVINO", "ncnn", "PyTorch"]
    place = f"{machine['processor']} with {machine['instructions']}"
    intro = f"Milliseconds per run, float32, batch 1, one thread, {place} (`make bench`, ten minutes):"
    return f"{intro}\n\n{table(head, rows)}"


def render_servers() -> str:
    """Return the README's table of servers: requests per second, by concurrency."""
    if service := _service():
        cores = service.machine["cores"]
        intro = f"Requests per second for `{MODEL}` with {FORM} input, {cores} cores "
        intro += "(`make bench-service`, fifteen minutes):"
        return f"{intro}\n\n{servers_table(service)}"
    return "No run is kept in this repository: `make bench-service` measures on your machine."


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
    reported = found["machine"]
    place = f"{reported['processor']}, {reported['instructions']}; {reported['versions']}"
    intro = f"{found['crops']} crops, calibrated on {found['calibration']} others; {place}."
    return f"{intro}\n\n{table(head, rows)}"


def _report() -> BenchReport:
    return from_json(RESULTS.read_text())


def _service() -> results.ServiceReport | None:
    path = ROOT / results.SAVED
    return results.from_json(path.read_text()) if path.exists() else None


def _title(model: str) -> str:
    return MODELS[model].title.partition(",")[0]
