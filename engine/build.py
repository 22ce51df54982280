"""Binds all operators of a graph to the layers of their types."""

from collections.abc import Sequence

import numpy as np

from engine.binding import BoundLayer
from engine.declaration import missing_types
from engine.errors import UnsupportedOperator, UnsupportedOperatorError
from engine.operator import RuntimeOperator
from engine.registry import LayerRegistry
from engine.uses import uses_of

TYPES_COMPARED = 100
"""Unsupported types that are compared with all known ones to name the nearest; takes a millisecond each."""


def bind(
    operators: Sequence[RuntimeOperator], order: Sequence[RuntimeOperator], layers: LayerRegistry
) -> tuple[str, ...]:
    """Bind every operator to the layer of its type.

    Args:
        operators: the operators of a graph.
        order: the same in execution order.
        layers: where layers are looked up.

    Returns:
        What was taken for granted that the file does not say, a sentence each.

    Raises:
        UnsupportedOperatorError: some types have no layer; lists all such operators.
        ParameterError: a parameter or attribute is missing or of the wrong kind.
        BuildError: the file does not say which results of a layer an operator's outputs are.
    """
    _check_supported(operators, layers)
    declared = {operand.name: operand.type for operator in operators for operand in operator.outputs}
    warnings: list[str] = []
    # constants of the model may be out of range, as they may be in PyTorch
    with np.errstate(all="ignore"):
        for operator in order:
            layer = layers.find(operator.type)
            if layer is not None:
                operator.layer = BoundLayer(layer, operator.source, declared, uses_of(operator))
                declared |= missing_types(operator.layer, declared)
                warnings += operator.layer.warnings
    return tuple(warnings)


def _check_supported(operators: Sequence[RuntimeOperator], layers: LayerRegistry) -> None:
    unknown = [operator for operator in operators if operator.type not in layers]
    types = list(dict.fromkeys(operator.type for operator in unknown))
    nearest = {name: layers.nearest(name) for name in types[:TYPES_COMPARED]}
    if unknown:
        raise UnsupportedOperatorError(
            [UnsupportedOperator(op.name, op.type, nearest.get(op.type, ())) for op in unknown]
        )
