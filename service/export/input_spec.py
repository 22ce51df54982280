"""Shapes and types of inputs, as `--input` spells them: `1,3,224,224`, `?,3,640?,640?`, `1,128:i64`."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import PNNX_STORAGE
from service.export.errors import ExportError

DTYPES = ("f32", "f64", "i64", "i32", "i16", "i8", "u8", "bool")
"""Types of elements that an input may have, in PNNX's names."""

_SIZE = re.compile(r"([1-9][0-9]{0,9})(\??)|\?")
_EXPECTED = "sizes with commas between, as 1,3,224,224; ? for an open size, 640? for one that is tried at 640"
_PICTURE_SIDE = 224
_LENGTH = 16


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input of a model.

    Attributes:
        shape: the sizes that the model is exported with.
        is_open: for each size, whether requests may have another one.
        dtype: PNNX's name of the type of its elements.
        name: the input's name in the source, empty where it has none.
    """

    shape: tuple[int, ...]
    is_open: tuple[bool, ...]
    dtype: str = "f32"
    name: str = ""

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The type of its elements in numpy."""
        return PNNX_STORAGE[self.dtype]

    def __str__(self) -> str:
        sizes = (
            "?" if is_open else str(size) for size, is_open in zip(self.shape, self.is_open, strict=True)
        )
        return f"({','.join(sizes)}){self.dtype}"


def parse_input(text: str) -> InputSpec:
    """Read `1,3,224,224`, with `?` for an open size and `:i64` for a type other than f32.

    An open size without a number is tried at 1 if it comes first, at 224 as side of a picture, and at 16 elsewhere.

    Raises:
        ExportError: the text is something else.
    """
    sizes, _, dtype = text.replace(" ", "").partition(":")
    if dtype and dtype not in DTYPES:
        raise ExportError(f"--input {text}: there is no type {dtype!r}; expected one of {', '.join(DTYPES)}")
    found = [_SIZE.fullmatch(size) for size in sizes.split(",")] if sizes else []
    shape, is_open = [], []
    for axis, match in enumerate(found):
        if match is None:
            raise ExportError(f"--input {text}: {sizes.split(',')[axis]!r} is no size; expected {_EXPECTED}")
        shape.append(int(match[1]) if match[1] else usual_size(axis, len(found)))
        is_open.append(match[0].endswith("?"))
    return InputSpec(tuple(shape), tuple(is_open), dtype or "f32")


def usual_size(axis: int, rank: int) -> int:
    """Return the size at which an open dimension is tried where nothing says more."""
    if axis == 0:
        return 1
    return _PICTURE_SIDE if rank == 4 and axis >= 2 else _LENGTH
