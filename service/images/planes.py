"""Makes the planes of numbers that a model takes of one encoded image."""

import numpy as np
from PIL import Image

from engine import Array
from service.config.model_config import ImageConfig
from service.images.encoded_image import EncodedImage
from service.images.geometry import centre_box, fitting_size
from service.images.image_file import load_image, open_image


def make_planes(image: EncodedImage, config: ImageConfig, out: Array) -> tuple[int, int]:
    """Decode an image, and write it as planes.

    Args:
        image: the image.
        config: how to prepare it.
        out: float32 (channels, height, width), which is written.

    Returns:
        Width and height of the image, upright.

    Raises:
        ServiceError: 400 `invalid_image`.
        MemoryError: there is too little memory.
    """
    opened = image.opened or open_image(image.data, image.header, image.place)
    loaded = load_image(opened, config.colour == "gray", image.place)
    _, height, width = out.shape
    _normalise(_resize(loaded, config, (width, height)), config, out)
    return loaded.size


def _resize(image: Image.Image, config: ImageConfig, size: tuple[int, int]) -> Image.Image:
    resample = Image.Resampling[config.resample.upper()]
    if config.resize == "fit":
        return _fit(image, size, resample, config.pad)
    if config.resize == "crop":
        # cutting before resizing keeps an image of one row and a million columns from becoming a huge one
        return image.resize(size, resample, box=centre_box(image.size, size, config.crop_fraction))
    return image.resize(size, resample)


def _fit(image: Image.Image, size: tuple[int, int], resample: Image.Resampling, pad: int) -> Image.Image:
    """Scale the image to fit, and put it in the middle, between bars."""
    width, height = fitting_size(image.size, size)
    canvas = Image.new(image.mode, size, (pad,) * len(image.getbands()))
    shown = image.resize((width, height), resample)
    canvas.paste(shown, ((size[0] - width) // 2, (size[1] - height) // 2))
    return canvas


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
