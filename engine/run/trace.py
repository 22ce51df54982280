"""Traces of runs: operators, times, shapes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from engine.dtypes import Array, pnnx_name
from engine.errors import InputError, describe_problem
from engine.spec import QuantizedTensor, Value

_BLOCK_ELEMENTS = 1 << 16
"""Elements whose statistics are computed at once: 512 KiB in float64."""


class TraceLevel(IntEnum):
    """How much of a run to record."""

    OFF = 0
    ON = 1
    STATISTICS = 2


@dataclass(frozen=True, slots=True)
class Statistics:
    """Distribution of the finite elements of a tensor, and how many are not finite.

    `minimum`, `maximum`, `mean` and `std` (population) are None where no element is finite, and for
    complex tensors are those of the absolute values. `count` is the number of finite elements.
    """

    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    nan: int
    inf: int
    count: int = 0


class OperandTrace(NamedTuple):
    """One operand as an operator saw it.

    Attributes:
        name: operand name.
        shape: shape of the tensor, None for scalars and tuples.
        dtype: PNNX dtype name of a tensor, Python type name of anything else.
        statistics: set for outputs with requested statistics.
        backend: of statistics, which backend computed the tensor that they describe: `native` for the compiled program,
            `numpy` for a run of the reference implementation; None where there are none. A tensor that never leaves the
            registers of a compiled kernel is one of such a run.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    statistics: Statistics | None = None
    backend: str | None = None

    @property
    def plain(self) -> "OperandTrace":
        """The same without statistics, as it stands among the inputs of others."""
        return self if self.statistics is None else self._replace(statistics=None, backend=None)


class Candidate(NamedTuple):
    """A way to compute a layer that the compiler considered.

    Attributes:
        name: what it is called.
        estimate_us: microseconds that the cost model expects of it, on one thread.
        is_chosen: whether it was chosen.
    """

    name: str
    estimate_us: float
    is_chosen: bool


class LayerTrace(NamedTuple):
    """One operator's part of a run.

    Attributes:
        index: place in execution order.
        name: operator name.
        type: PNNX type string.
        inputs: operands that it took.
        outputs: operands that it gave.
        start_us: microseconds from the start of the run.
        duration_us: microseconds that the layer took.
        share: part of the sum of all layers' durations, 0 to 1.
        multiply_adds: multiply-adds of contractions (convolution, matrix product, …); 0 for all else.
        bytes_moved: bytes of inputs, attributes and outputs together.
        backend: `native` where a compiled kernel did the work, `numpy` where the layer's own forward did, `folded`
            where it was done at build because no input changes it.
        fused: operators whose work the kernel of this one did too.
        fused_into: the operator whose kernel did this one's work, in no time of its own; None for all others.
        precision: what the operands of its products were rounded to: `f32` (not at all), `bf16` or `int8`, or its
            weights alone (`int4`); `f32` for all other operators.
        candidates: the ways to compute its products that the compiler considered; empty where there was no choice.
    """

    index: int  # type: ignore[assignment]  # a field, which hides the method of tuples
    name: str
    type: str
    inputs: tuple[OperandTrace, ...]
    outputs: tuple[OperandTrace, ...]
    start_us: float
    duration_us: float
    share: float
    multiply_adds: int
    bytes_moved: int
    backend: str = "numpy"
    fused: tuple[str, ...] = ()
    fused_into: str | None = None
    precision: str = "f32"
    candidates: tuple[Candidate, ...] = ()


class RunTrace:
    """A whole run.

    Args:
        total_us: microseconds from the start of the run to the end of its last layer.
        layers: every operator that ran, in execution order; or a function that makes them from the run's times when
            they are first read.
        start_ns: start of the run on the clock of `time.perf_counter_ns`.
        is_observed: whether the run also captured values or took statistics: its times are not those of plain runs.
        pieces: rows of each run, where the rows of the inputs were run in parts: layers have the sums of their times,
            and follow each other; empty for a single run.
    """

    __slots__ = ("_layers", "_make", "is_observed", "pieces", "start_ns", "total_us")

    def __init__(
        self,
        total_us: float,
        layers: tuple[LayerTrace, ...] | Callable[[], tuple[LayerTrace, ...]],
        start_ns: int = 0,
        is_observed: bool = False,
        pieces: tuple[int, ...] = (),
    ) -> None:
        self.total_us = total_us
        self.start_ns = start_ns
        self.is_observed = is_observed
        self.pieces = pieces
        self._layers = layers if isinstance(layers, tuple) else None
        self._make = None if isinstance(layers, tuple) else layers

    @property
    def layers(self) -> tuple[LayerTrace, ...]:
        """Every operator that ran, in execution order."""
        make = self._make
        if self._layers is None and make is not None:
            self._layers = make()
            self._make = None
        return self._layers or ()


