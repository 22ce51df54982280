"""Operators that carry values in, out and along: pnnx.Input, pnnx.Output, pnnx.Attribute, tuples, expressions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.binding.arguments import BareWord, DType
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.expression import Expression
from engine.spec import Spec, TensorSpec, Value


def _infer_output(*_: Spec) -> tuple[()]:
    return ()


@layer("pnnx.Input")
def graph_input() -> tuple[()]:
    """Stand for an input: the run itself puts the caller's array in its operand's place."""
    return ()


@layer("pnnx.Output", infer=_infer_output, takes_quantized=True)
def graph_output(*values: Any) -> tuple[()]:
    """Stand for an output: the run hands out what the operand carries."""
    del values
    return ()


def _infer_attribute(data: TensorSpec, output_dtype: DType | None) -> TensorSpec:
    return TensorSpec(data.shape, _attribute_dtype(data, output_dtype))


def _prepare_attribute(data: Array, output_dtype: DType | None = None) -> dict[str, Any]:
    return {"data": data.astype(_attribute_dtype(data, output_dtype), copy=False)}


def _attribute_dtype(data: Array | TensorSpec, declared: DType | None) -> DType:
    """float16 is either the storage format of a float32 tensor or its own dtype, by the output's declared type."""
    return declared if declared == np.float16 and data.dtype == np.float32 else data.dtype


@layer("pnnx.Attribute", infer=_infer_attribute, prepare=_prepare_attribute)
def attribute(data: Array) -> Array:
    """Give a constant of the model."""
    return data


def _infer_tuple(*items: Spec) -> tuple[Spec]:
    return (tuple(items),)


@layer("prim::TupleConstruct", "prim::ListConstruct", infer=_infer_tuple, takes_quantized=True)
def construct_tuple(*items: Any) -> tuple[Any]:
    """Gather values in a tuple."""
    return (tuple(items),)


def _infer_unpack(*values: Spec) -> tuple[Spec, ...]:
    return unpack_tuple(*values)


@layer("prim::TupleUnpack", "prim::ListUnpack", infer=_infer_unpack, takes_quantized=True)
def unpack_tuple(*values: Any) -> tuple[Any, ...]:
    """Spread a tuple over the operator's outputs."""
    if len(values) != 1 or not isinstance(values[0], tuple | list):
        raise ArgumentError("inputs.0", f"got {len(values)} operands", "one tuple")
    return tuple(values[0])


def _check_word(word: str, inputs: Sequence[Any]) -> None:
    if inputs:
        raise ArgumentError("expr", f"got {word!r}", "an expression of the operands")


def _infer_expression(*inputs: Spec, expr: str | Expression) -> tuple[Spec]:
    if isinstance(expr, str):
        _check_word(expr, inputs)
        return (expr,)
    return (expr.infer(inputs),)


@layer("pnnx.Expression", infer=_infer_expression)
def expression(*inputs: Any, expr: BareWord | Expression) -> tuple[Value]:
    """Evaluate an expression over its operands, `@0` being the first; a list is one output.

    Without operands a word is text: the exporter writes the string arguments of operators that it does not know so.
    """
    if isinstance(expr, str):
        _check_word(expr, inputs)
        return (expr,)
    return (expr.evaluate(inputs),)
