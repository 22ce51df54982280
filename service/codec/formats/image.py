"""Encoded images, PNG, JPEG, WebP and BMP: as bodies of their own, and as inputs of a graph, however they are sent."""

import binascii
import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from engine import Port
from service.codec.binding import bind, find_port, only_port
from service.codec.decoded import Decoded, Picture
from service.codec.format import (
    BINARY_SCHEMA,
    Example,
    Format,
    JsonSchema,
    RequestBody,
    Sample,
    base64_text,
    curl_file,
)
from service.codec.options import Options
from service.config.image_config import ImageConfig
from service.config.image_formats import KNOWN_FORMATS
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError
from service.images.image_header import OTHER_PICTURES
from service.images.preparation import ImageInput, find_image_input, open_images, prepare, widen
from service.images.url import URL_ADVICE, is_url

if TYPE_CHECKING:
    from PIL import Image


_PIECE = 1 << 20
"""Characters of base64 that are decoded at a time."""
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)


class ImageFormat(Format):
    """One encoded image, for a model with one input."""

    name = "image"
    media_types = tuple(f"image/{name}" for name in KNOWN_FORMATS)
    aliases = (
        "image/jpg",
        "image/x-ms-bmp",
        *(f"image/{name}" for name in ("gif", "tiff", "heic", "heif", "avif")),
    )
    signatures = (
        re.compile(rb"\x89PNG\r\n\x1a\n"),
        re.compile(rb"\xff\xd8\xff"),
        re.compile(rb"RIFF....WEBP", re.DOTALL),
        re.compile(rb"BM.{4}\0\0\0\0", re.DOTALL),
        *(signature for signature, _ in OTHER_PICTURES),  # refused by what they are, however they are sent
    )

    def decode(self, body: RequestBody) -> Decoded:
        """Decode the image and prepare it as the model's configuration says."""
        only_port(body.ports, "one image")
        return bind_images(
            [("", body.data)], body.ports, body.config, body.limits, dynamic_batch=body.dynamic_batch
        )

    def schema(self) -> JsonSchema:
        """Return the schema: bytes."""
        return BINARY_SCHEMA

    def examples(self, sample: Sample) -> Iterator[Example]:
        """Yield the image in each encoding."""
        if sample.image is None:
            return
        for media_type, encoding in zip(self.media_types, KNOWN_FORMATS, strict=True):
            curl = curl_file(media_type, f"image.{encoding}")
            yield Example(media_type, "image", image_text(sample.image, encoding.upper()), curl)


IMAGE_FORMAT = ImageFormat()


def image_text(image: "Image.Image", encoding: str = "PNG") -> str:
    """Return an encoded image in base64."""
    target = BytesIO()
    image.save(target, encoding)
    return base64_text(target.getvalue())


def bind_images(
    images: Sequence[tuple[str, bytes]],
    ports: Sequence[Port],
    config: ModelConfig,
    limits: Limits,
    options: Options | None = None,
    *,
    dynamic_batch: bool = False,
) -> Decoded:
    """Prepare images as the inputs of a graph.

    Args:
        images: field name and encoded image. The names matter only to a graph of several inputs: each must be that
            of an input. Several images for one input are a batch, in order.
        ports: the graph's inputs.
        config: the model's configuration.
        limits: upper bounds on the request's size.
        options: what the body holds beside them.
        dynamic_batch: whether the first dimension of the inputs may have any extent, even if the file fixes it.

    Raises:
        ServiceError: 400 `invalid_image`, 413 `image_too_large` or `tensor_too_large`, 415
            `unsupported_image_format`, 422 `not_an_image_model`, `wrong_image_count`, `unknown_input`,
            `missing_input` or `decoding_too_long`, 503 `decoder_failed`.
    """
    if config.image is None:
        message = f"the model takes no images: its model.toml has no [image] table; send tensors for {_names(ports)}"
        raise ServiceError(422, "not_an_image_model", message, {"inputs": [port.operator for port in ports]})
    if not images:
        raise _wrong_count(0, "at least one")
    channels = config.image.channels
    fields = [find_port(ports, name if len(ports) > 1 else None) for name, _ in images]
    targets = [(port, _image_input(config.image, port)) for port in ports if port in fields]
    for port, target in targets:
        count = fields.count(port)
        if not (dynamic_batch and target.batched):
            _check_count(target, count)
        shape = (count, channels, target.height, target.width)
        limits.check_shape(shape, f"input {port.operator}")
    opened = open_images([data for _, data in images], limits.image_pixels, config.image.formats)
    pairs, pictures = [], list[Picture]()
    for port, target in targets:
        chosen = [image for field, image in zip(fields, opened, strict=True) if field == port]
        wide = widen(target, chosen)
        limits.check_shape((len(chosen), channels, wide.height, wide.width), f"input {port.operator}")
        prepared = prepare(chosen, config.image, wide, limits.decode_seconds)
        pairs.append((port, prepared.array))
        placed = zip(chosen, prepared.geometries, strict=True)
        pictures += [
            Picture(port.operator, image.data, geometry, image.header.is_animated)
            for image, geometry in placed
        ]
    return Decoded(bind(ports, pairs), options or Options(), tuple(pictures))


def decode_base64(text: str, place: str) -> bytes:
    """Read base64 (RFC 4648), with or without line ends, bare or as a `data:` URL.

    Raises:
        ServiceError: 400 `invalid_base64`.
    """
    if is_url(text):
        message = f"{place} is a URL; {URL_ADVICE}"
        raise ServiceError(400, "invalid_base64", message, {"expected": "base64 or a data: URL"})
    if text[:5].lower() == "data:":
        match = _DATA_URL.match(text)
        if match is None:
            message = f"{place} is a data: URL of another encoding; expected ;base64,"
            raise ServiceError(400, "invalid_base64", message, {"expected": "data:image/png;base64,…"})
        text = text[match.end() :]
    try:
        return _decode_pieces(text)
    except ValueError as error:
        message = f"{place} is not base64: {error}"
        raise ServiceError(400, "invalid_base64", message, {"expected": "base64 or a data: URL"}) from error


def _decode_pieces(text: str) -> bytes:
    """Decode base64 piece by piece, to release the GIL in between.

    Raises:
        ValueError: it is not base64.
    """
    if len(text) <= _PIECE:
        return binascii.a2b_base64("".join(text.split()), strict_mode=True)
    decoded, rest = bytearray(), ""
    for start in range(0, len(text), _PIECE):
        rest += "".join(text[start : start + _PIECE].split())
        is_last = start + _PIECE >= len(text)
        # four characters are three bytes; the padding is in the last four
        end = len(rest) if is_last else max(0, len(rest) - 4) // 4 * 4
        decoded += binascii.a2b_base64(rest[:end], strict_mode=True)
        if not is_last and rest[:end].endswith("="):
            raise ValueError("Excess data after padding")
        rest = rest[end:]
    return bytes(decoded)


def _image_input(config: ImageConfig, port: Port) -> ImageInput:
    target = find_image_input(config, port)
    if isinstance(target, str):
        raise ServiceError(422, "not_an_image_model", target, {"name": port.operator})
    return target


def _check_count(target: ImageInput, count: int) -> None:
    if target.batch is not None and target.batch != count:
        raise _wrong_count(
            count, f"{target.batch}, the batch size of a model that is not proved to take others"
        )


def _wrong_count(count: int, expected: str) -> ServiceError:
    message = f"the request has {count} images; expected {expected}"
    return ServiceError(422, "wrong_image_count", message, {"images": count, "expected": expected})


def _names(ports: Sequence[Port]) -> str:
    return ", ".join(port.operator for port in ports)
