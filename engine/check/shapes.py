"""Input shapes of a check: requested, declared in the file, or those of the model's images."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.dtypes import PNNX_COMPUTE
from engine.errors import InputError, describe_problem
from engine.model.ports import Port
from engine.spec import TensorSpec

CONFIG = "model.toml"
"""Configuration file of the model; the service reads all of it, the check only sizes."""

Extents = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShapeChoice:
    """Input shapes to check a model with.

    Attributes:
        specs: one per input, in order; None if they are unknown.
        source: where they come from, or why they are unknown.
    """

    specs: tuple[TensorSpec, ...] | None
    source: str


def choose_shapes(ports: Sequence[Port], given: Sequence[Sequence[int]], model: Path) -> ShapeChoice:
    """Choose shapes for the inputs of a graph. An unknown dimension is never guessed.

    Args:
        ports: the graph's inputs.
        given: requested shapes, in the order of the inputs; empty for a choice.
        model: the `.param` file; a `model.toml` lies beside it, or one folder up where it is in a version's folder.

    Raises:
        InputError: as many shapes as inputs were expected, or `model.toml` cannot be read.
    """
    if given:
        if len(given) != len(ports):
            raise InputError(f"{len(given)} shapes; expected one for each of {len(ports)} inputs")
        return ShapeChoice(_specs(ports, [tuple(shape) for shape in given]), "as given")
    declared = [_whole(port.shape) for port in ports]
    whole = [shape for shape in declared if shape is not None]
    if len(whole) == len(ports):
        return ShapeChoice(_specs(ports, whole), "declared in the file")
    config, path = _read(model)
    images = [_image_shape(port, config, path) for port in ports]
    filled = [shape for shape in images if shape is not None]
    if len(filled) == len(ports):
        return ShapeChoice(
            _specs(ports, filled),
            f"declared in the file, dynamic dimensions for one image from [image] in {path}",
        )
    listed = _listed(ports, config)
    if listed is not None:
        return ShapeChoice(_specs(ports, listed), f"the first of {path}, [warm_up] shapes")
    unclear = ", ".join(str(port) for port, shape in zip(ports, images, strict=True) if shape is None)
    return ShapeChoice(None, f"the model has dynamic dimensions ({unclear}); give --shape, once per input")


def _specs(ports: Sequence[Port], shapes: Sequence[Extents]) -> tuple[TensorSpec, ...]:
    """Return inputs of these shapes, of the dtypes of the graph's inputs: f32 if undeclared."""
    return tuple(
        TensorSpec(shape, PNNX_COMPUTE[port.dtype or "f32"])
        for port, shape in zip(ports, shapes, strict=True)
    )


def _whole(shape: Sequence[int | None] | None) -> Extents | None:
    if shape is None:
        return None
    known = tuple(dim for dim in shape if dim is not None)
    return known if len(known) == len(shape) else None


def _read(model: Path) -> tuple[Mapping[str, Any], Path]:
    """Return the tables of a model's `model.toml` and its path; no tables where there is none."""
    folders = [model.parent, model.parent.parent] if model.parent.name.isdigit() else [model.parent]
    path = next((folder / CONFIG for folder in folders if (folder / CONFIG).is_file()), None)
    if path is None:
        return {}, model.parent / CONFIG
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")), path
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(describe_problem(str(path), str(error), "TOML")) from error


def _image_shape(port: Port, config: Mapping[str, Any], path: Path) -> Extents | None:
    """Return an input's shape for one image of the size in `[image]`; None if that has no size."""
    whole = _whole(port.shape)
    image = config.get("image")
    if whole is not None or port.shape is None or not isinstance(image, Mapping):
        return whole
    if len(port.shape) not in (3, 4):
        return None
    channels = 1 if image.get("colour") == "gray" else 3
    size = _size(image.get("size"), path)
    one_image = (1, channels, *(size or (None, None)))[-len(port.shape) :]
    return _whole(
        [known if known is not None else dim for known, dim in zip(port.shape, one_image, strict=True)]
    )


def _size(size: object, path: Path) -> tuple[int, int] | None:
    if size is None:
        return None
    match size:
        case [int(height), int(width)] if height > 0 and width > 0:
            return height, width
    raise InputError(
        describe_problem(f"{path}, image.size", f"is {size!r:.80}", "height and width, as in [224, 224]")
    )


def _listed(ports: Sequence[Port], config: Mapping[str, Any]) -> list[Extents] | None:
    """Return the first of the model's warm-up shapes; the service validates them."""
    warm_up = config.get("warm_up")
    shapes = warm_up.get("shapes") if isinstance(warm_up, Mapping) else None
    first = shapes[0] if isinstance(shapes, list) and shapes else None
    if not isinstance(first, list):
        return None
    rows = [first] if all(isinstance(dim, int) for dim in first) else first
    found = [tuple(row) for row in rows if isinstance(row, list) and all(isinstance(dim, int) for dim in row)]
    return found if len(found) == len(rows) == len(ports) else None
