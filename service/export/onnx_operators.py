"""Writes operators of ONNX that the exporter leaves as they are in the words of PyTorch, which mean the same."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_Values = Mapping[str, str]


def translate_operators(param: Path) -> None:
    """Translate what can be translated in a graph.

    Args:
        param: the graph; it is written anew.
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
    parameters = known(values, inputs)
    if parameters is None:
        return line
    return " ".join([*parameters[:1], *words[1:first], *parameters[1:], *shapes])


def _extreme(kind: str) -> Callable[[_Values, Sequence[str]], list[str] | None]:
    """Return what translates `ReduceMax` and `ReduceMin`, whose axes are parameters; without any, all are meant."""

    def translate(values: _Values, inputs: Sequence[str]) -> list[str] | None:
        axes = values.get("axes", "").strip("()")
        if not axes or len(inputs) != 1:
            return None
        keeps = values.get("keepdims", "1") != "0"  # the standard's default
        return [kind, f"dim=({axes})", f"keepdim={keeps}", f"$input={inputs[0]}"]

    return translate


def _gather(values: _Values, inputs: Sequence[str]) -> list[str] | None:
    if len(inputs) != 2:
        return None
    named = (f"$input={inputs[0]}", f"$index={inputs[1]}")
    return ["torch.gather", f"dim={values.get('axis', '0')}", *named]


_OPERATORS: Mapping[str, Callable[[_Values, Sequence[str]], list[str] | None]] = {
    "ReduceMax": _extreme("torch.amax"),
    "ReduceMin": _extreme("torch.amin"),
    "GatherElements": _gather,
}
