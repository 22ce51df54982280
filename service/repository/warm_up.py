"""Compiles and runs a model when it is loaded, so that no request waits for the compiler."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from engine import KuiperError, RuntimeGraph
from service.config.limits import Limits
from service.config.model_config import FILE_NAME, ModelConfig, ModelConfigError
from service.log_context import FIELDS
from service.repository.warm_shapes import Shape, WarmShapes, batch_sizes, specs_of, warm_shapes, with_rows

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WarmedUp:
    """Shapes that a model was compiled for when it was loaded.

    Attributes:
        shapes: one per input, in the order of the graph's inputs.
        is_compiled: whether kernels were compiled; numpy alone needs none.
        seconds: what it took.
    """

    shapes: tuple[Shape, ...]
    is_compiled: bool
    seconds: float

    @property
    def fields(self) -> dict[str, object]:
        """What a log shows of it."""
        return {
            "shapes": _spell(self.shapes),
            "compiled": self.is_compiled,
            "seconds": round(self.seconds, 3),
        }


def warm_up(
    graph: RuntimeGraph, config: ModelConfig, limits: Limits, max_batch_size: int = 1
) -> tuple[WarmedUp, ...]:
    """Compile a graph for the shapes that requests are to have, and run it once on zeros of each.

    These are the shapes that the file declares, those of one image, and those listed in `model.toml`; where requests
    are run together, each also with every number of rows that such runs are given, which is compiled but not run.
    A dimension that nothing tells is taken as 1: a graph that does not run on that guess is not broken.

    Args:
        graph: the graph, built.
        config: the model's `model.toml`.
        limits: what a request may ask for.
        max_batch_size: most rows of a run that serves several requests; 1 where each is run on its own.

    Returns:
        What was compiled, in order.

    Raises:
        ModelConfigError: a shape in `model.toml` does not fit the graph, or the graph does not run on it.
        ModelFilesError: the declared inputs are larger than any request may be.
        KuiperError: the graph does not run on the very shapes that it declares.
    """
    wanted = warm_shapes(graph.inputs, config, limits)
    done = [_run(graph, item) for item in wanted]
    sizes = batch_sizes(config, max_batch_size)
    done += [_compile(graph, shapes) for shapes in with_rows(wanted, sizes)]
    return tuple(item for item in done if item is not None)


def check_shapes(graph: RuntimeGraph, config: ModelConfig, limits: Limits) -> None:
    """Plan a graph for the shapes that requests are to have, without compiling or running anything.

    Raises:
        ModelConfigError, ModelFilesError, KuiperError: as `warm_up`.
    """
    for item in warm_shapes(graph.inputs, config, limits):
        try:
            graph.plan(specs_of(graph.inputs, item.shapes))
        except KuiperError as error:
            _explain(error, item)


def _run(graph: RuntimeGraph, item: WarmShapes) -> WarmedUp | None:
    """Compile and run; None for a guess that the graph does not run on."""
    specs = specs_of(graph.inputs, item.shapes)
    started = perf_counter()
    try:
        footprint = graph.prepare(specs)
        # the memory of a run is laid out by the first one
        graph.forward([np.zeros(spec.shape, spec.dtype) for spec in specs])
    except KuiperError as error:
        _explain(error, item)
        return None
    return WarmedUp(item.shapes, footprint is not None, perf_counter() - started)


def _explain(error: KuiperError, item: WarmShapes) -> None:
    """Raise what it means that a graph does not run on shapes; nothing where they are a guess."""
    if item.is_guess:
        return
    if item.key is None:
        raise error
    problem = f"the model does not run on {_spell(item.shapes)}: {error}"
    raise ModelConfigError(FILE_NAME, item.key, problem) from error


def _compile(graph: RuntimeGraph, shapes: tuple[Shape, ...]) -> WarmedUp | None:
    """Compile; None where that many rows do not run together: then requests are run one by one."""
    started = perf_counter()
    try:
        footprint = graph.prepare(specs_of(graph.inputs, shapes))
    except KuiperError as error:
        fields = {"shapes": _spell(shapes), "reason": str(error)}
        _logger.warning("batch does not run", extra={FIELDS: fields})
        return None
    return WarmedUp(shapes, footprint is not None, perf_counter() - started)


def _spell(shapes: Sequence[Shape]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes)
