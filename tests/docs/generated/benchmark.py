"""What the kept runs of `make bench` and `make bench-service` found."""

from tests.bench.contenders import BASE
from tests.bench.models import MODELS
from tests.bench.ratios import means, to_base
from tests.bench.report import asides, summary
from tests.bench.results import Report, from_json
from tests.bench.service import report as service
from tests.bench.service import results
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
        f"Batch 1, float32, random weights from a fixed seed; medians of {rounds} in which the runtimes take turns; "
        f"{machine['processor']}, {machine['cores']} cores, {machine['instructions']}. "
        f"Versions: {machine['versions']}."
    )
    return "\n\n".join([intro, summary(report), asides(report)])


def render_short() -> str:
    """Return the lines of the README."""
    report = _report()
    lines = [_against_base(report, threads) for threads in report.threads]
    lines += [
        f"Tracing every layer changes the time of a run of {_title(cost.model)} by {cost.overhead:+.1%}."
        for cost in report.traces[:1]
    ]
    if (build := report.split) is not None:
        seconds = build.read_seconds + build.bind_seconds + build.compile_seconds
        lines.append(
            f"{_title(build.model)} goes from files to ready in {seconds:.1f} s, compiling included."
        )
    memory = report.find("resnet18", 1)
    starts = [memory[name].start for name in ("native", BASE) if name in memory]
    peaks = [start.peak_bytes for start in starts if start is not None and start.peak_bytes]
    if len(peaks) == 2:
        lines.append(
            f"Its process needs {peaks[0] / 2**20:.0f} MiB at the peak; {BASE}'s needs {peaks[1] / 2**20:.0f} MiB."
        )
    return "\n".join(f"- {line}" for line in lines)


def render_service() -> str:
    """Return the tables of the kept run of `make bench-service`, or how to make one where none is kept."""
    if not (ROOT / results.SAVED).exists():
        return "No run is kept in this repository: `make bench-service` measures on your machine and prints tables."
    return service.tables(results.from_json((ROOT / results.SAVED).read_text()))


def _against_base(report: Report, threads: int) -> str:
    ratios = {
        model: ratio
        for model in report.models
        if (ratio := to_base(report.find(model, threads), "native")) is not None
    }
    best, worst = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    mean, _ = means(report, threads, "native")
    plural = "one thread" if threads == 1 else f"{threads} threads"
    return (
        f"On {plural} it takes {mean:.2f} times as long as {BASE} (geometric mean of "
        f"{sum(MODELS[name].is_averaged for name in report.models)} convolutional networks): from {ratios[best]:.2f} "
        f"for {_title(best)} to {ratios[worst]:.2f} for {_title(worst)}."
    )


def _report() -> Report:
    return from_json(RESULTS.read_text())


def _title(model: str) -> str:
    return MODELS[model].title.partition(",")[0]
