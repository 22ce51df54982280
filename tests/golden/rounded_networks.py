"""Inputs on which networks with rounded operands are compared with PyTorch, and how far they may be from it."""

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import numpy as np

from engine import Quantization, RuntimeGraph
from engine.calibration.calibrator import Calibrator
from engine.calibration.examples import ArrayExamples
from engine.dtypes import Array

_SAMPLES = 128
"""Elements of an output that are kept."""


def _mixed(x: Array) -> Array:
    powers = np.random.default_rng(3).uniform(-30, 30, x.shape)
    return np.asarray(x * 10.0**powers, np.float32)


def _with_one(value: float) -> Callable[[Array], Array]:
    def change(x: Array) -> Array:
        changed = x.copy()
        changed.reshape(-1)[changed.size // 2 + 3] = value
        return changed

    return change


INPUTS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "drawn": lambda x: x,
        "zeros": np.zeros_like,
        "constant": lambda x: np.full_like(x, 0.7),
        "tiny": lambda x: x * np.float32(1e-30),
        "huge": lambda x: x * np.float32(1e30),
        "mixed": _mixed,
        "infinite": _with_one(np.inf),
        "minus_infinite": _with_one(-np.inf),
        "nan": _with_one(np.nan),
    }
)
"""Kind of input -> what makes it of an ordinary one."""
ORDINARY = ("drawn", "zeros", "constant", "tiny")
"""Kinds whose errors are bounded: the others saturate what comes after, where an error of any size may be right."""
NOT_FINITE = ("infinite", "minus_infinite", "nan")
"""Kinds of which PyTorch's results are not finite in part."""
_LOSS_OF_LAYER = {"bf16": 2.0**-7, "int8": 2.0**-5}
"""Share of the outputs that one rounded layer may cost; the losses of several add up as their squares."""
_TIMES_PYTORCH = 2.5
"""How many times the error of PyTorch, computing at the same precision, is allowed where that is more: narrow networks
with few outputs lose now more, now less."""


def allowed(precision: str, layers: int, of_pytorch: float) -> float:
    """Return how far outputs may be from those in float32, in Euclidean norms.

    Args:
        precision: "bf16" or "int8".
        layers: how many layers round.
        of_pytorch: how far PyTorch's own are at that precision.
    """
    return max(_LOSS_OF_LAYER[precision] * sqrt(layers), _TIMES_PYTORCH * of_pytorch)


def sampled(output: Array) -> Array:
    """Return some of an output's elements, from all over it."""
    flat = output.reshape(-1)
    return flat[:: max(1, flat.size // _SAMPLES)][:_SAMPLES]


def distance(outputs: Sequence[Array], wanted: Sequence[Array]) -> float:
    """Return the largest distance of outputs from those in float32, in Euclidean norms, where these are finite."""
    largest = 0.0
    for output, exact in zip(outputs, wanted, strict=True):
        finite = np.isfinite(exact)
        norm = float(np.linalg.norm(exact[finite].astype(np.float64)))
        off = float(np.linalg.norm(output[finite].astype(np.float64) - exact[finite]))
        largest = max(largest, off / max(norm, 1e-30))
    return largest


def calibrated(plain: RuntimeGraph, inputs: Sequence[Array]) -> Quantization:
    """Return what one run in float32 says about the ranges of a graph's tensors.

    Raises:
        InputError: the graph has no layer that can be computed in integers, or a tensor no finite number.
    """
    with TemporaryDirectory() as folder:
        archive = Path(folder) / "examples.npz"
        examples = {f"in_{place}": array[None] for place, array in enumerate(inputs)}
        np.savez(archive, **examples)  # type: ignore[arg-type]  # it takes arrays by name
        calibrator = Calibrator(plain, ArrayExamples(archive, plain.inputs), [], lambda *_: None)
        calibrator.calibrate("minmax")
        return calibrator.quantization(calibrator.candidates)
