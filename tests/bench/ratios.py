"""Ratios between runtimes, and their means over models."""

from collections.abc import Iterable
from math import exp, log
from statistics import fmean

from tests.bench.models import MODELS
from tests.bench.results import BenchReport, RuntimeResult
from tests.bench.runtimes import BASE, PEERS, RUNTIMES, of_precisions


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return the geometric mean of positive numbers; None of none."""
    logarithms = [log(value) for value in values]
    return exp(fmean(logarithms)) if logarithms else None


def fastest_peer(results: dict[str, RuntimeResult]) -> RuntimeResult | None:
    """Return the other runtime with the least time; None where none has a time."""
    peers = [results[name] for name in PEERS if name in results and results[name].seconds is not None]
    return min(peers, key=lambda result: result.seconds or 0.0, default=None)


def to_base(results: dict[str, RuntimeResult], runtime: str) -> float | None:
    """Return a runtime's time over onnxruntime's."""
    return _ratio(results.get(runtime), results.get(BASE))


def to_fastest(results: dict[str, RuntimeResult], runtime: str) -> float | None:
    """Return a runtime's time over that of the fastest other runtime."""
    return _ratio(results.get(runtime), fastest_peer(results))


def to_same_precision(results: dict[str, RuntimeResult], precision: str) -> float | None:
    """Return this engine's time over that of the fastest other runtime in the same precision."""
    names = of_precisions([precision])
    times = {name: results[name].seconds for name in names if name in results}
    ours = [time for name, time in times.items() if not RUNTIMES[name].is_peer and time is not None]
    theirs = [time for name, time in times.items() if RUNTIMES[name].is_peer and time is not None]
    return min(ours) / min(theirs) if ours and theirs else None


def means(report: BenchReport, threads: int, runtime: str) -> tuple[float | None, float | None]:
    """Return the geometric means over the averaged models of both ratios, to onnxruntime and to the fastest peer.

    None where a ratio of one of the report's models is missing: a mean over other models would compare with nothing.
    """
    tables = [report.find(name, threads) for name in report.models if MODELS[name].is_averaged]
    return _mean([to_base(t, runtime) for t in tables]), _mean([to_fastest(t, runtime) for t in tables])


def _mean(ratios: list[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return geometric_mean(known) if len(known) == len(ratios) else None


def _ratio(result: RuntimeResult | None, other: RuntimeResult | None) -> float | None:
    if result is None or other is None or result.seconds is None or other.seconds is None:
        return None
    return result.seconds / other.seconds
