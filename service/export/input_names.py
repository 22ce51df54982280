"""Calls the inputs of an exported graph as its source does, so that requests may use those names."""

import re
from collections.abc import Sequence
from pathlib import Path

_INPUT = "pnnx.Input"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")


def name_inputs(param: Path, names: Sequence[str]) -> None:
    """Rename the input operators of a graph, in order.

    Nothing is done where a name is no plain word, or is that of another input, operator or operand: clients could not
    say which is meant.

    Args:
        param: the graph; it is rewritten.
        names: what the source calls its inputs.
    """
    lines = param.read_text(encoding="utf-8").splitlines()
    words = [line.split(maxsplit=2) for line in lines]
    places = [place for place, parts in enumerate(words) if parts[0] == _INPUT]
    taken = {name for line in lines[2:] for name in _names_in(line.split())}
    are_plain = all(map(_NAME.fullmatch, names)) and len(set(names)) == len(names)
    if len(places) != len(names) or not are_plain or not taken.isdisjoint(names):
        return
    for place, name in zip(places, names, strict=True):
        lines[place] = f"{_INPUT:24} {name:24} {words[place][2]}"
    param.write_text("\n".join(lines) + "\n", encoding="utf-8")


def fix_sizes(param: Path, shapes: Sequence[tuple[int, ...]]) -> None:
    """Declare the inputs of a graph to have fixed shapes, in order.

    Args:
        param: the graph; it is written again.
        shapes: of each input.
    """
    lines = param.read_text(encoding="utf-8").splitlines()
    places = [place for place, line in enumerate(lines) if line.startswith(f"{_INPUT} ")]
    for place, shape in zip(places, shapes, strict=True):
        lines[place] = re.sub(r"=\([^()]*\)", f"=({','.join(map(str, shape))})", lines[place])
    param.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _names_in(words: Sequence[str]) -> list[str]:
    """Return the names of an operator and of its operands."""
    inputs, outputs = int(words[2]), int(words[3])
    return [words[1], *words[4 : 4 + inputs + outputs]]
