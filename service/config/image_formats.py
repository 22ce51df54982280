"""The formats of images that a server or a model takes."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

ImageFormat = Literal["png", "jpeg", "webp", "bmp"]

KNOWN_FORMATS: tuple[ImageFormat, ...] = ("png", "jpeg", "webp", "bmp")
"""The formats of images that the server can read; BMP only without compression."""


def _split(value: object) -> object:
    return [item.strip().lower() for item in value.split(",")] if isinstance(value, str) else value


ImageFormats = Annotated[
    tuple[ImageFormat, ...], NoDecode, BeforeValidator(_split), Field(strict=False, min_length=1)
]
"""Formats of images; separated by commas in flags and in the environment."""
