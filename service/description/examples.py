"""Examples of requests that work with the models that are served, for the API's description."""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from math import prod
from typing import Any, TypeAlias

import numpy as np
from PIL import Image, ImageDraw

from engine import Port
from engine.dtypes import PNNX_COMPUTE, Array
from service.codec import JSON_TYPE, NPZ_TYPE
from service.repository.loaded_model import LoadedModel
from service.tasks.image import Target, find_target

Examples: TypeAlias = dict[str, dict[str, Any]]
"""Media type -> name of the example -> OpenAPI example object."""

_MOST_ELEMENTS = 4096
_MOST_CHARACTERS = 8192
"""Anything larger is no example that anybody reads: the command alone must do."""
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/bmp": "BMP"}


@dataclass(frozen=True, slots=True)
class _Example:
    media_type: str
    title: str
    value: Any
    curl: str


def examples_for(models: Iterable[LoadedModel]) -> Examples:
    """Return an example of each kind of body that each model takes, with the curl command that sends one.

    JSON and CSV stand as they are sent; images, npy and npz are in base64, as OpenAPI has bytes.
    """
    examples: Examples = {}
    for model in models:
        for example in (*_image_examples(model), *_tensor_examples(model)):
            command = f"curl {example.curl} 'http://127.0.0.1:8000/infer?model={model.name}'"
            shown: dict[str, Any] = {
                "summary": f"{model.name}: {example.title}",
                "description": f"`{command}`",
            }
            if not isinstance(example.value, str) or len(example.value) <= _MOST_CHARACTERS:
                shown["value"] = example.value
            named = examples.setdefault(example.media_type, {})
            named[f"{model.name}-{example.title.replace(' ', '-')}"] = shown
    return examples


def _image_examples(model: LoadedModel) -> Iterator[_Example]:
    inputs = model.graph.inputs
    target = find_target(model.config.image, inputs[0]) if model.config.image and len(inputs) == 1 else None
    if not isinstance(target, Target) or target.batch not in (1, None):
        return
    picture = _draw(target.width, target.height)
    encoded = {media_type: _encode(picture, name) for media_type, name in _FORMATS.items()}
    png = encoded["image/png"]
    yield _Example("multipart/form-data", "image file", {"file": png}, "-F file=@image.png")
    for media_type, text in encoded.items():
        file = f"@image.{media_type.partition('/')[2]}"
        yield _Example(media_type, "image", text, f"-H 'Content-Type: {media_type}' --data-binary {file}")
    yield _Example(JSON_TYPE, "image", {"image": png}, _post(JSON_TYPE, "image.json"))


def _tensor_examples(model: LoadedModel) -> Iterator[_Example]:
    ports = model.graph.inputs
    if not ports or any(prod(_shape(port)) > _MOST_ELEMENTS or _dtype(port).kind == "c" for port in ports):
        return
    if model.graph.declared_plan() is None:
        return  # shapes are not declared, or it does not run on 1 for each open dimension
    arrays = {port.operator: np.zeros(_shape(port), _dtype(port)) for port in ports}
    inputs = [
        {"name": name, "shape": list(array.shape), "dtype": str(array.dtype), "data": array.ravel().tolist()}
        for name, array in arrays.items()
    ]
    yield _Example(JSON_TYPE, "tensors", {"inputs": inputs}, _post(JSON_TYPE, "tensors.json"))
    yield _Example(NPZ_TYPE, "arrays", _saved(np.savez, **arrays), _post(NPZ_TYPE, "inputs.npz"))
    if len(arrays) > 1:
        return
    (array,) = arrays.values()
    yield _Example(
        "application/x-npy", "array", _saved(np.save, arr=array), _post("application/x-npy", "input.npy")
    )
    if array.ndim == 2:
        rows = "\n".join(",".join(str(value) for value in row) for row in array.astype(float).tolist())
        yield _Example("text/csv", "table", rows + "\n", _post("text/csv", "table.csv"))


def _post(media_type: str, file: str) -> str:
    return f"-H 'Content-Type: {media_type}' --data-binary @{file}"


def _shape(port: Port) -> tuple[int, ...]:
    """Return an input's declared shape, open dimensions taken as 1."""
    return tuple(1 if dim is None else dim for dim in port.shape or ())


def _dtype(port: Port) -> np.dtype[Any]:
    return PNNX_COMPUTE[port.dtype or "f32"]


def _draw(width: int, height: int) -> Image.Image:
    """Draw a 7, white on black."""
    picture = Image.new("L", (width, height))
    stroke = [(0.3, 0.25), (0.7, 0.25), (0.45, 0.8)]
    points = [(x * width, y * height) for x, y in stroke]
    ImageDraw.Draw(picture).line(points, fill=255, width=max(1, width // 12), joint="curve")
    return picture


def _encode(picture: Image.Image, image_format: str) -> str:
    target = BytesIO()
    picture.save(target, image_format)
    return base64.b64encode(target.getvalue()).decode()


def _saved(save: Any, **arrays: Array) -> str:
    target = BytesIO()
    save(target, **arrays)
    return base64.b64encode(target.getvalue()).decode()
