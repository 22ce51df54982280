"""Binds the operators of a graph, or one without a graph, to the layers of their types."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine import pnnx
from engine.binding.bound_layer import BoundLayer
from engine.binding.boundary import at_operator
from engine.binding.contradiction import Contradiction, find_contradiction, missing_types
from engine.binding.ignored_parameters import ignored
from engine.binding.registry import LayerRegistry, registry
from engine.errors import (
    BuildError,
    KuiperError,
    ParameterError,
    UnsupportedOperator,
    UnsupportedOperatorError,
)
from engine.model.build_clock import UNLIMITED, BuildClock
from engine.model.operator import RuntimeOperator
from engine.model.ports import Port, declared_inputs
from engine.model.result_uses import uses_of
from engine.spec import TensorSpec

TYPES_COMPARED = 100
"""Unsupported types that are compared with all known ones to name the nearest; takes a millisecond each."""


TRIAL_EXTENTS = (1, 16, 64, 224, 640)
"""Sizes of dynamic axes with which a build checks that a graph runs at all."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Findings of binding a graph, a sentence each, in execution order.

    Attributes:
        assumed: assumptions about what the file does not declare.
        contradictions: where the file declares of an operator's outputs what the operator cannot give.
    """

    assumed: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]


def bind(
    operators: Sequence[RuntimeOperator],
    order: Sequence[RuntimeOperator],
    layers: LayerRegistry,
    clock: BuildClock = UNLIMITED,
) -> Bound:
    """Bind every operator to the layer of its type.

    Args:
        operators: the operators of a graph.
        order: the same in execution order.
        layers: the layer registry.
        clock: checked before each operator.

    Returns:
        Assumptions about what the file does not declare, and its contradictions.

    Raises:
        UnsupportedOperatorError: some types have no layer; lists all such operators.
        ParameterError: a parameter or attribute is missing or of the wrong kind.
        BuildError: it is ambiguous which results of a layer an operator's outputs are.
        BuildTimeoutError: it takes too long.
    """
    _check_supported(operators, layers)
    declared = {operand.name: operand.type for operator in operators for operand in operator.outputs}
    assumed: list[str] = []
    contradictions: list[Contradiction] = []
    # constants of the model may be out of range, as they may be in PyTorch
    with np.errstate(all="ignore"):
        for operator in order:
            clock.check(operator.type, operator.name)
            layer = layers.find(operator.type)
            if layer is not None:
                with at_operator(operator.type, operator.name, "cannot be built", ParameterError):
                    operator.layer = BoundLayer(layer, operator.source, declared, uses_of(operator))
                    declared |= missing_types(operator.layer, declared)
                    assumed += [*operator.layer.warnings, *ignored(layer, operator.source)]
                    problem = find_contradiction(operator.layer, declared)
                contradictions += [] if problem is None else [problem]
    return Bound(tuple(assumed), tuple(contradictions))


def refuse_contradictions(
    bound: Bound, failures: Callable[[], Iterable[KuiperError | None]]
) -> tuple[str, ...]:
    """Refuse a graph whose file contradicts itself, where that is more than a matter of words.

    Args:
        bound: findings of binding.
        failures: why the graph does not run on the shapes that the file declares, one per trial size of the dynamic
            axes; None for a size on which it runs.

    Returns:
        The contradictions that do no harm to a run, as warnings.

    Raises:
        BuildError: an operator gives numbers of another kind than the file declares, or the graph does not run on any
            of its declared shapes; names the first operator whose outputs contradict the file.
    """
    for contradiction in bound.contradictions:
        if contradiction.is_of_kind:
            raise BuildError(str(contradiction))
    if not bound.contradictions:
        return ()
    reasons = list(failures())
    if reasons and all(reason is not None for reason in reasons):
        first = bound.contradictions[0]
        raise BuildError(f"{first}; the graph does not run on its declared shapes ({reasons[0]})")
    return tuple(map(str, bound.contradictions))


def declared_failures(
    ports: Sequence[Port], plan: Callable[[tuple[TensorSpec, ...]], object]
) -> Iterator[KuiperError | None]:
    """Plan a graph for its declared shapes, with several sizes of dynamic axes; yield each error, or None.

    Args:
        ports: the graph's inputs; without declared shapes nothing is checked.
        plan: plans the graph for inputs of given types.
    """
    is_dynamic = any(None in (port.shape or ()) for port in ports)
    for extent in TRIAL_EXTENTS if is_dynamic else TRIAL_EXTENTS[:1]:
        specs = declared_inputs(ports, extent)
        if specs is None:
            return
        try:
            plan(specs)
        except KuiperError as error:
            yield error
        else:
            yield None


def _check_supported(operators: Sequence[RuntimeOperator], layers: LayerRegistry) -> None:
    unknown = [operator for operator in operators if operator.type not in layers]
    types = list(dict.fromkeys(operator.type for operator in unknown))
    nearest = {name: layers.nearest(name) for name in types[:TYPES_COMPARED]}
    if unknown:
        raise UnsupportedOperatorError(
            [UnsupportedOperator(op.name, op.type, nearest.get(op.type, ())) for op in unknown]
        )


def create_layer(
    operator: pnnx.Operator | RuntimeOperator, *, layers: LayerRegistry = registry
) -> BoundLayer:
    """Make the layer that runs an operator, as `RuntimeGraph.build` does for each of a graph.

        relu = create_layer(pnnx.Operator("nn.ReLU", "relu", inputs=["0"], outputs=["1"]))
        (y,) = relu.forward([x])

    Args:
        operator: the operator, with the operands that it takes and gives, its parameters and its attributes; in a
            graph, also the types that the file declares for them.
        layers: the layer registry; by default the engine's own registry.

    Returns:
        The layer: `forward` takes one array for each input and returns one for each output.

    Raises:
        UnsupportedOperatorError: the type has no layer.
        ParameterError: a parameter, an attribute or an operand is missing or of the wrong kind.
    """
    source = operator.source if isinstance(operator, RuntimeOperator) else operator
    layer = layers.find(source.type)
    if layer is None:
        nearest = layers.nearest(source.type)
        raise UnsupportedOperatorError([UnsupportedOperator(source.name, source.type, nearest)])
    if isinstance(operator, RuntimeOperator):
        operands = [*operator.inputs, *operator.outputs]
        return BoundLayer(layer, source, {operand.name: operand.type for operand in operands})
    return BoundLayer(layer, source)
