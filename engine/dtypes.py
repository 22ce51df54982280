"""PNNX type names and torch dtype names <-> numpy dtypes.

bf16 and c32 have no numpy dtype: they are stored as their raw bits (`uint16`, pairs of `float16`) and
widened to float32 and complex64 before anything computes with them.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""A numpy array of any dtype."""

PNNX_STORAGE: dict[str, np.dtype[Any]] = {
    "f32": np.dtype("<f4"),
    "f64": np.dtype("<f8"),
    "f16": np.dtype("<f2"),
    "i32": np.dtype("<i4"),
    "i64": np.dtype("<i8"),
    "i16": np.dtype("<i2"),
    "i8": np.dtype("i1"),
    "u8": np.dtype("u1"),
    "bool": np.dtype("?"),
    "c64": np.dtype("<c8"),
    "c128": np.dtype("<c16"),
    "c32": np.dtype([("re", "<f2"), ("im", "<f2")]),
    "bf16": np.dtype("<u2"),
}
"""PNNX type name -> numpy dtype that holds one element as it is stored."""

PNNX_COMPUTE: dict[str, np.dtype[Any]] = PNNX_STORAGE | {
    "c32": np.dtype("<c8"),
    "bf16": np.dtype("<f4"),
}
"""PNNX type name -> numpy dtype of its values during a run."""

_TORCH_NAMES: dict[str, str] = {
    "f32": "torch.float torch.float32",
    "f64": "torch.double torch.float64",
    "f16": "torch.half torch.float16",
    "i32": "torch.int torch.int32",
    "i64": "torch.long torch.int64",
    "i16": "torch.short torch.int16",
    "i8": "torch.int8",
    "u8": "torch.uint8",
    "bool": "torch.bool",
    "c64": "torch.complex64 torch.cfloat",
    "c128": "torch.complex128 torch.cdouble",
    "c32": "torch.complex32 torch.chalf",
    "bf16": "torch.bfloat16",
}

TORCH_DTYPES: dict[str, np.dtype[Any]] = {
    name: PNNX_COMPUTE[code] for code, names in _TORCH_NAMES.items() for name in names.split()
}
"""torch dtype name, as PNNX writes it in `dtype=torch.float`, -> numpy dtype."""


_PNNX_NAMES = {dtype: name for name, dtype in PNNX_STORAGE.items() if name not in ("bf16", "c32")}


def widen(stored: Array, code: str) -> Array:
    """Turn stored elements of PNNX type `code` into the numpy dtype that computes with them.

    Returns `stored` itself unless the type has no numpy dtype of its own (bf16, c32).
    """
    if code == "bf16":
        return (stored.astype("<u4") << 16).view("<f4")
    if code == "c32":
        return stored.reshape(-1).view("<f2").astype("<f4").view("<c8").reshape(stored.shape)
    return stored


def pnnx_name(dtype: npt.DTypeLike) -> str:
    """Return the PNNX name (`f32`, `i64`, …) of a numpy dtype, or its numpy name where PNNX has none."""
    wanted = np.dtype(dtype)
    return _PNNX_NAMES.get(wanted) or str(wanted)
