"""Writes the `.param` text, laid out as `pnnx` does."""

from collections.abc import Iterator
from pathlib import Path

from engine.errors import ParamError
from engine.pnnx.graph import Graph
from engine.pnnx.links import find_fault
from engine.pnnx.model import Operator, ParameterValue
from engine.pnnx.param_reader import MAGIC
from engine.pnnx.parameter import format_value, parse_value, same_value
from engine.pnnx.tensor_type import TensorType, format_tensor_type, parse_tensor_type, shorten

_WHITE_SPACE = frozenset(" \t\n\r\v\f")
_PREFIXES = ("@", "$", "#")


def format_param(graph: Graph, path: Path) -> str:
    """Return the text of a graph's `.param`, which is to be written to `path`.

    Raises:
        ParamError: the graph is inconsistent, or holds something that the format has no spelling for,
            such as a name with a space in it or the string `1`, which would read back as a number.
    """
    _check_links(graph, path)
    lines = [MAGIC, f"{len(graph.operators)} {len(graph.operands)}"]
    for operator in graph.operators:
        try:
            lines.append(_format_operator(operator, graph.operands))
        except ValueError as error:
            raise ParamError(path, None, f"operator {operator.name!r} cannot be written: {error}") from error
    return "\n".join(lines) + "\n"


def _check_links(graph: Graph, path: Path) -> None:
    fault = find_fault(graph.operators)
    if fault is not None:
        raise ParamError(path, None, fault.problem, fault.expected)
    used = {name for operator in graph.operators for name in (*operator.inputs, *operator.outputs)}
    for name in sorted(used ^ graph.operands.keys()):
        problem = "is missing from the graph's operands" if name in used else "belongs to no operator"
        raise ParamError(
            path, None, f"operand {name!r} {problem}", "the operands of the operators, and only those"
        )


def _format_operator(operator: Operator, operands: dict[str, TensorType | None]) -> str:
    if operator.type.startswith("#"):
        raise ValueError(f"type {shorten(operator.type)} would begin a comment")
    words = [operator.type, operator.name, *operator.inputs, *operator.outputs]
    if not all(words):
        raise ValueError("type, name or operand is empty")
    settings = list(_format_settings(operator, operands))
    for word in words + settings:
        _check_word(word)
    counts = f"{len(operator.inputs)} {len(operator.outputs)}"
    head = f"{operator.type:<24} {operator.name:<24} {counts}"
    return " ".join([head, *words[2:], *settings])


def _format_settings(operator: Operator, operands: dict[str, TensorType | None]) -> Iterator[str]:
    for key, value in operator.params.items():
        if "=" in key or key.startswith(_PREFIXES):
            raise ValueError(f"parameter name {shorten(key)} has a = or begins with {', '.join(_PREFIXES)}")
        yield f"{key}={_spell_parameter(key, value, operator.spellings.get(key))}"
    for key, attribute in operator.attrs.items():
        yield f"@{key}={_spell_type(TensorType(attribute.shape, attribute.dtype))}"
    for key, operand in operator.input_names.items():
        if "=" in key or operand not in operator.inputs:
            raise ValueError(
                f"input name {shorten(key)} has a = or names {shorten(operand)}, which is no input"
            )
        yield f"${key}={operand}"
    for operand in operator.inputs + operator.outputs:
        tensor_type = operands[operand]
        if tensor_type is not None:
            yield f"#{operand}={_spell_type(tensor_type)}"


def _spell_parameter(key: str, value: ParameterValue, spelling: str | None) -> str:
    if spelling is not None and same_value(parse_value(key, spelling), value):
        return spelling
    return format_value(key, value)


def _spell_type(tensor_type: TensorType) -> str:
    text = format_tensor_type(tensor_type)
    if parse_tensor_type(text) != tensor_type:
        raise ValueError(f"{tensor_type} has no spelling in PNNX")
    return text


def _check_word(word: str) -> None:
    if not _WHITE_SPACE.isdisjoint(word):
        raise ValueError(f"white space in {shorten(word)}")
    word.encode()  # a lone surrogate raises UnicodeEncodeError, which is a ValueError
