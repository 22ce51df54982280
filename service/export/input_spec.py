"""Shapes and types of inputs, as `--input` spells them: `1,3,224,224`, `?,3,640?,640?`, `1,128:i64`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine import PNNX_STORAGE
from service.export.errors import ExportError

DTYPES = ("f32", "f64", "i64", "i32", "i16", "i8", "u8", "bool")
"""Types of elements that an input may have, in PNNX's names."""

_SIZE = re.compile(r"([1-9][0-9]{0,9})(\??)|\?")
_EXPECTED = (
    "sizes with commas between, as 1,3,224,224; ? for a dynamic size, 640? for one that is tried at 640"
)
_PICTURE_SIDE = 224
_LENGTH = 16
_FIXED_LENGTH = 128


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input of a model.

    Attributes:
        shape: the sizes that the model is exported with.
        is_dynamic: for each size, whether requests may have another one.
        dtype: PNNX's name of the type of its elements; empty for the source's, or for f32 where that states none.
        name: the input's name in the source, empty where it has none.
    """

    shape: tuple[int, ...]
    is_dynamic: tuple[bool, ...]
    dtype: str = "f32"
    name: str = ""

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The type of its elements in numpy."""
        return PNNX_STORAGE[self.dtype or "f32"]

    def __str__(self) -> str:
        sizes = (
            "?" if is_dynamic else str(size)
            for size, is_dynamic in zip(self.shape, self.is_dynamic, strict=True)
        )
        return f"({','.join(sizes)}){self.dtype or 'f32'}"


def parse_input(text: str) -> InputSpec:
    """Read `1,3,224,224`, with `?` for a dynamic size and `:i64` for its type, by default the source's or f32.

    A dynamic size without a number is tried at 1 if it comes first, at 224 as side of a picture, and at 16 elsewhere.

    Raises:
        ExportError: the text is something else.
    """
    sizes, _, dtype = text.replace(" ", "").partition(":")
    if dtype and dtype not in DTYPES:
        raise ExportError(f"--input {text}: there is no type {dtype!r}; expected one of {', '.join(DTYPES)}")
    found = [_SIZE.fullmatch(size) for size in sizes.split(",")] if sizes else []
    shape, is_dynamic = [], []
    for axis, match in enumerate(found):
        if match is None:
            raise ExportError(
                f"--input {text}: {sizes.split(',')[axis]!r} is not a size; expected {_EXPECTED}"
            )
        shape.append(int(match[1]) if match[1] else usual_size(axis, len(found)))
        is_dynamic.append(match[0].endswith("?"))
    return InputSpec(tuple(shape), tuple(is_dynamic), dtype)


def usual_size(axis: int, rank: int) -> int:
    """Return the size at which a dynamic dimension is tried where nothing says more."""
    if axis == 0:
        return 1
    return _PICTURE_SIDE if rank == 4 and axis >= 2 else _LENGTH


def less_dynamic(specs: Sequence[InputSpec], max_length: int | None) -> Iterator[list[InputSpec]]:
    """Yield inputs with all their dynamic dimensions, with that of the batch alone, and with none.

    Args:
        specs: the inputs.
        max_length: most tokens of a text, for a model that takes texts; a fixed length is as much, and at most 128.
    """
    dynamic_axes = {axis for spec in specs for axis, is_dynamic in enumerate(spec.is_dynamic) if is_dynamic}
    for kept in dict.fromkeys((frozenset(dynamic_axes), frozenset(dynamic_axes & {0}), frozenset())):
        length = None if max_length is None or kept == dynamic_axes else min(max_length, _FIXED_LENGTH)
        yield [_with_dynamic(spec, kept, length) for spec in specs]


def _with_dynamic(spec: InputSpec, kept: frozenset[int], length: int | None) -> InputSpec:
    """Return an input with no dynamic axes but those that are kept, and another length of texts."""
    is_dynamic = tuple(is_dynamic and axis in kept for axis, is_dynamic in enumerate(spec.is_dynamic))
    lengths = (
        (length,) if length is not None and len(spec.shape) == 2 and spec.is_dynamic[1] else spec.shape[1:]
    )
    return replace(spec, shape=(*spec.shape[:1], *lengths), is_dynamic=is_dynamic)
