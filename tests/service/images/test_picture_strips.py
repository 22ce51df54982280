"""A large picture that is read in strips becomes what it becomes as a whole."""

from io import BytesIO
from itertools import product

import numpy as np
import pytest
from PIL import Image

from engine import Array
from service.config.image_config import ImageConfig
from service.errors import ServiceError
from service.images.encoded_image import EncodedImage
from service.images.image_file import IMAGE_FORMATS
from service.images.image_header import read_header
from service.images.picture_strips import PictureStrips
from service.images.planes import make_planes
from tests.cases import check_each
from tests.service.images.cases import draw_picture

KEYS: tuple[dict[str, object], ...] = (
    {},
    {"resample": "nearest"},
    {"resample": "lanczos", "resize": "crop"},
    {"resize": "crop", "shorter_side": 40},
    {"resize": "fit", "scale_up": False},
    {"resize_as": "torch"},
    {"resize_as": "torch", "antialias": False, "resample": "bicubic"},
    {"resize_as": "opencv", "resample": "box"},
    {"resize_as": "opencv"},
    {"resize_as": "opencv", "resample": "nearest"},
)


def _picture(mode: str) -> Image.Image:
    levels = draw_picture((83, 61))
    if mode == "I;16":
        return Image.fromarray(levels[..., 0].astype(np.uint16) << 8)
    if mode in ("RGBA", "LA"):
        return Image.fromarray(np.concatenate([levels, levels[..., :1]], axis=2)).convert(mode)
    return Image.fromarray(levels).convert(mode)


def _planes(mode: str, orientation: int, config: ImageConfig) -> Array:
    tags, target = Image.Exif(), BytesIO()
    tags[0x0112] = orientation
    options = {"transparency": 3} if mode in ("P", "L") else {}
    _picture(mode).save(target, "PNG", exif=tags, **options)
    data = target.getvalue()
    out = np.empty((config.channels, 45, 37), np.float32)
    make_planes(EncodedImage(data, read_header(data, IMAGE_FORMATS, ""), "the image"), config, out)
    return out


def test_strips_of_turned_pictures() -> None:
    def check(case: tuple[dict[str, object], int]) -> None:
        keys, orientation = case
        config = ImageConfig.model_validate(keys)
        whole = _planes("RGB", orientation, config)
        with pytest.MonkeyPatch.context() as patch:
            _read_in_strips(patch)
            np.testing.assert_array_equal(_planes("RGB", orientation, config), whole)

    check_each(product(KEYS, range(1, 9)), check)


@pytest.mark.parametrize("colour", ["gray", "rgb"])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_strips_of_all_modes(monkeypatch: pytest.MonkeyPatch, mode: str, colour: str) -> None:
    config = ImageConfig.model_validate({"colour": colour})
    whole = _planes(mode, 8, config)
    _read_in_strips(monkeypatch)
    np.testing.assert_array_equal(_planes(mode, 8, config), whole)


def test_what_pillow_raises_for_a_strip_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Image.Image:
        raise SyntaxError("broken palette")

    _read_in_strips(monkeypatch)
    monkeypatch.setattr("service.images.image_file._convert", fail)
    with pytest.raises(ServiceError, match="the image is damaged: broken palette"):
        _planes("P", 1, ImageConfig())


def test_strips_cover_each_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.images.picture_strips._STRIP_PIXELS", 300)
    picture = PictureStrips(_picture("RGB"), "RGB", lambda strip: strip, Image.Transpose.ROTATE_90)
    assert (picture.width, picture.height) == (61, 83)
    assert [row for top, bottom in picture.strips() for row in range(top, bottom)] == list(range(83))


def _read_in_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.images.image_file._LARGE_PIXELS", 0)
    monkeypatch.setattr("service.images.picture_strips._STRIP_PIXELS", 7 * 83)
