"""Makes the planes of numbers that a model takes of one encoded image."""

import numpy as np
from PIL import Image

from engine import Array
from service.config.model_config import ImageConfig
from service.images.encoded_image import EncodedImage
from service.images.image_file import load_image, open_image


def make_planes(image: EncodedImage, config: ImageConfig, out: Array) -> None:
    """Decode an image, and write it as planes.

    Args:
        image: the image.
        config: how to prepare it.
        out: float32 (channels, height, width), which is written.

    Raises:
        ServiceError: 400 `invalid_image`.
        MemoryError: there is too little memory.
    """
    opened = image.opened or open_image(image.data, image.header, image.place)
    loaded = load_image(opened, config.colour == "gray", image.place)
    _, height, width = out.shape
    _normalise(_resize(loaded, config, (width, height)), config, out)


def _resize(image: Image.Image, config: ImageConfig, size: tuple[int, int]) -> Image.Image:
    resample = Image.Resampling[config.resample.upper()]
    if config.resize == "fit":
        return _fit(image, size, resample, config.pad)
    if config.resize == "crop":
        return image.resize(size, resample, box=_centre(image, size, config.crop_fraction))
    return image.resize(size, resample)


def _fit(image: Image.Image, size: tuple[int, int], resample: Image.Resampling, pad: int) -> Image.Image:
    """Scale the image to fit, and put it in the middle, between bars."""
    factor = min(size[0] / image.width, size[1] / image.height)
    width = max(1, min(size[0], round(image.width * factor)))
    height = max(1, min(size[1], round(image.height * factor)))
    canvas = Image.new(image.mode, size, (pad,) * len(image.getbands()))
    shown = image.resize((width, height), resample)
    canvas.paste(shown, ((size[0] - width) // 2, (size[1] - height) // 2))
    return canvas


def _centre(image: Image.Image, size: tuple[int, int], fraction: float) -> tuple[float, float, float, float]:
    """Return the largest box of the target's aspect ratio in the middle, times `fraction`.

    Cutting before resizing keeps an image of one row and a million columns from becoming a huge one.
    """
    factor = fraction * min(image.width / size[0], image.height / size[1])
    width, height = min(image.width, size[0] * factor), min(image.height, size[1] * factor)
    left, top = (image.width - width) / 2, (image.height - height) / 2
    return left, top, left + width, top + height


def _normalise(image: Image.Image, config: ImageConfig, out: Array) -> None:
    """Write (pixel * scale - mean) / std of an (h, w) or (h, w, 3) image to `out` (channels, h, w)."""
    pixels = np.asarray(image)
    planes = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    if config.colour == "bgr":
        planes = planes[::-1]
    std = np.array(config.std).reshape(-1, 1, 1)
    mean = np.array(config.mean).reshape(-1, 1, 1)
    np.multiply(planes, (config.scale / std).astype(np.float32), out=out)
    if mean.any():
        out -= (mean / std).astype(np.float32)
