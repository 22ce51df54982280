"""Decodes large images in a decoder process."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from engine import Array
from service.config.image_config import ImageConfig
from service.decoding import Decoder, Task
from service.decoding.shared_file import room_for
from service.images.encoded_image import EncodedImage

_FUNCTION = ("service.images.planes", "decode_image")  # a start of the server needs no Pillow
PIXEL_BYTES = 8
"""Bytes of memory for each weighted pixel: four of the image, and what decoders and filters take besides."""


def decode_remotely(
    decoder: Decoder, images: Sequence[EncodedImage], config: ImageConfig, batch: Array, seconds: float
) -> list[tuple[int, int]]:
    """Decode the images of a request.

    Args:
        decoder: where.
        images: the images.
        config: how to prepare them.
        batch: (images, channels, height, width), which is written.
        seconds: of the processor that all of them may take.

    Returns:
        Width and height of each, upright.

    Raises:
        ServiceError: 400 `invalid_image`; 422 `decoding_too_long`; 503 `decoder_failed`.
        MemoryError: there is too little memory.
    """
    tasks = [_task(image, config, out) for image, out in zip(images, batch, strict=True)]
    what = "the image takes" if len(images) == 1 else f"the {len(images)} images take"
    results = decoder.run(tasks, seconds, what)
    for out, (_, (planes,)) in zip(batch, results, strict=True):
        out[...] = planes
    return [(size[0], size[1]) for size, _ in results]


def _task(image: EncodedImage, config: ImageConfig, out: Array) -> Task:
    arguments = {
        "header": asdict(image.header),
        "place": image.place,
        "config": config.model_dump(mode="json", exclude_unset=True),  # some keys exclude others
        "shape": out.shape,
        "dtype": out.dtype.str,
    }
    sizes = [list(image.size), list(image.size[::-1])]

    def accepts(size: Any, arrays: list[Array]) -> bool:
        return size in sizes and [(one.shape, one.dtype) for one in arrays] == [(out.shape, out.dtype)]

    memory = image.header.weighted_pixels * PIXEL_BYTES + 2 * len(image.data)
    return Task(_FUNCTION, image.data, arguments, room_for(1, out.nbytes), memory, accepts)
