"""Encoded images: PNG, JPEG, WebP and BMP."""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING

from service.codec.binding import only_port
from service.codec.decoded import Decoded
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
from service.codec.images import bind_images
from service.config.image_formats import KNOWN_FORMATS
from service.images.image_header import OTHER_PICTURES

if TYPE_CHECKING:
    from PIL import Image


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
            [("", body.data)], body.ports, body.config, body.limits, open_batch=body.open_batch
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
