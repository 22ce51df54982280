"""Kernels for linear layers of integers whose rows have scales of their own."""

import numpy as np

from engine.compiler.contraction.arithmetic import Int8
from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.staged_convolution import StagedConvolution
from engine.compiler.emit.int8 import ZERO
from engine.compiler.graph import Int8Convolution, Int8Linear, RowQuantize
from engine.compiler.kernels.row_quantization import RowQuantization
from engine.compiler.memory.view import View
from engine.compiler.selection.call import Selector, selects, view_of
from engine.compiler.selection.int8 import contraction, flat_image
from engine.compiler.selection.linear import copied_rows, linear_kernel, written_rows
from engine.compiler.selection.work import convolution_work
from engine.precision import Precision
from engine.quantization.tensor_scale import TensorScale

_STEPS = TensorScale(1.0, ZERO)
"""Scale of integers before the scales of their rows."""


@selects(RowQuantize)
def select_row_quantize(selector: Selector, node: RowQuantize) -> None:
    """Choose the kernel that makes integers of rows."""
    x = copied_rows(selector, view_of(node.inputs[0]))
    integers, scales = (copied_rows(selector, view_of(tensor)) for tensor in node.outputs)
    rows, columns = x.shape
    kernel = RowQuantization(
        rows=rows,
        columns=columns,
        x_step=x.strides[0],
        out_step=integers.strides[0],
        lanes=selector.lanes,
        is_dynamic=selector.is_dynamic,
    )
    selector.call(kernel, x, integers, scales)


@selects(Int8Linear)
def select_int8_linear(selector: Selector, node: Int8Linear) -> None:
    """Choose the kernel of a linear layer."""
    x, (target, out) = copied_rows(selector, view_of(node.inputs[0])), written_rows(selector, node)
    operands = [copied_rows(selector, view_of(tensor)) for tensor in node.inputs[node.own :]]
    described = [_operand(operand, out) for operand in operands]
    made = Int8Convolution(node.steps, node.inputs, weights=node.weights, bias=None, x_scale=_STEPS)
    made.outputs = node.outputs
    epilogue = Epilogue(node.epilogue, tuple(described))
    images = flat_image(x), flat_image(out)
    numbers = np.stack([node.weights.scales, np.zeros_like(node.weights.scales)])
    kernel: DirectConvolution | StagedConvolution
    if selector.is_dynamic:  # in vectors, as only those kernels have runtime rows
        kernel = linear_kernel(selector, x, out, epilogue, Int8(_STEPS))
    else:
        views = [flat_image(view) for view in operands]
        kernel = contraction(selector, convolution_work(made, node.weights.integers, images, epilogue, views))
    weights, starts = selector.weights(made, kernel.packing, node.weights.integers, numbers)
    selector.call(kernel, images[0], weights, starts, images[1], *operands, precision=Precision.INT8)
    if target is not node.output.view:
        selector.copy(target, view_of(node.output))


def _operand(view: View, out: View) -> EpilogueOperand:
    """Return how an operand, as rows, spreads over the rows of the output."""
    if view.shape == out.shape and view.size > 1:
        return EpilogueOperand(Broadcast.FULL, (0, 0, view.strides[0]))
    if view.shape == (out.shape[0], 1):
        return EpilogueOperand(Broadcast.PIXEL, (0, 0, view.strides[0]))
    return EpilogueOperand(Broadcast.SCALAR) if view.size == 1 else EpilogueOperand(Broadcast.CHANNEL, (0,))
