"""Makes one graph with dynamic sizes of two that were exported with fixed ones.

The exporter translates ONNX files faithfully where all sizes are fixed, and less so where some are dynamic: sizes are
lost from `Reshape`. Two exports with different sizes agree in all but these sizes, so each is where the two differ.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from service.export.errors import ExportError

_TYPE = re.compile(r"(#[^=]+)=\(([^()]*)\)(\w+)")
_SIZES = re.compile(r"(shape|size)=\(([^()]*)\)")
_RESHAPES = ("Tensor.reshape", "Tensor.view", "torch.reshape")
_CURE = "export it with fixed sizes: --input without ?"


def merge(first: str, second: str) -> str:
    """Return the `.param` text of both.

    Args:
        first: the graph for the first sizes.
        second: the graph for the second ones.

    Raises:
        ExportError: the two differ in something that is no size, or a size follows from none of the input's.
    """
    heads, bodies = zip(*(_split(text) for text in (first, second)), strict=True)
    if heads[0] != heads[1]:
        raise ExportError(f"for other sizes the exporter writes a graph of another form; {_CURE}")
    lines: list[str] = []
    added = 0
    for one, other in zip(*bodies, strict=True):
        made = _merged(one, other)
        added += len(made) - 1
        lines += made
    operators, operands = heads[0][1].split()
    return "\n".join([heads[0][0], f"{int(operators) + added} {int(operands) + added}", *lines]) + "\n"


def read_param(path: Path) -> str:
    """Return the text of a `.param` file."""
    return path.read_text(encoding="utf-8")


def _split(text: str) -> tuple[list[str], list[str]]:
    lines = text.splitlines()
    return lines[:2], lines[2:]


def _merged(one: str, other: str) -> list[str]:
    if one == other:
        return [one]
    ours, theirs = one.split(), other.split()
    if len(ours) != len(theirs):
        raise ExportError(f"{ours[0]} {ours[1]} is written differently for other sizes; {_CURE}")
    words = [_word(mine, other_word) for mine, other_word in zip(ours, theirs, strict=True)]
    if None not in words:
        return [" ".join(word for word in words if word is not None)]
    return _reshaped(ours, theirs, words)


def _word(mine: str, theirs: str) -> str | None:
    """Return what two words are together; None where that takes more than the words."""
    if mine == theirs:
        return mine
    ours, others = _TYPE.fullmatch(mine), _TYPE.fullmatch(theirs)
    if ours is None or others is None or ours[1] != others[1] or ours[3] != others[3]:
        return None
    sizes, other_sizes = ours[2].split(","), others[2].split(",")
    if len(sizes) != len(other_sizes):
        return None
    joined = (a if a == b else "?" for a, b in zip(sizes, other_sizes, strict=True))
    return f"{ours[1]}=({','.join(joined)}){ours[3]}"


def _reshaped(ours: list[str], theirs: list[str], words: Sequence[str | None]) -> list[str]:
    """Return a reshape whose sizes are dynamic: one as -1, further ones as sizes of its input."""
    place = words.index(None)
    mine, other = _SIZES.fullmatch(ours[place]), _SIZES.fullmatch(theirs[place])
    if mine is None or other is None or words.count(None) > 1 or ours[0] not in _RESHAPES:
        raise ExportError(f"{ours[0]} {ours[1]} depends on the dynamic sizes in {ours[place]!r}; {_CURE}")
    pairs = list(zip(_numbers(mine[2]), _numbers(other[2]), strict=True))
    varying = [axis for axis, (a, b) in enumerate(pairs) if a != b]
    plain = [word for word in words if word is not None]
    if len(varying) == 1:
        sizes = ",".join("-1" if axis == varying[0] else str(a) for axis, (a, _) in enumerate(pairs))
        return [" ".join([*plain[:place], f"{mine[1]}=({sizes})", *plain[place:]])]
    source = ours[4]
    before = list(zip(_shape_of(source, ours), _shape_of(source, theirs), strict=True))
    sizes = ",".join(_size(pair, before, varying, axis) for axis, pair in enumerate(pairs))
    operand = f"{ours[1]}.sizes"
    expression = f"pnnx.Expression {operand} 1 1 {source} {operand} expr=[{sizes}]"
    settings = [word for word in plain[6:] if not word.startswith("$")]
    named = [f"$input={source}", f"${mine[1]}={operand}"]
    return [expression, " ".join([*plain[:2], "2", "1", source, operand, ours[5], *named, *settings])]


def _size(pair: tuple[int, int], before: Sequence[tuple[int, int]], varying: Sequence[int], axis: int) -> str:
    """Return one size of a reshape as an expression of its input's sizes; the last that varies follows from the others.

    Raises:
        ExportError: another one follows from none.
    """
    if pair[0] == pair[1]:
        return str(pair[0])
    if pair in before:
        return f"size(@0,{before.index(pair)})"
    if axis == varying[-1]:
        return "-1"
    raise ExportError(
        f"a reshape makes sizes {pair[0]} and {pair[1]}, which are none of its input's; {_CURE}"
    )


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _shape_of(operand: str, words: Sequence[str]) -> list[int]:
    for word in words:
        match = _TYPE.fullmatch(word)
        if match is not None and match[1] == f"#{operand}":
            return _numbers(match[2])
    raise ExportError(f"{words[0]} {words[1]}: the exporter wrote no shape of its input; {_CURE}")
