"""Error and speedup of a program that rounds operands, against one in float32, measured on one input."""

from collections.abc import Mapping, Sequence
from time import perf_counter_ns

import numpy as np

from engine.compiler.program.execution import NativeRun
from engine.compiler.program.program import Program
from engine.compiler.program.trial import trial_inputs
from engine.dtypes import Array
from engine.errors import KuiperError
from engine.run.plan import MAX_RUN_BYTES
from engine.spec import TensorSpec, arrays_in

_RUNS = 5


def is_within_accuracy_budget(
    rounded: Program,
    plain: Program,
    inputs: Mapping[str, TensorSpec],
    outputs: Sequence[str],
    tolerance: float,
) -> bool:
    """Return whether a program is faster than one in float32, and loses no more than is tolerated.

    Loss is the largest over outputs of |y - y32| / |y32|, in Euclidean norms, on the first of the synthetic inputs on
    which both programs run; time is the minimum of several interleaved runs.

    Args:
        rounded: the program that rounds.
        plain: the one in float32.
        inputs: input types of both, by operand name.
        outputs: names of the operands that leave the graph.
        tolerance: the loss that is tolerated.
    """
    for trial in trial_inputs(inputs):
        try:
            results = [_run(program, trial.arrays, outputs) for program in (rounded, plain)]
        except KuiperError:
            continue  # the input is of another kind than the model takes
        if not loss(*results) <= tolerance:
            return False
        return _is_faster(rounded, plain, trial.arrays, outputs)
    return False


def loss(outputs: Sequence[Array], exact: Sequence[Array]) -> float:
    """Return the largest relative distance of outputs from exact ones; infinity if it is undefined.

    Outputs that are no floating-point numbers, as indices are, count as lost where they differ at all.
    """
    return max((_distance(*pair) for pair in zip(outputs, exact, strict=True)), default=0.0)


def _distance(output: Array, exact: Array) -> float:
    if exact.dtype.kind != "f":
        return 0.0 if np.array_equal(output, exact) else np.inf
    known = np.isfinite(exact)
    if not np.isfinite(output[known]).all():
        return np.inf
    difference = np.linalg.norm(output[known].astype(np.float64) - exact[known])
    scale = np.linalg.norm(exact[known].astype(np.float64))
    return float(difference / scale) if scale else (0.0 if difference == 0 else np.inf)


def _run(program: Program, arrays: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
    with np.errstate(all="ignore"):
        values = NativeRun(program, None, False, MAX_RUN_BYTES).execute(dict(arrays), tuple(outputs))
    return [array for value in values for array in arrays_in(value)]


def _is_faster(one: Program, other: Program, arrays: Mapping[str, Array], outputs: Sequence[str]) -> bool:
    best = [1 << 62, 1 << 62]
    for _ in range(_RUNS):
        for place, program in enumerate((one, other)):
            start = perf_counter_ns()
            _run(program, arrays, outputs)
            best[place] = min(best[place], perf_counter_ns() - start)
    return best[0] < best[1]
