"""Compiles and runs a model when it is loaded, so that no request has to wait for the compiler."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from engine import KuiperError, RuntimeGraph
from service.config.limits import Limits
from service.config.model_config import FILE_NAME, ModelConfig, ModelConfigError
from service.log_context import FIELDS
from service.repository.load_progress import Step, go_on
from service.repository.warm_up_shapes import (
    Shape,
    WarmUpShapes,
    batch_sizes,
    input_specs,
    warm_up_shapes,
    with_rows,
)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WarmUpResult:
    """Shapes that a model was warmed up for when it was loaded.

    Attributes:
        shapes: one per input, in the order of the graph's inputs.
        is_compiled: whether kernels were compiled; the numpy backend needs none.
        seconds: how long it took.
    """

    shapes: tuple[Shape, ...]
    is_compiled: bool
    seconds: float

    @property
    def fields(self) -> dict[str, object]:
        """The values to log."""
        return {
            "shapes": _spell(self.shapes),
            "compiled": self.is_compiled,
            "seconds": round(self.seconds, 3),
        }


def warm_up(
    graph: RuntimeGraph,
    config: ModelConfig,
    limits: Limits,
    max_batch_size: int = 1,
    step: Step = go_on,
) -> tuple[WarmUpResult, ...]:
    """Compile a graph for the shapes that requests are expected to have, and run it once on zeros of each.

    These are the shapes that the file declares, those of one image, and those listed in `model.toml`. If requests are
    run together, the graph is also compiled, but not run, for each of them with every number of rows that such runs
    have. A dynamic dimension is taken as 1; a graph that does not run on that guess is not broken.

    Args:
        graph: the graph, built.
        config: the model's `model.toml`.
        limits: what a request may ask for.
        max_batch_size: maximum rows of a run that serves several requests; 1 if every request runs on its own.
        step: called with the next shape, as "[1, 3, 224, 224]" or "batch 8".

    Returns:
        A result for each of the shapes, in order.

    Raises:
        ModelConfigError: a shape in `model.toml` does not fit the graph, or the graph does not run on it.
        ModelFilesError: the declared inputs are larger than a request may be.
        KuiperError: the graph does not run on the shapes that it declares.
        LoadStoppedError: `step` raised it.
    """
    wanted = warm_up_shapes(graph.inputs, config, limits)
    done = []
    for item in wanted:
        step(_spell(item.shapes))
        done.append(_run(graph, item))
    for shapes in with_rows(wanted, batch_sizes(config, max_batch_size)):
        step(f"batch {shapes[0][0]}")
        done.append(_compile(graph, shapes))
    return tuple(item for item in done if item is not None)


def check_shapes(graph: RuntimeGraph, config: ModelConfig, limits: Limits) -> None:
    """Plan a graph for the shapes that requests are expected to have, without compiling or running anything.

    Raises:
        ModelConfigError, ModelFilesError, KuiperError: as `warm_up`.
    """
    for item in warm_up_shapes(graph.inputs, config, limits):
        try:
            graph.plan(input_specs(graph.inputs, item.shapes))
        except KuiperError as error:
            _reraise(error, item)


def _run(graph: RuntimeGraph, item: WarmUpShapes) -> WarmUpResult | None:
    """Compile and run a graph; None if the shapes are a guess that it does not run on."""
    specs = input_specs(graph.inputs, item.shapes)
    started = perf_counter()
    try:
        footprint = graph.prepare(specs)
        # the memory of a run is laid out by the first one
        graph.forward([np.zeros(spec.shape, spec.dtype) for spec in specs])
    except KuiperError as error:
        _reraise(error, item)
        return None
    return WarmUpResult(item.shapes, footprint is not None, perf_counter() - started)


def _reraise(error: KuiperError, item: WarmUpShapes) -> None:
    """Raise the error of a graph that does not run on some shapes, unless they are a guess."""
    if item.is_guess:
        return
    if item.key is None:
        raise error
    problem = f"the model does not run on {_spell(item.shapes)}: {error}"
    raise ModelConfigError(FILE_NAME, item.key, problem) from error


def _compile(graph: RuntimeGraph, shapes: tuple[Shape, ...]) -> WarmUpResult | None:
    """Compile a graph; None if it does not run on that many rows, so that such requests run one by one."""
    started = perf_counter()
    try:
        footprint = graph.prepare(input_specs(graph.inputs, shapes))
    except KuiperError as error:
        fields = {"shapes": _spell(shapes), "reason": str(error)}
        _logger.warning("batch does not run", extra={FIELDS: fields})
        return None
    return WarmUpResult(shapes, footprint is not None, perf_counter() - started)


def _spell(shapes: Sequence[Shape]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes)
