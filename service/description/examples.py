"""Examples of requests for the models that are served, for the OpenAPI description."""

from base64 import b64decode
from collections.abc import Iterable
from math import prod
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
from PIL import Image, ImageDraw

from engine import PNNX_COMPUTE, Array, Port
from service.codec import FORMATS, Sample
from service.codec.format import BINARY_SCHEMA
from service.images.preparation import ImageInput, find_image_input
from service.repository.loaded_model import LoadedModel

Examples: TypeAlias = dict[str, dict[str, Any]]
"""Media type -> name of the example -> OpenAPI example object."""

_FORM_TYPE, _FORM_PICTURE = "multipart/form-data", "image/png"
"""Forms have a picture as their file."""
_TEXT = "A man is eating food."
_MAX_ELEMENTS = 4096
_MAX_CHARACTERS = 8192
"""Larger examples are not shown, as nobody would read them; the command remains."""


def examples_for(models: Iterable[LoadedModel]) -> Examples:
    """Return an example of each kind of body that each model takes, with the curl command that sends one.

    JSON and CSV are shown as they are sent; images, npy and npz are files, which `example_file` returns.
    """
    examples: Examples = {}
    for model in models:
        sample = _sample(model)
        for example in (example for known in FORMATS.values() for example in known.examples(sample)):
            command = f"curl {example.curl} 'http://127.0.0.1:8000/infer?model={model.name}'"
            shown: dict[str, Any] = {
                "summary": f"{model.name}: {example.title}",
                "description": f"`{command}`",
                "x-model": model.name,
            }
            if example.media_type in _binary_types() or example.media_type == _FORM_TYPE:
                kind = _FORM_PICTURE if example.media_type == _FORM_TYPE else example.media_type
                shown["externalValue"] = f"docs/examples/{model.name}?media_type={quote(kind, safe='')}"
            elif not isinstance(example.value, str) or len(example.value) <= _MAX_CHARACTERS:
                shown["value"] = example.value
            named = examples.setdefault(example.media_type, {})
            named[f"{model.name}-{example.title.replace(' ', '-')}"] = shown
    return examples


def example_file(model: LoadedModel, media_type: str) -> bytes | None:
    """Return the body of the example of a binary kind for a model; None where there is none.

    Args:
        model: the model.
        media_type: the kind of the body.
    """
    if media_type not in _binary_types():
        return None
    sample = _sample(model)
    found = (example for known in FORMATS.values() for example in known.examples(sample))
    return next((b64decode(example.value) for example in found if example.media_type == media_type), None)


def _binary_types() -> set[str]:
    """Return the media types of bodies that are bytes."""
    return {
        media_type
        for known in FORMATS.values()
        if known.schema().get("format") == BINARY_SCHEMA["format"]
        for media_type in known.media_types
    }


def _sample(model: LoadedModel) -> Sample:
    return Sample(sample_image(model), sample_arrays(model), None if model.config.text is None else _TEXT)


def sample_image(model: LoadedModel) -> Image.Image | None:
    """Return a picture that a model takes; None if it takes no picture."""
    inputs, config = model.graph.inputs, model.config.image
    target = find_image_input(config, inputs[0]) if config and len(inputs) == 1 else None
    if not isinstance(target, ImageInput) or target.batch not in (1, None):
        return None
    return _draw(target.width, target.height)


def sample_arrays(model: LoadedModel) -> dict[str, Array]:
    """Return zeros for each input of a model, by its operator; none if they are large, complex or of unknown shape."""
    ports = model.graph.inputs
    if not ports or any(prod(_shape(port)) > _MAX_ELEMENTS or _dtype(port).kind == "c" for port in ports):
        return {}
    if model.graph.declared_plan() is None:
        return {}  # no shapes are declared, or the model does not run with 1 for each dynamic dimension
    return {port.operator: np.zeros(_shape(port), _dtype(port)) for port in ports}


def _shape(port: Port) -> tuple[int, ...]:
    """Return the declared shape of an input, with 1 for each dynamic dimension."""
    return tuple(1 if dim is None else dim for dim in port.shape or ())


def _dtype(port: Port) -> np.dtype[Any]:
    return PNNX_COMPUTE[port.dtype or "f32"]


def _draw(width: int, height: int) -> Image.Image:
    """Draw a 7, white on black."""
    image = Image.new("L", (width, height))
    stroke = [(0.3, 0.25), (0.7, 0.25), (0.45, 0.8)]
    points = [(x * width, y * height) for x, y in stroke]
    ImageDraw.Draw(image).line(points, fill=255, width=max(1, width // 12), joint="curve")
    return image
