"""Datatypes of the Open Inference Protocol <-> numpy and PNNX types.

The protocol has no complex numbers: they are floats with an extra last dimension of 2, the real and the imaginary part.
"""

from typing import Any

import numpy as np

from engine import PNNX_COMPUTE, Array, Port
from service.errors import ServiceError

BYTES = "BYTES"
BOOL = "BOOL"
BF16 = "BF16"

DTYPES: dict[str, np.dtype[Any]] = {
    BOOL: np.dtype(np.bool_),
    **{
        f"{sign}INT{bits}": np.dtype(f"<{sign.lower() or 'i'}{bits // 8}")
        for sign in ("U", "")
        for bits in (8, 16, 32, 64)
    },
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    BF16: np.dtype("<f4"),
}
"""Datatype -> dtype of its arrays. BYTES has none; BF16 is held as float32."""

WIRE_SIZES = {name: 2 if name == BF16 else dtype.itemsize for name, dtype in DTYPES.items()}
"""Datatype -> bytes of one element in binary tensor data."""

_OF_DTYPE = {dtype: name for name, dtype in DTYPES.items() if name != BF16}
_OF_PARTS = {np.dtype("<c8"): "FP32", np.dtype("<c16"): "FP64"}
UNDECLARED = "FP32"
"""The datatype shown for a tensor whose type the model's file does not declare."""


def is_complex(port: Port) -> bool:
    """Return whether an input or output holds complex numbers."""
    return port.dtype is not None and PNNX_COMPUTE[port.dtype].kind == "c"


def datatype_of(port: Port) -> str:
    """Return the datatype of an input or output as its model declares it."""
    if port.dtype is None:
        return UNDECLARED
    if port.dtype == "bf16":
        return BF16
    dtype = PNNX_COMPUTE[port.dtype]
    return _OF_PARTS.get(dtype) or _OF_DTYPE[dtype]


def accepted_datatypes(port: Port) -> tuple[str, ...]:
    """Return the datatypes that an input accepts: its own, FP32 for BF16, or any if none is declared."""
    if port.dtype is None:
        return tuple(name for name, dtype in DTYPES.items() if dtype in PNNX_COMPUTE.values())
    own = datatype_of(port)
    return (own, "FP32") if own == BF16 else (own,)


def outgoing(array: Array, declared: str | None) -> tuple[str, Array]:
    """Return the datatype of an output, and its elements in that datatype (BF16 still as float32).

    Args:
        array: the output of a run.
        declared: PNNX dtype of the output; None if the file declares none.

    Raises:
        ServiceError: 400 `unsupported_output` for a dtype that the protocol cannot express.
    """
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if declared == "bf16" and array.dtype == np.float32:
        return BF16, array
    name = _OF_DTYPE.get(array.dtype) or _OF_DTYPE.get(array.dtype.newbyteorder("="))
    if name is None:
        message = f"an output is of dtype {array.dtype}, which the protocol has no datatype for"
        raise ServiceError(400, "unsupported_output", message, {"dtype": str(array.dtype)})
    return name, array


def to_bfloat16(array: Array) -> Array:
    """Round float32 to bfloat16, to nearest with ties to even; return the bits as uint16.

    Half a unit in the last place is added before the lower 16 bits are dropped; every NaN becomes a quiet NaN.
    """
    bits = np.ascontiguousarray(array, "<f4").view("<u4")
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1)).astype("<u4")) >> 16
    quiet = (bits >> 16) | 0x40
    return np.asarray(np.where(np.isnan(array), quiet, rounded).astype("<u2"))