_LEVEL_NAMES = {level.name.lower(): level for level in TraceLevel} | {"stats": TraceLevel.STATISTICS}
"""Name -> level; `stats` is what the HTTP API calls it."""


def choose_level(wanted: str) -> TraceLevel:
    """Return the level of a name: `off`, `on`, `statistics` or, in short, `stats`.

    Raises:
        InputError: there is no such level.
    """
    level = _LEVEL_NAMES.get(wanted) if isinstance(wanted, str) else None
    if level is None:
        expected = f"one of {', '.join(level.name.lower() for level in TraceLevel)}, or a TraceLevel"
        raise InputError(describe_problem("trace", f"is {wanted!r:.80}", expected))
    return level


def trace_operand(name: str, value: Value, backend: str | None = None) -> OperandTrace:
    """Describe the value that an operand carried: of a quantized tensor, its integers' dtype and its real numbers.

    Args:
        name: operand name.
        value: its value.
        backend: the backend that computed it, with statistics; None without.
    """
    tensor, real = value, value
    if isinstance(value, QuantizedTensor):
        tensor, real = value.values, value.real() if backend else None
    if not isinstance(tensor, np.ndarray):
        return OperandTrace(name, None, type(value).__name__)
    measured = measure(real) if backend and isinstance(real, np.ndarray) else None
    return OperandTrace(name, tensor.shape, pnnx_name(tensor.dtype), measured, backend if measured else None)


def measure(array: Array) -> Statistics:
    """Return the statistics of an array of any dtype; computed block by block, as temporaries are larger than it."""
    if array.size <= _BLOCK_ELEMENTS:
        return _measure_block(array)
    blocks = np.nditer(array, ["external_loop", "buffered"], ["readonly"], buffersize=_BLOCK_ELEMENTS)
    return join_statistics([_measure_block(np.asarray(block)) for block in blocks])


def join_statistics(parts: Sequence[Statistics]) -> Statistics:
    """Return the statistics of all elements of several tensors, at least one."""
    nan, inf = sum(part.nan for part in parts), sum(part.inf for part in parts)
    counted = [part for part in parts if part.count]
    count = sum(part.count for part in counted)
    if not count:
        return Statistics(minimum=None, maximum=None, mean=None, std=None, nan=nan, inf=inf)
    weights, means, stds = np.array([(part.count, part.mean, part.std) for part in counted]).T
    mean = float(weights @ means) / count
    return Statistics(
        minimum=min(part.minimum for part in counted if part.minimum is not None),
        maximum=max(part.maximum for part in counted if part.maximum is not None),
        mean=mean,
        std=math.sqrt(float(weights @ (stds**2 + (means - mean) ** 2)) / count),
        nan=nan,
        inf=inf,
        count=count,
    )


def _measure_block(array: Array) -> Statistics:
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    if np.iscomplexobj(array):
        array = np.abs(array)
    nan = inf = 0
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            nan = int(np.isnan(array).sum())
            inf = int(array.size - finite.sum() - nan)
            array = array[finite]
    if array.size == 0:
        return Statistics(minimum=None, maximum=None, mean=None, std=None, nan=nan, inf=inf)
    mean = float(array.mean(dtype=np.float64))
    std = float(array.std(dtype=np.float64))
    return Statistics(
        minimum=float(array.min()),
        maximum=float(array.max()),
        mean=mean,
        std=std,
        nan=nan,
        inf=inf,
        count=array.size,
    )


def shares(durations: Sequence[float]) -> list[float]:
    """Return each duration's part of their sum; zeros where the sum is zero."""
    total = sum(durations)
    return [duration / total if total else 0.0 for duration in durations]
