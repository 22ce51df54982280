"""Writes operators of ONNX that the exporter leaves as they are in the words of PyTorch, which mean the same."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_Values = Mapping[str, str]
_Translate = Callable[[_Values, Sequence[str], Sequence[str]], list[str] | None]
"""From parameters, operands and declared types to a type and its parameters; None where it cannot be translated."""


def translate_operators(param: Path) -> None:
    """Translate what can be translated in a graph.

    Args:
        param: the graph; it is rewritten.
    """
    lines = param.read_text(encoding="utf-8").splitlines()
    made = [*lines[:2], *(_translated(line) for line in lines[2:])]
    if made != lines:
        param.write_text("\n".join(made) + "\n", encoding="utf-8")


def _translated(line: str) -> str:
    words = line.split()
    known = _OPERATORS.get(words[0]) if words else None
    if known is None:
        return line
    first = 4 + int(words[2]) + int(words[3])
    values = dict(word.split("=", 1) for word in words[first:] if word[0] not in "#@$")
    inputs, shapes = words[4 : 4 + int(words[2])], [word for word in words[first:] if word.startswith("#")]
    parameters = known(values, inputs, shapes)
    if parameters is None:
        return line
    return " ".join([*parameters[:1], *words[1:first], *parameters[1:], *shapes])


def _extreme(kind: str) -> _Translate:
    """Return what translates `ReduceMax` and `ReduceMin`, whose axes are parameters; without any, all are meant."""

    def translate(values: _Values, inputs: Sequence[str], shapes: Sequence[str]) -> list[str] | None:
        del shapes
        axes = values.get("axes", "").strip("()")
        if not axes or len(inputs) != 1:
            return None
        keeps = values.get("keepdims", "1") != "0"  # the standard's default
        return [kind, f"dim=({axes})", f"keepdim={keeps}", f"$input={inputs[0]}"]

    return translate


def _rows(values: _Values, inputs: Sequence[str], shapes: Sequence[str]) -> list[str] | None:
    """Translate the `Gather` of rows of a matrix by a tensor of numbers: an embedding."""
    is_matrix = any(re.fullmatch(rf"#{re.escape(inputs[0])}=\([^,]+,[^,]+\)f32", shape) for shape in shapes)
    if values.get("axis", "0") != "0" or not is_matrix:
        return None
    return ["F.embedding", f"$input={inputs[1]}", f"$weight={inputs[0]}"]


def _remainder(values: _Values, inputs: Sequence[str], shapes: Sequence[str]) -> list[str]:
    del inputs, shapes
    return ["pnnx.Expression", f"expr={'fmod' if values.get('fmod', '0') == '1' else 'remainder'}(@0,@1)"]


def _gather(values: _Values, inputs: Sequence[str], shapes: Sequence[str]) -> list[str] | None:
    del shapes
    if len(inputs) != 2:
        return None
    named = (f"$input={inputs[0]}", f"$index={inputs[1]}")
    return ["torch.gather", f"dim={values.get('axis', '0')}", *named]


_OPERATORS: Mapping[str, _Translate] = {
    "ReduceMax": _extreme("torch.amax"),
    "ReduceMin": _extreme("torch.amin"),
    "GatherElements": _gather,
    "Gather": _rows,
    "Mod": _remainder,
}
