"""Sums and products of quantized tensors, requantized, as the exporter writes `FloatFunctional` of PyTorch.

The exporter does not know these operators, and calls their arguments by number: two tensors, a scale, a zero point.
"""

import numpy as np

from engine.binding.registry import layer
from engine.errors import ArgumentError
from engine.kernels.axes import broadcast
from engine.kernels.elementwise import BINARY
from engine.kernels.quantization import check_quantization, quantize
from engine.spec import QuantizedSpec, QuantizedTensor, TensorSpec, spec_of


def _infer(arg_0: TensorSpec, arg_1: TensorSpec, arg_2: float, arg_3: int) -> QuantizedSpec:
    for name, spec in (("arg_0", arg_0), ("arg_1", arg_1)):
        if not isinstance(spec, QuantizedSpec):
            raise ArgumentError(name, f"is {spec}", "a quantized tensor")
    if arg_1.dtype != arg_0.dtype:
        raise ArgumentError("arg_1", f"is {arg_1}", f"quantized to {arg_0.dtype}, as the other operand")
    check_quantization(arg_2, arg_3, arg_0.dtype)
    return QuantizedSpec(broadcast(arg_0.shape, arg_1.shape, argument="arg_1"), arg_0.dtype)


def _register(name: str, function: str, relu: bool) -> None:
    @layer(f"pnnx.custom_op.quantized.{name}", infer=_infer, takes_quantized=True)
    def forward(
        arg_0: QuantizedTensor, arg_1: QuantizedTensor, arg_2: float, arg_3: int = 0
    ) -> QuantizedTensor:
        """Compute with the real numbers, and quantize the result with scale `arg_2` and zero point `arg_3`."""
        spec = _infer(spec_of(arg_0), spec_of(arg_1), arg_2, arg_3)  # type: ignore[arg-type]  # specs of tensors
        real = BINARY[function](arg_0.real(), arg_1.real())
        kept = np.maximum(real, 0) if relu else real
        return QuantizedTensor(quantize(kept, arg_2, arg_3, spec.dtype), arg_2, arg_3)


_register("add", "add", relu=False)
_register("add_relu", "add", relu=True)
_register("mul", "mul", relu=False)
_register("mul_relu", "mul", relu=True)
