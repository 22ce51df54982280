"""Examples that a model is calibrated on: inputs as a run takes them, one after the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from engine.check.archives import in_order, load_arrays
from engine.dtypes import PNNX_COMPUTE, Array
from engine.errors import InputError
from engine.ports import Port


class Examples(Protocol):
    """Inputs of runs, by number."""

    @property
    def name(self) -> str:
        """What they are called: the name of a file or folder."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> list[Array]: ...


class ArrayExamples:
    """Examples in an `.npz`: in_0, in_1 …, one array for each input, each with a leading axis over examples.

    Where the graph's input has one axis more than an example, that is its batch, of one.

    Args:
        path: the file.
        ports: the graph's inputs.

    Raises:
        InputError: the file is no archive of such arrays.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path, ports: Sequence[Port]) -> None:
        arrays = in_order(load_arrays(path))
        if len(arrays) != len(ports):
            raise InputError(f"{path}: holds {len(arrays)} arrays; expected {len(ports)}, one for each input")
        if any(array.ndim == 0 for array in arrays) or len({len(array) for array in arrays}) != 1:
            raise InputError(f"{path}: the arrays differ in length; expected a leading axis over examples")
        if not len(arrays[0]):
            raise InputError(f"{path}: holds no examples; expected at least one")
        self.name = path.name
        self._arrays = arrays
        self._ports = ports

    def __len__(self) -> int:
        return len(self._arrays[0])

    def __getitem__(self, place: int) -> list[Array]:
        return [_as_input(array[place], port) for array, port in zip(self._arrays, self._ports, strict=True)]


def _as_input(array: Array, port: Port) -> Array:
    """Return an example as an input takes it."""
    if port.shape is not None and array.ndim == len(port.shape) - 1:
        array = array[None]
    dtype = PNNX_COMPUTE[port.dtype or "f32"]
    return np.ascontiguousarray(array, dtype)


def chosen(count: int, most: int) -> list[int]:
    """Return places of at most so many examples, spread evenly."""
    return sorted({int(place) for place in np.linspace(0, count - 1, min(count, most))})
