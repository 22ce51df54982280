"""Converts encoded images to the array that a model takes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine import PNNX_COMPUTE, Array, Port
from service.config.image_config import MAX_SIDE, ImageConfig
from service.config.image_formats import KNOWN_FORMATS
from service.config.model_config import FILE_NAME, ModelConfigError
from service.decoding import large_body_decoder
from service.errors import ServiceError
from service.images.encoded_image import EncodedImage
from service.images.geometry import ImageGeometry, place_image, width_at
from service.images.image_header import ImageHeader, read_header
from service.images.remote import decode_remotely

LARGE_PIXELS = 4_000_000
"""Images of more pixels are large bodies; those that take longer to decode count several times."""
_WIDTH_STEP = 32
"""Open widths are multiples of so many columns: each is a shape of its own, which is compiled."""


@dataclass(frozen=True, slots=True)
class ImageInput:
    """The images that an input of a graph takes.

    Attributes:
        batch: how many at once, None for any number.
        batched: the input has a batch dimension.
        height: rows.
        width: columns.
        dtype: dtype of the array.
        has_dynamic_width: whether `width` is the least, and wider images make the array wider.
    """

    batch: int | None
    batched: bool
    height: int
    width: int
    dtype: np.dtype[Any]
    has_dynamic_width: bool = False


@dataclass(frozen=True, slots=True)
class PreparedImages:
    """Images as a model's input.

    Attributes:
        array: (batch, channels, height, width), or (channels, height, width) for an input without a batch.
        geometries: where each image lies in its item.
    """

    array: Array
    geometries: list[ImageGeometry]


def check_image_inputs(config: ImageConfig, inputs: Sequence[Port]) -> None:
    """Check that a graph has an input that takes images as configured.

    Raises:
        ModelConfigError: it has none; the message says why.
    """
    found = [find_image_input(config, port) for port in inputs]
    if not any(isinstance(target, ImageInput) for target in found):
        reasons = "; ".join(str(reason) for reason in found) or "the graph has no input"
        raise ModelConfigError(FILE_NAME, "image", reasons)


def find_image_input(config: ImageConfig, port: Port) -> ImageInput | str:
    """Return what images an input takes, or why it takes none.

    An input is (batch, channels, height, width), or (channels, height, width) for one image.
    """
    shape = port.shape
    if shape is None:
        shape = (None, config.channels, None, None)
    if len(shape) not in (3, 4):
        return f"input {port} is not (batch, channels, height, width)"
    batch = shape[0] if len(shape) == 4 else 1
    channels, height, width = shape[-3:]
    if channels not in (config.channels, None):
        return f"colour is {config.colour}, {config.channels} channels, but input {port} has {channels}"
    if config.size is not None:
        height, width = config.size
    if height is None or width is None:
        return f"size is not given, and input {port} leaves it open"
    dtype = PNNX_COMPUTE[port.dtype or "f32"]
    if dtype.kind in "iu" and not _keeps_pixels(config):
        return f"input {port} takes whole numbers: scale, mean and std must be 1, 0 and 1"
    if dtype.kind not in "fiu" or dtype == np.int8:
        return f"input {port} does not take pixels of 0 to 255"
    is_dynamic = config.resize == "height" and shape[-1] is None
    return ImageInput(batch, len(shape) == 4, height, width, dtype, is_dynamic)


def widen(target: ImageInput, images: Sequence[EncodedImage]) -> ImageInput:
    """Return what an input takes that is as wide as some images need it to be.

    Raises:
        ServiceError: 400 `invalid_image`.
    """
    if not target.has_dynamic_width:
        return target
    from service.images.image_file import open_image, upright_size  # noqa: PLC0415  # a start needs no Pillow

    sizes = (
        upright_size(image.opened or open_image(image.data, image.header, image.place)) for image in images
    )
    widest = max(width_at(size, target.height) for size in sizes)
    steps = -(-widest // _WIDTH_STEP)
    return replace(
        target, width=max(target.width, min(steps * _WIDTH_STEP, MAX_SIDE)), has_dynamic_width=False
    )


def open_images(
    images: Sequence[bytes], pixel_limit: int, formats: Sequence[str] = KNOWN_FORMATS
) -> list[EncodedImage]:
    """Read the headers of encoded images, and check their formats and total size before any is decoded.

    Args:
        images: the encoded images.
        pixel_limit: maximum pixels in total; those of kinds that take more memory to decode count several times.
        formats: the formats that are taken, in lower case.

    Raises:
        ServiceError: 400 `invalid_image`, 413 `image_too_large`, 415 `unsupported_image_format`.
        NeedsDecoderError: they are large, and this thread leaves those to others.
    """
    taken = [name.upper() for name in formats]
    places = [_place(index, len(images)) for index in range(len(images))]
    headers = [read_header(data, taken, place) for data, place in zip(images, places, strict=True)]
    pixels = sum(header.weighted_pixels for header in headers)
    if pixels > pixel_limit:
        raise _too_large(headers, pixel_limit)
    weight = sum(header.decoded_pixels for header in headers)
    items = zip(images, headers, places, strict=True)
    if weight > LARGE_PIXELS and large_body_decoder() is not None:
        return [EncodedImage(*item) for item in items]
    from service.images.image_file import open_image  # noqa: PLC0415  # as above

    return [EncodedImage(*item, open_image(*item)) for item in items]


def _too_large(headers: Sequence[ImageHeader], limit: int) -> ServiceError:
    pixels = sum(header.width * header.height for header in headers)
    weighted = sum(header.weighted_pixels for header in headers)
    counted = f", which count as {weighted} in their formats" if weighted > pixels else ""
    message = f"the request's images have {pixels} pixels{counted}; the maximum is {limit}"
    sizes = [[header.width, header.height] for header in headers[:16]]
    return ServiceError(413, "image_too_large", message, {"sizes": sizes, "limit": limit})


def prepare(
    images: Sequence[EncodedImage], config: ImageConfig, target: ImageInput, seconds: float = 0.0
) -> PreparedImages:
    """Decode images and arrange them as a model's input.

    Args:
        images: what `open_images` gave, as many as the input takes.
        config: how to prepare them.
        target: what the input takes.
        seconds: that a decoder may take for large ones; those of a thread without a decoder take as long as they do.

    Raises:
        ServiceError: 400 `invalid_image`; 422 `decoding_too_long`, 503 `decoder_failed`.
        MemoryError: there is too little memory.
    """
    target = widen(target, images)
    dtype = target.dtype if target.dtype.kind in "iu" else np.dtype(np.float32)
    batch = np.empty((len(images), config.channels, target.height, target.width), dtype)
    decoder = large_body_decoder() if any(image.opened is None for image in images) else None
    if decoder is not None:
        sizes = decode_remotely(decoder, images, config, batch, seconds)
    else:
        from service.images.planes import make_planes  # noqa: PLC0415  # as above

        sizes = [make_planes(image, config, out) for image, out in zip(images, batch, strict=True)]
    array = batch.astype(target.dtype, copy=False)
    geometries = [place_image(config, size, (target.width, target.height)) for size in sizes]
    return PreparedImages(array if target.batched else array[0], geometries)


def _place(index: int, count: int) -> str:
    return "the image" if count == 1 else f"image {index + 1}"


def _keeps_pixels(config: ImageConfig) -> bool:
    return config.scale == 1 and set(config.mean) == {0} and set(config.std) == {1}
