"""Reads `.npy` files without copying their elements.

The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. The header is a Python dict
literal; it is matched, never evaluated.
"""

import re
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from engine import Array
from service.config.limits import Limits
from service.errors import ServiceError

MAGIC = b"\x93NUMPY"
MAX_HEADER = 4096
"""Bytes of magic, version, length and dict; enough for any array of plain elements."""

_MAX_RANK = 32
_ITEM = r"'(?:descr|fortran_order|shape)'\s*:\s*(?:'[^']*'|True|False|\([0-9\sL,]*\))"
# possessive: to try other ways to share out 4,000 spaces would take a tenth of a second
_HEADER = re.compile(rf"\{{\s*+{_ITEM}\s*+(?:,\s*+{_ITEM}\s*+)*+,?\s*+\}}\s*+")
_VALUES = re.compile(r"'(descr|fortran_order|shape)'\s*:\s*(?:'([^']*)'|(True|False)|\(([0-9\sL,]*)\))")
_DESCR = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|c(?:8|16))")
_DIM = re.compile(r"([0-9]{1,18})L?")


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """The header of a `.npy` file.

    Attributes:
        dtype: of the elements, in the file's byte order.
        shape: of the array.
        fortran: the elements are in column-major order.
        size: bytes of the header itself.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    size: int

    @property
    def data_bytes(self) -> int:
        """Bytes of the elements."""
        return prod(self.shape) * self.dtype.itemsize


def read_npy(body: bytes | bytearray, limits: Limits, place: str = "the body") -> Array:
    """Read a whole `.npy` file.

    Returns:
        A view of the body, in C order; read-only where the body is.

    Raises:
        ServiceError: 400 `invalid_npy`, 413 `tensor_too_large`.
    """
    header = read_header(body, place)
    limits.check_shape(header.shape, place)
    rest = len(body) - header.size
    if rest != header.data_bytes:
        raise _invalid(
            place, f"{rest} bytes follow the header", f"{header.data_bytes} for shape {header.shape}"
        )
    array = np.frombuffer(body, header.dtype, prod(header.shape), header.size) if rest else None
    if array is None:
        return np.empty(header.shape, header.dtype)
    return np.asarray(array.reshape(header.shape, order="F" if header.fortran else "C"), order="C")


def read_header(start: bytes | bytearray, place: str) -> NpyHeader:
    """Read the header of a `.npy` file from its first `MAX_HEADER` bytes or more.

    Raises:
        ServiceError: 400 `invalid_npy`.
    """
    if not start.startswith(MAGIC):
        raise _invalid(place, f"begins with {start[:6]!r}", f"{MAGIC!r}")
    if len(start) < 12 or start[6] not in (1, 2, 3):
        raise _invalid(place, f"has version {start[6:7]!r} or ends early", "format version 1, 2 or 3")
    begin = 10 if start[6] == 1 else 12
    end = begin + int.from_bytes(start[8:begin], "little")
    text = start[begin : min(end, MAX_HEADER)].decode("latin-1")
    if end > len(start) or end > MAX_HEADER or not _HEADER.fullmatch(text):
        raise _invalid(
            place, f"has header {text[:120]!r}", "descr of one plain dtype, fortran_order and shape"
        )
    values = {key: "".join(value) for key, *value in _VALUES.findall(text)}
    if len(values) != 3:
        raise _invalid(place, f"has header {text[:120]!r}", "descr, fortran_order and shape")
    return NpyHeader(
        _dtype(values["descr"], place), _shape(values["shape"], place), values["fortran_order"] == "True", end
    )


def _dtype(descr: str, place: str) -> np.dtype[Any]:
    if not _DESCR.fullmatch(descr):
        raise _invalid(
            place, f"has elements of type {descr[:40]!r}", "booleans, integers, floats or complex numbers"
        )
    return np.dtype(descr)


def _shape(text: str, place: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if parts[-1] == "":
        parts.pop()
    matches = [_DIM.fullmatch(part) for part in parts]
    if len(parts) > _MAX_RANK or not all(matches):
        raise _invalid(place, f"has shape ({text[:80]})", f"at most {_MAX_RANK} whole numbers")
    return tuple([int(match[1]) for match in matches if match])


def _invalid(place: str, problem: str, expected: str) -> ServiceError:
    return ServiceError(400, "invalid_npy", f"{place} {problem}; expected {expected}", {"expected": expected})
