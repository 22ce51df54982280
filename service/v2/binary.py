"""Binary tensor data <-> arrays. Input is not copied: arrays are views of the body."""

from collections.abc import Iterable, Sequence

import numpy as np

from engine import Array, widen
from service.config.limits import Limits
from service.errors import ServiceError
from service.v2.datatypes import BF16, BOOL, DTYPES, WIRE_SIZES, to_bfloat16
from service.v2.request import InputTensor

HEADER = "Inference-Header-Content-Length"
"""Header with the length of the JSON part; its presence means that binary data follows."""

_LITTLE_ENDIAN = frozenset(DTYPES.values())
_LENGTH_BYTES = 4
_ALIGNMENT = 16
"""The alignment, in bytes, that the memory of Python's bytes objects has at least."""


def parse_header_length(value: str | None) -> int | None:
    """Read the header that says where the JSON part ends; None if it is not sent.

    Raises:
        ServiceError: 400 `invalid_header`.
    """
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 20):
        message = f"{HEADER} is {value[:40]!r}; expected a whole number of bytes"
        raise ServiceError(400, "invalid_header", message)
    return int(value)


def padding_of(header_length: int | None) -> int:
    """Return the number of bytes to put before a body so that the binary data in it is aligned."""
    return 0 if header_length is None else -header_length % _ALIGNMENT


def split(
    body: bytes | bytearray, header_length: int | None, padding: int = 0
) -> tuple[memoryview, memoryview]:
    """Return the JSON part of a body and the binary data that follows it.

    Args:
        body: the body.
        header_length: length of the JSON part; None if there is nothing else.
        padding: number of zero bytes before it.

    Raises:
        ServiceError: 400 `invalid_header` if the JSON part would be longer than the body.
    """
    view = memoryview(body).toreadonly()[padding:]
    if header_length is None:
        return view, view[len(view) :]
    if header_length > len(view):
        message = f"{HEADER} is {header_length}, but the body has {len(view)} bytes"
        raise ServiceError(400, "invalid_header", message)
    return view[:header_length], view[header_length:]


def distribute(tensors: Sequence[InputTensor], data: memoryview) -> list[memoryview]:
    """Return the bytes of each tensor; none for a tensor whose elements are in the JSON part.

    Raises:
        ServiceError: 400 `wrong_size` if there are fewer or more bytes than the tensors declare.
    """
    sizes = [tensor.binary_size or 0 for tensor in tensors]
    if sum(sizes) != len(data):
        message = f"the body has {len(data)} bytes of binary data; the inputs' binary_data_size adds up to {sum(sizes)}"
        raise _wrong_size(message, len(data), sum(sizes))
    parts, start = [], 0
    for size in sizes:
        parts.append(data[start : start + size])
        start += size
    return parts


def read_array(tensor: InputTensor, data: memoryview, limits: Limits) -> Array:
    """Return the elements of a tensor of any datatype but BYTES, without copying them if possible.

    Returns:
        A read-only view of `data`, or a copy if `data` is not aligned; for BF16, a float32 array.

    Raises:
        ServiceError: 400 `wrong_size`, 413 `tensor_too_large`.
    """
    expected = tensor.elements * WIRE_SIZES[tensor.datatype]
    if len(data) != expected:
        message = (
            f"{tensor.place} has {len(data)} bytes; "
            f"{tensor.datatype} of shape {list(tensor.shape)} has {expected}"
        )
        raise _wrong_size(message, len(data), expected)
    limits.check_shape(tensor.shape, tensor.place)
    if tensor.datatype == BOOL:
        flat = _booleans(np.frombuffer(data, np.uint8))
    elif tensor.datatype == BF16:
        flat = widen(np.frombuffer(data, "<u2"), "bf16")
    else:
        flat = np.frombuffer(data, DTYPES[tensor.datatype])
        if not flat.flags.aligned:
            flat = flat.copy()
    return flat.reshape(tensor.shape)


def read_strings(tensor: InputTensor, data: memoryview) -> list[bytes]:
    """Return the elements of a BYTES tensor, each of which is preceded by its length in four bytes.

    Raises:
        ServiceError: 400 `wrong_size`.
    """
    count = tensor.elements
    if count * _LENGTH_BYTES > len(data):
        message = f"{tensor.place} has {len(data)} bytes, too few for {count} elements and their lengths"
        raise _wrong_size(message, len(data), count * _LENGTH_BYTES)
    elements, start = [], 0
    for index in range(count):
        length = int.from_bytes(data[start : start + _LENGTH_BYTES], "little")
        start += _LENGTH_BYTES
        if start + length > len(data):
            message = f"{tensor.place}: element {index} has {length} bytes, more than are left"
            raise _wrong_size(message, len(data), start + length)
        elements.append(bytes(data[start : start + length]))
        start += length
    if start != len(data):
        message = f"{tensor.place} has {len(data)} bytes; its {count} elements and their lengths have {start}"
        raise _wrong_size(message, len(data), start)
    return elements


def write_array(array: Array, datatype: str) -> memoryview:
    """Return the little-endian bytes of an array; its own memory if that is in this form already."""
    if datatype == BF16:
        array = to_bfloat16(array)
    if not (array.flags.c_contiguous and array.dtype in _LITTLE_ENDIAN):
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return array.reshape(-1).view(np.uint8).data


def write_strings(elements: Iterable[bytes]) -> bytes:
    """Return the bytes of a BYTES tensor."""
    return b"".join(len(element).to_bytes(_LENGTH_BYTES, "little") + element for element in elements)


def _booleans(raw: Array) -> Array:
    """Return bytes as booleans: every value but 0 is true."""
    if raw.size and raw.max() > 1:
        return np.asarray(raw != 0)
    return raw.view(np.bool_)


def _wrong_size(message: str, given: int, expected: int) -> ServiceError:
    return ServiceError(400, "wrong_size", message, {"bytes": given, "expected": expected})
