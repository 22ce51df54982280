"""Responds with the picture of a request and the predictions drawn on it."""

from collections.abc import Sequence

from engine import Array
from service.codec import Picture
from service.config.limits import Limits
from service.config.model_config import ImageConfig
from service.decoding import leave_large
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.images.whole import Box, whole_picture
from service.tasks import Prediction, Task

PNG_TYPE = "image/png"
LARGE_PIXELS = 2_000_000
"""Maximum pixels of a picture that is drawn where it is."""
MAX_SIDE = 2048
"""Maximum columns and rows of a drawn picture; larger pictures are drawn smaller."""


def check_drawable(task: Task, pictures: Sequence[Picture]) -> None:
    """Check, before a run, that its predictions can be drawn.

    Raises:
        ServiceError: 422 `not_drawable`.
    """
    if not task.draws:
        raise _not_drawable(f"the task {task.name!r} of the model draws nothing; ask for JSON")
    if len(pictures) != 1:
        cure = (
            "send each picture by itself, or ask for JSON" if pictures else "send a picture, or ask for JSON"
        )
        raise _not_drawable(
            f"the request has {len(pictures)} pictures, and a response of {PNG_TYPE} is a single one; {cure}"
        )


def render(
    task: Task,
    picture: Picture,
    predictions: Sequence[Sequence[Prediction]] | None,
    config: ImageConfig,
    limits: Limits,
) -> bytes:
    """Return the picture as PNG, with the predictions drawn on it.

    Args:
        task: draws them.
        picture: the request's picture.
        predictions: what the task predicted.
        config: how the model's pictures are decoded.
        limits: how large a picture may be.

    Raises:
        ServiceError: the picture cannot be decoded once more.
        NeedsDecoderError: it is large, and this thread leaves those to others.
    """
    geometry = picture.geometry
    width, height = drawn_size(geometry)
    leave_large(width * height, LARGE_PIXELS)
    pixels = whole_picture(picture.data, config, (width, height), limits)
    from service.images.drawing import Drawing  # noqa: PLC0415  # a start needs no Pillow

    drawing = Drawing(pixels, (geometry.width, geometry.height))
    for item in (predictions or ())[:1]:
        task.draw(drawing, item)
    return drawing.encode()


def render_heatmap(
    picture: Picture, heatmap: Array, region: Box, config: ImageConfig, limits: Limits
) -> bytes:
    """Return the picture as PNG, with a heatmap laid over the region: red where it is positive, blue where negative.

    Raises:
        ServiceError: the picture cannot be decoded once more.
    """
    geometry = picture.geometry
    pixels = whole_picture(picture.data, config, drawn_size(geometry), limits)
    from service.images.drawing import Drawing  # noqa: PLC0415  # a start needs no Pillow

    drawing = Drawing(pixels, (geometry.width, geometry.height))
    drawing.heatmap(heatmap, region)
    return drawing.encode()


def drawn_size(geometry: ImageGeometry) -> tuple[int, int]:
    """Return the width and the height at which a picture is drawn."""
    factor = min(1.0, MAX_SIDE / max(geometry.width, geometry.height))
    return max(1, round(geometry.width * factor)), max(1, round(geometry.height * factor))


def _not_drawable(problem: str) -> ServiceError:
    return ServiceError(422, "not_drawable", problem, {"expected": "one picture, for a task that draws"})
