"""Declared inputs of an operator: which arguments they are, and which are shared weights."""

from collections.abc import Sequence

from engine.pnnx import Operator
from engine.results import Declared

_ONNX_NAMES = {"initial_h": "hx", "initial_c": "cx"}
"""The exporter's names of inputs from an ONNX file -> their names in PyTorch."""


def argument_names(operator: Operator) -> dict[str, str]:
    """Return argument -> operand, as the file names an operator's inputs; in PyTorch's words where it uses ONNX's."""
    return {_ONNX_NAMES.get(name, name): operand for name, operand in operator.input_names.items()}


def tied_weights(operator: Operator, inputs: Sequence[int], declared: Declared) -> list[int]:
    """Return which inputs may be weights that modules share: the exporter gives them as attribute and operand both."""
    shapes = {attribute.shape for attribute in operator.attrs.values()}
    types = {index: declared.get(operator.inputs[index]) for index in inputs}
    return [index for index, known in types.items() if known is not None and known.shape in shapes]
