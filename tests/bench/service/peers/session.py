"""The model of a peer: onnxruntime with one thread, and images as the model wants them."""

import json
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

FOLDER = Path(os.environ["BENCH_MODEL"])
PORT = int(os.environ["BENCH_PORT"])
WORKERS = int(os.environ["BENCH_WORKERS"])

Array = NDArray[np.float32]


class Session:
    """One model.

    Args:
        file: its name in the model's folder.
    """

    def __init__(self, file: str = "model.onnx") -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        path = str(FOLDER / file)
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        image = json.loads((FOLDER / "image.json").read_text())
        self._mode, self._side = image["mode"], image["side"]
        self._mean, self._std = (
            np.array(image[key], np.float32).reshape(-1, 1, 1) for key in ("mean", "std")
        )
        self.shape = tuple(self._session.get_inputs()[0].shape)
        self._input = self._session.get_inputs()[0].name

    def run(self, array: Array) -> Array:
        """Return the scores of an array."""
        scores: Array = self._session.run(None, {self._input: array})[0]
        return scores

    def from_numbers(self, numbers: Sequence[float]) -> Array:
        """Return the input of a list of numbers."""
        return np.array(numbers, np.float32).reshape(self.shape)

    def from_bytes(self, data: bytes) -> Array:
        """Return the input of the bytes of its elements."""
        return np.frombuffer(data, np.float32).reshape(self.shape)

    def from_image(self, data: bytes) -> Array:
        """Return the input of an encoded image."""
        picture = Image.open(BytesIO(data)).convert(self._mode)
        small = picture.resize((self._side, self._side), Image.Resampling.BILINEAR)
        pixels = np.asarray(small, np.float32).reshape(self._side, self._side, -1) / 255
        prepared = (pixels.transpose(2, 0, 1) - self._mean) / self._std
        return prepared[None].astype(np.float32, copy=False)
