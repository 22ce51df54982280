"""Whether a graph computes in integers or with weights of four bits, and by which quantization."""

from dataclasses import replace
from pathlib import Path

from engine.backend import Backend, describe_processor, multiplies_bytes, weight_quantizer, weight_rounder
from engine.errors import BuildError
from engine.model.int4_binding import round_weights
from engine.model.int8_binding import apply_quantization
from engine.model.quantized_binding import compute_in_integers
from engine.model.topology import LinkedGraph
from engine.precision import Precision
from engine.quantization.scheme import Quantization
from engine.quantization.sidecar import read_sidecar, sidecar_path
from engine.run.executor import ExecutorOptions

Choice = tuple[Quantization | None, ExecutorOptions, tuple[str, ...]]
"""A quantization, None for none; the executor options that follow from it; and warnings about the choice."""


def choose_quantization(
    given: Quantization | None,
    options: ExecutorOptions,
    backend: Backend,
    files: tuple[Path, Path],
    linked: LinkedGraph,
) -> Choice:
    """Return what a graph computes in integers, and let its layers do so; kernels do those that PyTorch quantized.

    `INT8` uses the given one, or the file beside the model. `AUTO` does so if there is such a file, its measured error
    is within the accuracy budget, and the processor has instructions for products of bytes; but not where another
    precision was faster when the file was made, on such a processor and as many threads. `INT4` needs none: it rounds
    weights.

    Args:
        given: the caller's quantization; None for the file beside the model.
        options: options of the graph.
        backend: NUMPY or NATIVE.
        files: the `.param` file and the `.bin` file.
        linked: the graph, its operators bound.

    Raises:
        QuantizationError: `INT8` was requested, and the file is missing or malformed.
        BuildError: `INT8` was requested, and the quantization does not fit the graph.
    """
    if options.precision is Precision.INT8:
        found = given or read_sidecar(*files)
        choice: Choice = (
            found,
            options,
            apply_quantization(found, linked.order, linked.operands, weight_quantizer(backend)),
        )
    elif options.precision is Precision.INT4:
        choice = None, options, round_weights(linked.order, weight_rounder(backend))
    else:
        choice = _choose_measured(options, backend, files, linked)
    if choice[0] is None and backend is Backend.NATIVE:
        compute_in_integers(linked.order)
    return choice


def _choose_measured(
    options: ExecutorOptions, backend: Backend, files: tuple[Path, Path], linked: LinkedGraph
) -> Choice:
    """Choose the quantization in the file beside the model if `AUTO` does; otherwise None."""
    if options.precision is not Precision.AUTO or not sidecar_path(files[0]).exists():
        return None, options, ()
    try:
        found = read_sidecar(*files)
        loss = None if found.calibration is None else found.calibration.error
        if loss is None or loss > options.tolerance or not multiplies_bytes(backend):
            return None, options, ()
        if _was_slower(found, describe_processor(backend, options.threads)):
            return None, options, ()
        doubtful = apply_quantization(found, linked.order, linked.operands, weight_quantizer(backend))
    except BuildError as error:
        return None, options, (f"precision auto leaves int8 out: {error}",)
    return found, replace(options, precision=Precision.INT8), doubtful


def _was_slower(quantization: Quantization, processor: str) -> bool:
    """Return whether int8 is known to be slower than another precision on a processor."""
    runs = None if quantization.figures is None else quantization.figures.runs
    return runs is not None and runs.processor == processor and not runs.is_int8_fastest
