"""Maps the names that clients use for dtypes to numpy dtypes."""

from typing import Any

import numpy as np

from engine import PNNX_COMPUTE, PNNX_STORAGE

_OPEN_INFERENCE = {
    "BOOL": "bool",
    "BF16": "float32",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    **{f"{sign}INT{bits}": f"{sign.lower()}int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
}

_NAMES: dict[str, np.dtype[Any]] = {
    **{name.lower(): np.dtype(numpy) for name, numpy in _OPEN_INFERENCE.items()},
    **{dtype.name: dtype for code, dtype in PNNX_STORAGE.items() if code not in ("c32", "bf16")},
    **PNNX_COMPUTE,
}


def find_dtype(name: str) -> np.dtype[Any] | None:
    """Return the dtype of a PNNX (f32), numpy (float32) or Open Inference (FP32) name, None where unknown.

    numpy has no bf16 and no c32; their numbers are held as float32 and complex64.
    """
    return _NAMES.get(name.lower())
