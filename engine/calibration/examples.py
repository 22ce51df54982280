"""Examples that a model is calibrated on: inputs as a run takes them, one after the other."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from engine.check.archives import load_arrays
from engine.dtypes import PNNX_COMPUTE, Array
from engine.errors import InputError
from engine.model.ports import Port


class Examples(Protocol):
    """Inputs of runs, by number."""

    @property
    def name(self) -> str:
        """Their name: that of a file or folder."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> list[Array]: ...


_NUMBERED = re.compile(r"(.*?)([0-9]+)", re.DOTALL)


class ArrayExamples:
    """Examples in an `.npz`: one array for each input, each with a leading axis over examples.

    Arrays are named after inputs, by operator or operand, or numbered in the order of these: in_0, in_1 … Where the
    graph's input has one axis more than an example, that is its batch, of one.

    Args:
        path: the file.
        ports: the graph's inputs.

    Raises:
        InputError: the file is no archive of such arrays.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path, ports: Sequence[Port]) -> None:
        arrays = _assigned(path, load_arrays(path), ports)
        if any(array.ndim == 0 for array in arrays.values()) or len(set(map(len, arrays.values()))) != 1:
            raise InputError(f"{path}: the arrays differ in length; expected a leading axis over examples")
        if not len(next(iter(arrays.values()))):
            raise InputError(f"{path}: holds no examples; expected at least one")
        self.name = path.name
        self._path = path
        self._arrays = arrays
        self._ports = ports

    def __len__(self) -> int:
        return len(next(iter(self._arrays.values())))

    def __getitem__(self, place: int) -> list[Array]:
        return [
            _as_input(f"{self._path}: {name!r:.200}, example {place}", array[place], port)
            for (name, array), port in zip(self._arrays.items(), self._ports, strict=True)
        ]


def _assigned(path: Path, arrays: dict[str, Array], ports: Sequence[Port]) -> dict[str, Array]:
    """Return the arrays, by their own names, in the order of inputs."""
    if len(arrays) != len(ports):
        raise InputError(f"{path}: holds {len(arrays)} arrays; expected {len(ports)}, one for each input")
    named = [name for port in ports for name in _names_of(port) & arrays.keys()]
    if len(named) == len(set(named)) == len(ports):
        return {name: arrays[name] for name in named}
    if len(arrays) > 1 and not _are_numbered(arrays):
        shown = ", ".join(f"{name!r:.40}" for name in arrays)
        inputs = ", ".join(repr(port.operator) for port in ports)
        raise InputError(
            f"{path}: its arrays are {shown:.200}; expected in_0, in_1 …, or the inputs {inputs:.200}"
        )
    return {name: arrays[name] for name in sorted(arrays, key=lambda name: (len(name), name))}


def _names_of(port: Port) -> set[str]:
    return {port.operator, port.operand}


def _are_numbered(arrays: Mapping[str, Array]) -> bool:
    """Return whether names are one word with the numbers from 0 on behind it."""
    found = [_NUMBERED.fullmatch(name) for name in arrays]
    words = {match[1] for match in found if match is not None}
    numbers = {match[2] for match in found if match is not None}
    return len(words) == 1 and numbers == {str(number) for number in range(len(arrays))}


def _as_input(place: str, array: Array, port: Port) -> Array:
    """Return an example as an input takes it.

    Raises:
        InputError: the input's type has no such numbers.
    """
    if port.shape is not None and array.ndim == len(port.shape) - 1:
        array = array[None]
    dtype = PNNX_COMPUTE[port.dtype or "f32"]
    if array.dtype.kind not in ("biufc" if dtype.kind == "c" else "biuf"):
        raise InputError(f"{place}: is {array.dtype}; expected numbers of {port.dtype or 'f32'}")
    with np.errstate(over="ignore", invalid="ignore"):
        found: Array = np.ascontiguousarray(array, dtype)
    if not _are_kept(array, found):
        raise InputError(
            f"{place}: holds numbers that {port.dtype or 'f32'} cannot; expected what the input takes"
        )
    return found


def _are_kept(array: Array, converted: Array) -> bool:
    """Return whether numbers are unchanged, except for rounding to another width."""
    if converted.dtype.kind in "fc":
        return bool((np.isfinite(converted) | ~np.isfinite(array)).all())
    return bool((converted == array).all())


def chosen(count: int, most: int) -> list[int]:
    """Return places of at most so many examples, spread evenly."""
    return sorted({int(place) for place in np.linspace(0, count - 1, min(count, most))})
