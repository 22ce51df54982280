"""Shapes and element types as PNNX spells them: `(1,3,?,224)f32`."""

import re
from dataclasses import dataclass

from engine.dtypes import PNNX_STORAGE

ELEMENT_SIZES: dict[str, int] = {"null": 0} | {name: dtype.itemsize for name, dtype in PNNX_STORAGE.items()}
"""PNNX type name -> bytes of one stored element; `null` is PNNX's own name for no type."""

MAX_RANK = 64
"""Limit of numpy and PyTorch."""

MAX_BYTES = 2**63 - 1
"""Above this, the size of a tensor overflows a 64-bit integer."""

_SPELLING = re.compile(r"\(([^()]*)\)(\w+)", re.ASCII)
_EXTENT = re.compile(r"[0-9]{1,19}", re.ASCII)
_SYMBOL = re.compile(r"%[^,()=]+")


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape and element type of an operand.

    Attributes:
        shape: extents; None is an extent that is known only at run time (`?`).
        dtype: PNNX type name: `f32`, `i64`, …, or `null` where the exporter knew none.
        symbols: (axis, name) of each unknown extent that carries a name (`%batch` instead of `?`).
    """

    shape: tuple[int | None, ...]
    dtype: str
    symbols: tuple[tuple[int, str], ...] = ()


def parse_tensor_type(text: str) -> TensorType:
    """Read `(1,3,?,224)f32`.

    Raises:
        ValueError: the text is malformed; the message names no place.
    """
    spelling = _SPELLING.fullmatch(text)
    if spelling is None:
        raise ValueError(f"{shorten(text)} is not a type; expected a shape and a type such as (1,3,?,224)f32")
    inside, dtype = spelling.groups()
    if dtype not in ELEMENT_SIZES:
        raise ValueError(f"unknown type {shorten(dtype)}; expected one of {', '.join(ELEMENT_SIZES)}")
    extents = inside.split(",") if inside else []
    if len(extents) > MAX_RANK:
        raise ValueError(f"{len(extents)} dimensions; expected at most {MAX_RANK}")
    shape = tuple(_parse_extent(extent) for extent in extents)
    byte_count(shape, dtype)
    symbols = tuple((axis, extent[1:]) for axis, extent in enumerate(extents) if extent.startswith("%"))
    return TensorType(shape, dtype, symbols)


def format_tensor_type(tensor_type: TensorType) -> str:
    """Spell a type the way `parse_tensor_type` reads it."""
    names = dict(tensor_type.symbols)
    extents = [
        (f"%{names[axis]}" if axis in names else "?") if extent is None else str(extent)
        for axis, extent in enumerate(tensor_type.shape)
    ]
    return f"({','.join(extents)}){tensor_type.dtype}"


def byte_count(shape: tuple[int | None, ...], dtype: str) -> int:
    """Return how many bytes a tensor is stored in, taking unknown extents as 1.

    Raises:
        ValueError: the number does not fit 64 bits. Extents of 0 don't make up for others that are too large.
    """
    bound = max(1, ELEMENT_SIZES[dtype])
    for extent in shape:
        bound *= extent or 1
        if bound > MAX_BYTES:
            raise ValueError(
                f"the size of shape {shorten(str(shape))} overflows; expected at most 2**63 - 1 bytes"
            )
    return 0 if 0 in shape or dtype == "null" else bound


def shorten(text: str, limit: int = 60) -> str:
    """Quote text from a file for a message, cut where it would swamp it."""
    return repr(text if len(text) <= limit else f"{text[:limit]}…")


def _parse_extent(text: str) -> int | None:
    if text == "?" or _SYMBOL.fullmatch(text):
        return None
    if _EXTENT.fullmatch(text):
        return int(text)
    problem = "a negative extent" if text.startswith("-") else "no extent"
    raise ValueError(f"{shorten(text)} is {problem}; expected a number of 0 or more, or ?")
