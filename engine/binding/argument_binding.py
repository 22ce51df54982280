"""Binding of a layer's arguments to the operands, attributes and parameters of an operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import pnnx
from engine.binding.arguments import Argument
from engine.binding.registry import Layer
from engine.binding.results import Declared
from engine.dtypes import Array, widen
from engine.errors import ArgumentError, ExpressionError, ParameterError, describe_problem

_ONNX_NAMES = {"initial_h": "hx", "initial_c": "cx"}
"""The exporter's names of inputs from an ONNX file -> their names in PyTorch."""


@dataclass(frozen=True, slots=True)
class OperandArgument:
    """An argument that is bound to an input operand, by the operand's place among the inputs."""

    argument: Argument
    index: int


def place_of(operator: pnnx.Operator) -> str:
    """Return how error messages name an operator: its type and its name."""
    return f"{operator.type} {operator.name}"


def bind_operands(layer: Layer, operator: pnnx.Operator, declared: Declared) -> tuple[OperandArgument, ...]:
    """Match an operator's input operands with the layer's arguments, by name where the file gives one, else in order.

    Raises:
        ParameterError: there are more operands than arguments.
    """
    if layer.variadic:
        return ()
    arguments = {argument.name: argument for argument in layer.arguments}
    inputs = operator.inputs
    named = {
        name: inputs.index(operand)
        for name, operand in argument_names(operator).items()
        if name in arguments and operand in inputs
    }
    given = named.keys() | operator.attrs.keys() | operator.params.keys()
    free = [name for name in arguments if name not in given]
    referenced = {inputs[index] for index in named.values()}
    unnamed = [index for index, operand in enumerate(inputs) if operand not in referenced]
    if len(unnamed) > len(free):
        tied = tied_weights(operator, unnamed, declared)
        unnamed = [index for index in unnamed if index not in tied[: len(unnamed) - len(free)]]
    if len(unnamed) > len(free):
        most = f"at most {len(named) + len(free)}"
        raise ParameterError(describe_problem(place_of(operator), f"{len(inputs)} input operands", most))
    placed = named | dict(zip(free, unnamed, strict=False))
    return tuple(OperandArgument(arguments[name], index) for name, index in placed.items())


def bind_static(operator: pnnx.Operator, argument: Argument) -> Any:
    """Find an argument among the attributes and parameters of an operator, else take its default.

    Raises:
        ParameterError: it is missing, or what the file gives for it is of the wrong kind.
    """
    if argument.takes_tensor and argument.name in operator.attrs:
        if operator.attrs[argument.name].dtype == "null":
            place = f"{place_of(operator)}, attribute {argument.name!r}"
            raise ParameterError(describe_problem(place, "has no type", argument.expected))
        return weight(operator.attrs[argument.name])
    if argument.takes_scalar and argument.name in operator.params:
        place = f"{place_of(operator)}, parameter {argument.name!r}"
        try:
            return argument.convert(operator.params[argument.name])
        except ArgumentError as error:
            raise ParameterError(describe_problem(place, error.problem, error.expected)) from error
        except ExpressionError as error:
            raise ParameterError(describe_problem(place, str(error))) from error
    if argument.required:
        raise ParameterError(
            describe_problem(place_of(operator), f"{argument.name!r} is missing", argument.expected)
        )
    return argument.default


def weight(attribute: pnnx.Attribute) -> Array:
    """Return an attribute as the aligned array that layers compute with, read-only.

    float16 weights come as float32: PNNX stores float32 models so by default. An attribute that is aligned, as
    all that come from a file are, is used where it lies.
    """
    array = widen(attribute.array(), attribute.dtype)
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    elif not array.flags.aligned:
        array = array.copy()
    array.flags.writeable = False
    return array


def argument_names(operator: pnnx.Operator) -> dict[str, str]:
    """Return argument -> operand, as the file names an operator's inputs; in PyTorch's words where it uses ONNX's."""
    return {_ONNX_NAMES.get(name, name): operand for name, operand in operator.input_names.items()}


def tied_weights(operator: pnnx.Operator, inputs: Sequence[int], declared: Declared) -> list[int]:
    """Return which inputs may be weights that modules share: the exporter gives them as attribute and operand both."""
    shapes = {attribute.shape for attribute in operator.attrs.values()}
    types = {index: declared.get(operator.inputs[index]) for index in inputs}
    return [index for index, known in types.items() if known is not None and known.shape in shapes]
