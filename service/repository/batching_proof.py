"""Proof that a graph treats the first axis of its inputs and outputs as a batch.

A PNNX file does not say so: a reshape may hold the batch size of the export, and any layer may mix rows. So the graph
is run on rows one by one and together, and both have to give the same results.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from engine import PNNX_COMPUTE, Array, Backend, KuiperError, Port, Precision, RuntimeGraph, TensorSpec
from service.config.limits import Limits
from service.repository.load_progress import Step, go_on

TOLERANCE = 1e-5
"""Largest accepted difference between a row of a batch and the same row alone, relative to its largest magnitude."""
ROUNDED_TOLERANCE = 0.05
"""The same where operands are rounded to bfloat16 or to integers: last digits that differ with the number of rows
decide which of two neighbours a number becomes. So this shows mistakes alone; rows that mix are found in float32."""
OPEN_EXTENTS = (5, 8, 32, 64, 224, 1)
"""Extents that are tried for the dimensions that the file leaves open; all of them get the same."""
EXTENTS_PROVED = 2
"""Number of these extents that the proof covers, if the graph runs on that many."""
RowShapes = tuple[tuple[int, ...], ...]
"""Shape of one row of each input, without the batch axis."""
_SCALES = (1.0, 40.0, 0.025)
"""Magnitudes of neighbouring rows; they differ so that a row which depends on its neighbours is noticed."""


class _NotRunnableError(Exception):
    """The graph does not run on a single row of some shapes, so they prove nothing."""


def find_obstacle(
    graph: RuntimeGraph,
    max_rows: int,
    limits: Limits,
    known: Sequence[RowShapes] = (),
    step: Step = go_on,
) -> str | None:
    """Return why requests for a graph cannot be run together; None if it is proved that they can.

    Rows of the declared dtypes look random, and are the same each time. They are run one by one, two, four and
    `max_rows` at a time, which are numbers of rows that batches have, and at different positions of the batch. All
    results have to agree to within `TOLERANCE`, those that are not floating-point exactly. A graph that rounds operands
    has to pass in float32, computed by numpy, and in its own precision to within `ROUNDED_TOLERANCE`.

    Args:
        graph: the graph, built.
        max_rows: maximum rows to be run together, at least 2.
        limits: what a request may ask for; no larger input is tried.
        known: row shapes that requests are expected to have; they are tried before any others.
        step: called with the number of rows that are tried next, as "batch 8".

    Raises:
        LoadStoppedError: `step` raised it.
    """
    for port in graph.inputs:
        if not port.shape or port.dtype is None:
            what = "is a scalar" if port.shape == () else "declares no shape"
            return f"input {port.operand} {what}: there is no batch axis"
    if not graph.inputs or not graph.outputs:
        return "the graph has no inputs or no outputs"
    if graph.precision is Precision.F32:
        return _prove(graph, max_rows, limits, known, step)
    obstacle = _prove(_ExactGraph(graph), max_rows, limits, known, step)
    return obstacle or _prove(graph, max_rows, limits, known, step, ROUNDED_TOLERANCE)


class _ExactGraph:
    """The graph of the same files in float32, which compiles nothing, and runs within the memory that the graph may.

    Args:
        graph: the graph that serves.
    """

    def __init__(self, graph: RuntimeGraph) -> None:
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self._graph = graph
        self._exact = RuntimeGraph(graph.param_path, graph.bin_path, backend=Backend.NUMPY)
        self._exact.build()

    def forward(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the graph, as `RuntimeGraph.forward`; LayerError where the graph that serves may not take the memory."""
        self._graph.plan([TensorSpec(array.shape, array.dtype) for array in inputs])
        return self._exact.forward(inputs)


def _prove(
    graph: RuntimeGraph | _ExactGraph,
    max_rows: int,
    limits: Limits,
    known: Sequence[RowShapes],
    step: Step,
    tolerance: float = TOLERANCE,
) -> str | None:
    proofs, reason = 0, ""
    guessed = (_row_shapes(graph.inputs, extent) for extent in OPEN_EXTENTS)
    for shapes in dict.fromkeys((*known, *guessed)):
        try:
            obstacle = _try(graph, shapes, max_rows, limits, step, tolerance)
        except _NotRunnableError as error:
            reason = reason or str(error)
            continue
        if obstacle is not None:
            return obstacle
        proofs += 1
        if proofs == EXTENTS_PROVED:
            break
    return None if proofs else reason


def _row_shapes(ports: Sequence[Port], extent: int) -> RowShapes:
    """Return the shape of a row of each input, with `extent` for the dynamic dimensions."""
    return tuple(tuple(extent if dim is None else dim for dim in (port.shape or ())[1:]) for port in ports)


