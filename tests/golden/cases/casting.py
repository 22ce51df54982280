"""Layers that change the dtype of a tensor, or put other values in its place."""

from typing import Any

from tests.golden.case import LayerCase, boolean, f32, function, i64, tensor


def cast(name: str, dtype: str, *inputs: Any) -> LayerCase:
    """Make a case of Tensor.to with a dtype."""
    return function("Tensor.to", name, lambda torch, x: x.to(getattr(torch, dtype)), *inputs)


CASES: list[LayerCase] = [
    cast("double", "float64", f32(3, 4)),
    cast("float_to_int", "int32", f32(9, low=-9, high=9)),
    cast("float_to_long", "int64", f32(9, low=-9, high=9)),
    cast("float_to_byte", "uint8", f32(9, low=0, high=99)),
    cast("float_to_short", "int16", f32(9, low=-99, high=99)),
    cast("long_to_char", "int8", i64(9, low=-999, high=999)),
    cast("int_to_float", "float32", i64(9, low=-9)),
    cast("float_to_bool", "bool", tensor("f32", 9)),
    cast("int_to_bool", "bool", i64(9, high=2)),
    cast("bool_to_int", "int64", boolean(9)),
    cast("bool_to_float", "float32", boolean(9)),
    cast("float_to_complex", "complex64", f32(9)),
    cast("half_to_float", "float32", tensor("f16", 9)),
    function("Tensor.to", "copy", lambda torch, x: x.to(torch.float64, copy=True), f32(3), also=((f32(5),),)),
    function("Tensor.type_as", "long", lambda torch, x, y: x.type_as(y), f32(3, 4, low=-9, high=9), i64(2)),
    function("Tensor.type_as", "float", lambda torch, x, y: x.type_as(y), boolean(3, 4), tensor("f64", 2)),
    function("Tensor.fill", "number", lambda torch, x: x.clone().fill_(2.5), f32(3, 4), also=((f32(2, 2),),)),
    function("Tensor.fill", "int_tensor", lambda torch, x: x.clone().fill_(7), i64(3, 4)),
    function("Tensor.fill", "tensor", lambda torch, x, y: x.clone().fill_(y[0]), f32(3, 4), f32(2)),
]
