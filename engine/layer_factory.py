"""One layer, made of one operator, without a graph around it."""

from engine import pnnx
from engine.binding import BoundLayer
from engine.errors import UnsupportedOperator, UnsupportedOperatorError
from engine.operator import RuntimeOperator
from engine.registry import LayerRegistry, registry


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
