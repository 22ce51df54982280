"""Prepares crops of a request's pictures as the input of a graph, without encoding them."""

from collections.abc import Sequence

from engine import Array, Port
from service.codec.decoded import Picture
from service.config.image_config import ImageConfig
from service.config.limits import Limits
from service.errors import ServiceError
from service.images.encoded_image import EncodedImage
from service.images.preparation import ImageInput, find_image_input, prepare, widen
from service.images.whole import cut_parts, whole_picture


def crop_input(
    pictures: Sequence[tuple[Picture, Sequence[Array]]],
    rotations: Sequence[int],
    margin: float,
    port: Port,
    config: ImageConfig,
    source: ImageConfig,
    limits: Limits,
) -> Array:
    """Cut parts out of pictures, and prepare all of them as one batch.

    Args:
        pictures: each picture with its parts, as `cut_parts` takes them; there is one part at least.
        rotations: for each part of all pictures by how many degrees its content is rotated clockwise; empty where all
            are upright.
        margin: part of a box's width and height that is added on each side.
        port: the graph's input.
        config: how its model prepares pictures.
        source: how the pictures themselves are decoded.
        limits: upper bounds on the size of a request.

    Raises:
        ServiceError: 413 `tensor_too_large`, 422 `not_an_image_model`, or a picture cannot be decoded.
        NeedsDecoderError: this thread leaves large pictures to others.
    """
    target = find_image_input(config, port)
    if not isinstance(target, ImageInput):
        raise ServiceError(422, "not_an_image_model", target, {"name": port.operator})
    count = sum(len(parts) for _, parts in pictures)
    limits.check_shape((count, config.channels, target.height, target.width), f"input {port.operator}")
    # boxes may overlap: all crops together may have many times the pixels of the picture
    most = max(1, limits.image_pixels // count)
    turned = rotations or [0] * count
    crops: list[EncodedImage] = []
    for picture, parts in pictures:
        if parts:
            width, height = size = _decoded_size(picture, limits)
            pixels = whole_picture(picture.data, source, size, limits)
            scale = width / picture.geometry.width, height / picture.geometry.height
            scaled = [part * scale for part in parts]
            crops += cut_parts(pixels, scaled, margin, turned[len(crops) :][: len(parts)], most)
    wide = widen(target, crops)
    limits.check_shape((len(crops), config.channels, wide.height, wide.width), f"input {port.operator}")
    return prepare(crops, config, wide).array


def _decoded_size(picture: Picture, limits: Limits) -> tuple[int, int]:
    """Return width and height at which a picture is decoded: its own, or less where that is too much memory."""
    width, height = picture.geometry.width, picture.geometry.height
    factor = min(1.0, (limits.tensor_elements / (3 * width * height)) ** 0.5)
    return max(1, int(width * factor)), max(1, int(height * factor))
