"""The head of YOLOv5: a pointwise convolution, and a few operations on each element of it."""

import numpy as np

from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.graph import Concatenation, Convolution, Node, Tensor
from engine.compiler.lowering.context import LoweringContext, lowers
from engine.compiler.lowering.looks import look
from engine.compiler.lowering.pointwise import pointwise_tensor
from engine.compiler.memory.view import View
from engine.kernels.detection import Stage, factors

_CELLS_FIRST = (0, 1, 3, 4, 2)


@lowers("models.yolo.Detect")
def detect(context: LoweringContext) -> Node | None:
    """Lower a head that decodes float32 feature maps."""
    places = range(len(context.inputs))
    if not all(map(context.is_float, places)):
        return None
    stages: tuple[Stage, ...] = context.value("stages")
    decoded = [
        _decode(context, stage, context.operand(place)) for stage, place in zip(stages, places, strict=True)
    ]
    return Concatenation([context.index], decoded, axis=1)


def _decode(context: LoweringContext, stage: Stage, x: Tensor) -> Tensor:
    """Add what decodes a feature map; returns its boxes, (batch, boxes, values)."""
    batch, _, rows, columns = x.shape
    anchors, values = len(stage.anchors), stage.values
    node = Convolution(
        [context.index],
        [x],
        weight=stage.weight,
        bias=stage.bias,
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        dilation=(1, 1),
        groups=1,
        is_computed=False,
    )
    (head,) = context.add(node, (batch, anchors * values, rows, columns))

    def cells_first(view: View) -> View | None:
        apart = view.reshaped((batch, anchors, values, rows, columns))
        return None if apart is None else apart.permuted(_CELLS_FIRST)

    maps = look(context, head, (batch, anchors, rows, columns, values), cells_first)
    y = apply("sigmoid", Leaf(1))
    squared = apply("mul", apply("mul", y, y), Leaf(3))
    expression = apply("add", apply("add", apply("mul", y, Leaf(2)), squared), Leaf(4))
    constants = [context.make_constant(factor.astype(np.float32)) for factor in factors(stage, rows, columns)]
    boxes = pointwise_tensor(context, maps, expression, *constants)
    shape = (batch, anchors * rows * columns, values)
    return look(context, boxes, shape, lambda view: view.reshaped(shape))
