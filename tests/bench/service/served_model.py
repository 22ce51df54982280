"""A model of the benchmark, as every server gets it."""

from dataclasses import dataclass
from pathlib import Path

from engine.dtypes import Array


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model, and what is asked of it.

    Attributes:
        name: its name.
        folder: holds `model.onnx` for one row, `batched.onnx` for any number of them, `image.json` and, in a folder of
            its name, what this server reads.
        array: an input.
        picture: an encoded image.
        scores: what PyTorch makes of the input.
        of_picture: what PyTorch makes of the image.
    """

    name: str
    folder: Path
    array: Array
    picture: bytes
    scores: Array
    of_picture: Array
