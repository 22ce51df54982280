"""What a caller gives as inputs -> the body of a request: arrays, or pictures by path, as bytes, or of PIL."""

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class PilImage(Protocol):
    """What is asked of an image of PIL, which need not be installed."""

    def save(self, fp: Any, format: str | None = None) -> None:
        """Write the image to a file."""


Picture: TypeAlias = str | os.PathLike[str] | bytes | PilImage
"""A path, the bytes of a file, or an image of PIL."""
Inputs: TypeAlias = Array | Mapping[str, Array] | Sequence[Array] | Picture | Sequence[Picture]
"""One array, arrays by name of the input or in their order, one picture, or several pictures as a batch."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays for a model's inputs; `names` is None where they are in the order of the inputs."""

    names: tuple[str, ...] | None
    values: tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Pictures:
    """Encoded pictures, one for each row of a batch."""

    files: tuple[bytes, ...]


def sort_inputs(inputs: Inputs) -> Arrays | Pictures:
    """Distinguish arrays from pictures.

    Raises:
        TypeError: they are neither, or a mixture, or none.
        OSError: a picture's file cannot be read.
    """
    if isinstance(inputs, Mapping):
        return Arrays(tuple(inputs), tuple(np.asarray(value) for value in inputs.values()))
    if isinstance(inputs, np.ndarray):
        return Arrays(None, (inputs,))
    if _is_picture(inputs):
        return Pictures((_read(inputs),))  # type: ignore[arg-type]  # `_is_picture` has checked
    if isinstance(inputs, Sequence) and inputs:
        if all(isinstance(item, np.ndarray) for item in inputs):
            return Arrays(None, tuple(inputs))  # type: ignore[arg-type]  # each item is an array
        if all(_is_picture(item) for item in inputs):
            return Pictures(tuple(_read(item) for item in inputs))  # type: ignore[arg-type]
    raise TypeError(
        f"inputs: are {type(inputs).__name__}; expected an array, a dict or a list of arrays, a picture's path, bytes "
        "or PIL image, or a list of pictures"
    )


def _is_picture(value: object) -> bool:
    return isinstance(value, str | os.PathLike | bytes) or (
        hasattr(value, "save") and not isinstance(value, np.ndarray)
    )


def _read(picture: Picture) -> bytes:
    if isinstance(picture, bytes):
        return picture
    if isinstance(picture, str | os.PathLike):
        return Path(picture).read_bytes()
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def npz(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as the bytes of an npz file."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def npy(array: Array) -> bytes:
    """Return an array as the bytes of an npy file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
