"""The table `[image]` of `model.toml`: how an image becomes an input."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from service.config.image_formats import KNOWN_FORMATS, ImageFormats
from service.config.toml_table import TomlTable

Colour = Literal["gray", "rgb", "bgr"]
Resize = Literal["stretch", "fit", "crop", "height"]
Resample = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
ResizeAs = Literal["pillow", "torch", "opencv"]

MAX_SIDE = 1 << 14
"""Maximum rows or columns of a prepared image."""

_FILTERS: dict[ResizeAs, tuple[Resample, ...]] = {
    "pillow": ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"),
    "torch": ("nearest", "bilinear", "bicubic"),
    "opencv": ("nearest", "box", "bilinear", "bicubic"),
}
"""The filters that each library has."""


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, int | float) else value


# TOML has only arrays, which stand for tuples here; their items are validated strictly
_Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
_Size = Annotated[tuple[_Side, _Side], Field(strict=False)]
_PerChannel = Annotated[tuple[float, ...], BeforeValidator(_as_list), Field(strict=False)]
_PerChannelPositive = Annotated[
    tuple[Annotated[float, Field(gt=0)], ...], BeforeValidator(_as_list), Field(strict=False)
]
_Level = Annotated[int, Field(ge=0, le=255)]
_Background = Annotated[tuple[_Level, _Level, _Level], Field(strict=False)]


class ImageConfig(TomlTable):
    """How an image becomes an input: `value = (pixel * scale - mean) / std`, laid out (channels, height, width).

    Attributes:
        size: height and width; default: those of the graph's input.
        colour: order and number of channels.
        resize: `stretch` ignores the aspect ratio, `fit` pads the whole image, `crop` takes the centre;
            `height` scales to the input's height and pads on the right, for lines of text. With a dynamic
            width, `size` has the minimum, and the widest image of a request sets the width, in steps of
            32.
        crop_fraction: for `crop`, the part of the shorter side that is kept.
        shorter_side: for `crop`, the length of the shorter side before the crop, as torchvision's
            `Resize(256)` and `CenterCrop(224)`; instead of `crop_fraction`.
        scale_up: for `fit`, whether smaller images are enlarged.
        pad: for `fit` and `height`, grey level of the padding.
        resize_as: library whose arithmetic is reproduced: Pillow and OpenCV's `resize` round to integers,
            PyTorch's `interpolate` does not.
        resample: filter. `pillow` antialiases all but `nearest`; `torch` has `nearest`, `bilinear` and
            `bicubic`, `opencv` also `box` (`INTER_AREA`).
        antialias: whether `torch` antialiases when it shrinks, by default true; `pillow` always does,
            `opencv` never.
        draft: whether large JPEGs that shrink with antialiasing are decoded at 1/2, 1/4 or 1/8, at no
            less than three times the target size.
        background: colour under transparent images, red, green and blue of 0 to 255; "auto": white, or
            black for white content.
        scale: factor on pixels of 0 to 255.
        mean: one value, or one per channel, after `scale`.
        std: one value, or one per channel, after `scale`.
        formats: accepted image formats, within the server's setting.
    """

    size: _Size | None = None
    colour: Colour = "rgb"
    resize: Resize = "stretch"
    crop_fraction: float = Field(default=1.0, gt=0, le=1)
    shorter_side: _Side | None = None
    scale_up: bool = True
    pad: int = Field(default=0, ge=0, le=255)
    resize_as: ResizeAs = "pillow"
    resample: Resample = "bilinear"
    antialias: bool | None = None
    draft: bool = True
    background: Literal["auto"] | _Background = "auto"
    scale: float = Field(default=1 / 255, gt=0)
    mean: _PerChannel = (0.0,)
    std: _PerChannelPositive = (1.0,)
    formats: ImageFormats = KNOWN_FORMATS

    @property
    def channels(self) -> int:
        """Number of channels."""
        return 1 if self.colour == "gray" else 3

    @property
    def smooths(self) -> bool:
        """Whether the filter covers all pixels of an image that is shrunk."""
        if self.resample == "nearest":
            return False
        if self.resize_as == "opencv":
            return self.resample == "box"
        return self.antialias is not False

    @model_validator(mode="after")
    def _check_channels(self) -> Self:
        for key in ("mean", "std"):
            count = len(getattr(self, key))
            if count not in (1, self.channels):
                raise ValueError(f"{key} has {count} values; expected 1 or {self.channels} ({self.colour})")
        return self

    @model_validator(mode="after")
    def _check_filter(self) -> Self:
        known = _FILTERS[self.resize_as]
        if self.resample not in known:
            names = ", ".join(known)
            raise ValueError(
                f'resample is "{self.resample}", which {self.resize_as} has not; expected one of {names}'
            )
        if self.antialias is False and self.resize_as == "pillow" and self.resample != "nearest":
            raise ValueError(
                'antialias is false, but Pillow\'s filters smooth; expected resize_as = "torch" or "opencv"'
            )
        if self.antialias is True and self.resize_as == "opencv":
            raise ValueError(
                'antialias is true, but OpenCV\'s filters do not smooth; expected resample = "box" without antialias'
            )
        return self

    @model_validator(mode="after")
    def _check_resize(self) -> Self:
        """Check that no key is given that belongs to another value of `resize`."""
        if self.shorter_side is not None and (
            self.resize != "crop" or "crop_fraction" in self.model_fields_set
        ):
            raise ValueError('shorter_side is given; expected resize = "crop", and no crop_fraction')
        if not self.scale_up and self.resize != "fit":
            raise ValueError('scale_up is false; expected resize = "fit"')
        return self
