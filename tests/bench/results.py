"""What a run of the benchmark found, as data and as JSON."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BUILD = Path("build/bench.json")
"""Where every run writes to."""
SAVED = Path("docs/bench/results.json")
"""Where a run writes to that is to be shown."""
_DIGITS, _LINE = 5, 320


@dataclass(frozen=True)
class Startup:
    """What it took until a runtime could run.

    Attributes:
        load_seconds: from files to ready, imports done before.
        first_seconds: the first run, in which some compile.
        peak_bytes: most memory of the process until after three runs; None where the system does not say.
        error: largest difference to PyTorch's outputs, relative to the largest.
    """

    load_seconds: float
    first_seconds: float
    peak_bytes: int | None
    error: float

    @property
    def build_seconds(self) -> float:
        """From files to the first response."""
        return self.load_seconds + self.first_seconds


@dataclass(frozen=True)
class RuntimeResult:
    """One runtime on one model with a number of threads.

    Attributes:
        seconds: median over the rounds; None where it failed.
        start: what it took until it could run.
        failure: why it has no time.
        rounds: how many samples it has.
    """

    model: str
    threads: int
    runtime: str
    seconds: float | None
    start: Startup | None
    failure: str | None = None
    rounds: int = 0


@dataclass(frozen=True)
class LayerTime:
    """One layer of the native backend.

    Attributes:
        name, type: of the operator.
        backend: what ran it.
        fused: operators that its kernel did too.
        shape: of its first output.
        seconds: median.
        gflops: 1e9 operations of its contractions per second; two per multiply-add, counted as if done directly.
        share: part of the machine's peak.
    """

    name: str
    type: str
    backend: str
    fused: int
    shape: tuple[int, ...]
    seconds: float
    gflops: float
    share: float


@dataclass(frozen=True)
class LayerTable:
    """All layers of a model that take time, in execution order, and the machine's peak at the time."""

    model: str
    threads: int
    peak_gflops: float
    layers: tuple[LayerTime, ...]


@dataclass(frozen=True)
class TraceCost:
    """Median seconds of a run without and with trace, sample by sample."""

    model: str
    threads: int
    off_seconds: float
    on_seconds: float

    @property
    def overhead(self) -> float:
        """What tracing adds, as part of the time without."""
        return self.on_seconds / self.off_seconds - 1


@dataclass(frozen=True)
class Throughput:
    """Requests per second of two workers with one thread each: over one graph, and over one session each."""

    model: str
    native: float
    base: float


@dataclass(frozen=True)
class StartupPhases:
    """Where the time until the first response goes, imports apart."""

    model: str
    import_seconds: float
    read_seconds: float
    bind_seconds: float
    compile_seconds: float
    run_seconds: float


@dataclass(frozen=True)
class BenchReport:
    """A run of the benchmark."""

    machine: dict[str, str]
    rounds: int
    results: tuple[RuntimeResult, ...] = ()
    layers: tuple[LayerTable, ...] = ()
    traces: tuple[TraceCost, ...] = ()
    throughput: Throughput | None = None
    split: StartupPhases | None = None
    import_seconds: float | None = None
    notes: tuple[str, ...] = field(default=())

    def find(self, model: str, threads: int) -> dict[str, RuntimeResult]:
        """Return a model's results by runtime."""
        return {r.runtime: r for r in self.results if (r.model, r.threads) == (model, threads)}

    @property
    def fewest_rounds(self) -> int:
        """The rounds of the slowest model: comparisons have a limit of time."""
        return min((result.rounds for result in self.results if result.seconds is not None), default=0)

    @property
    def models(self) -> list[str]:
        """Names of the models that ran, in order."""
        return list(dict.fromkeys(result.model for result in self.results))

    @property
    def threads(self) -> list[int]:
        """Numbers of threads, in order."""
        return sorted({result.threads for result in self.results})


def to_json(report: BenchReport) -> str:
    """Return a report as JSON, with each row of a table on one line."""
    data = _rounded(dataclasses.asdict(report))
    return _lines(data, "") + "\n"


def from_json(text: str) -> BenchReport:
    """Return the report of a JSON text that `to_json` wrote."""
    data = json.loads(text)
    data["results"] = tuple(
        RuntimeResult(**row | {"start": Startup(**row["start"]) if row["start"] else None})
        for row in data["results"]
    )
    data["layers"] = tuple(
        LayerTable(
            **table
            | {"layers": tuple(LayerTime(**row | {"shape": tuple(row["shape"])}) for row in table["layers"])}
        )
        for table in data["layers"]
    )
    data["traces"] = tuple(TraceCost(**row) for row in data["traces"])
    data["throughput"] = Throughput(**data["throughput"]) if data["throughput"] else None
    data["split"] = StartupPhases(**data["split"]) if data["split"] else None
    data["notes"] = tuple(data["notes"])
    return BenchReport(**data)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def _lines(value: Any, indent: str) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) <= _LINE or not isinstance(value, dict | list):
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_lines(item, inner)}" for key, item in value.items()]
    else:
        items = [_lines(item, inner) for item in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n" + ",\n".join(inner + item for item in items) + f"\n{indent}{end}"