def _try(
    graph: RuntimeGraph | _ExactGraph,
    shapes: RowShapes,
    max_rows: int,
    limits: Limits,
    step: Step,
    tolerance: float,
) -> str | None:
    """Return why rows of these shapes cannot be run together; None if they can."""
    rows = max(3, max_rows)
    inputs = [_draw(port, (rows, *shape), limits) for port, shape in zip(graph.inputs, shapes, strict=True)]
    step("batch 1")
    try:
        alone = {row: _run(graph, inputs, row, row + 1) for row in {0, 1, 2, max_rows - 1}}
    except KuiperError as error:
        raise _NotRunnableError(f"it does not run on one row: {error}") from error
    for start, stop in dict.fromkeys(((0, 1), (0, 2), (1, 3), (0, min(4, max_rows)), (0, max_rows))):
        step(f"batch {stop - start}")
        try:
            together = _run(graph, inputs, start, stop)
        except KuiperError as error:
            return f"it does not run on {stop - start} rows: {error}"
        singles = {row - start: alone[row] for row in alone if start <= row < stop}
        fault = _compare(graph.outputs, singles, together, stop - start, tolerance)
        if fault is not None:
            return fault
    return None


def _draw(port: Port, shape: tuple[int, ...], limits: Limits) -> Array:
    """Return rows for an input as if drawn; neighbours differ in magnitude, or at least in their first elements."""
    rows = shape[0]
    if prod(shape) > limits.tensor_elements:
        problem = f"{rows} rows of input {port.operand} have {prod(shape)} elements"
        raise _NotRunnableError(f"{problem}; the maximum is {limits.tensor_elements}")
    dtype = PNNX_COMPUTE[port.dtype or "f32"]
    if dtype.kind in "iub":  # 0 and 1 are valid as numbers, as indices and as truth values
        values: Array = (_scattered(shape) > 0).astype(np.int64)
        values.reshape(rows, -1)[:, :1] = np.arange(rows)[:, None] % 2
        values[1], values[2] = 1, 0  # others hold both: their least and largest are those of a whole batch
        return values.astype(dtype)
    scales = np.resize(_SCALES, rows).reshape(-1, *[1] * (len(shape) - 1))
    drawn: Array = _scattered(shape) * scales
    if dtype.kind == "c":
        drawn = drawn + 1j * _scattered(shape, 1) * scales
    return drawn.astype(dtype)


def _scattered(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return numbers between -2 and 2 that look random, the same for a seed.

    They are those of splitmix64 (Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014); numpy's
    own would have to be imported, which takes longer than all of the proof for a small model.
    """
    count = prod(shape)
    state = np.arange(seed * count + 1, (seed + 1) * count + 1, dtype=np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    )
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    # the upper bits, as many as a float64 holds
    numbers: Array = (state >> np.uint64(11)).astype(np.float64) * 2.0**-51 - 2.0
    return numbers.reshape(shape)


def _run(graph: RuntimeGraph | _ExactGraph, inputs: Sequence[Array], start: int, stop: int) -> list[Array]:
    # copies, so that a layer that works in place cannot change the input of the next run
    return graph.forward([array[start:stop].copy() for array in inputs])


def _compare(
    ports: Sequence[Port],
    singles: Mapping[int, Sequence[Array]],
    together: Sequence[Array],
    rows: int,
    tolerance: float,
) -> str | None:
    for index, output in enumerate(together):
        name = ports[index].operand if len(ports) == len(together) else str(index)
        if output.shape[:1] != (rows,):
            return f"output {name} of {rows} rows has shape {output.shape}, without the rows in front"
        for row, single in singles.items():
            if len(single) != len(together) or single[index].shape != (1, *output.shape[1:]):
                return f"output {name} has another shape for one row than for {rows}"
            if not _is_close(output[row], single[index][0], tolerance):
                return f"output {name} of row {row} depends on what else is among the {rows} rows"
    return None


def _is_close(got: Array, expected: Array, tolerance: float) -> bool:
    if expected.dtype.kind not in "fc":
        # an index or a truth value may be another where the numbers that it is chosen by are rounded
        return tolerance > TOLERANCE or bool(np.array_equal(got, expected))
    finite = np.isfinite(expected)
    if not np.array_equal(got[~finite], expected[~finite], equal_nan=True):
        return False
    scale = np.abs(expected[finite]).max(initial=0)
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.all(np.abs(got[finite] - expected[finite]) <= tolerance * scale))
