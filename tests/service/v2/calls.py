"""What tests of the real client share: tensors, outputs, and what a refusal says."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from engine import Array
from tests.service.server.process import ROOT

SAMPLE = ROOT / "models/digits/samples/7.png"
PAIR = (np.array([1, -2], np.float32), np.array([1, 1], np.float32))
NUMPY = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "bool": np.bool_,
}


def tensor(name: str, array: Array, binary: bool = True, datatype: str | None = None) -> Any:
    created = triton.InferInput(name, list(array.shape), datatype or np_to_triton_dtype(array.dtype))
    return created.set_data_from_numpy(array, binary_data=binary)


def pair(binary: bool = True) -> list[Any]:
    return [tensor(name, array, binary) for name, array in zip("ab", PAIR, strict=True)]


def output(name: str, binary: bool = True, classes: int = 0) -> Any:
    return triton.InferRequestedOutput(name, binary_data=binary, class_count=classes)


def refusal(client: Any, model: str, inputs: list[Any], **options: Any) -> tuple[str, str]:
    """Return the status and the message of an inference that is refused."""
    with pytest.raises(InferenceServerException) as caught:
        client.infer(model, inputs, **options)
    return caught.value.status(), caught.value.message()
