"""Whether a graph computes in 8-bit integers, and by which quantization."""

from dataclasses import replace
from pathlib import Path

from engine.backend import Backend, multiplies_bytes
from engine.errors import QuantizationError
from engine.executor import ExecutorOptions
from engine.precision import Precision
from engine.quantization.scheme import Quantization
from engine.quantization.sidecar import read_sidecar, sidecar_path

Choice = tuple[Quantization | None, ExecutorOptions, tuple[str, ...]]
"""A quantization, None for none; the options of the graph's executor then; and what is to be said of the choice."""


def choose_quantization(
    given: Quantization | None, options: ExecutorOptions, backend: Backend, param: Path, binary: Path
) -> Choice:
    """Return what a graph computes in integers.

    `INT8` does as it is given, or as the file beside the model says. `AUTO` does so where there is such a file, the
    error that was measured when it was made is tolerated, and the processor has instructions for products of bytes.

    Args:
        given: what the caller gave; None for the file beside the model.
        options: of the graph.
        backend: what runs it, NUMPY or NATIVE.
        param: the `.param` file.
        binary: the `.bin` file.

    Raises:
        QuantizationError: `INT8` was asked for, and the file is missing or not what it has to be.
    """
    if options.precision is Precision.INT8:
        return given or read_sidecar(param, binary), options, ()
    if options.precision is not Precision.AUTO or not sidecar_path(param).exists():
        return None, options, ()
    try:
        found = read_sidecar(param, binary)
    except QuantizationError as error:
        return None, options, (f"precision auto leaves int8 out: {error}",)
    loss = None if found.calibration is None else found.calibration.error
    if loss is None or loss > options.tolerance or not multiplies_bytes(backend):
        return None, options, ()
    return found, replace(options, precision=Precision.INT8), ()
