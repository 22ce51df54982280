"""How pictures are prepared for families of models, as `[image]` in `model.toml` says it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

Value = str | float | bool | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """How a family of models takes pictures.

    Attributes:
        text: what it is, for people.
        image: keys of `[image]`, without the size.
        labels: name of a list of classes, for a model with as many; None for none.
        task: the task of such models where nothing else does.
    """

    text: str
    image: Mapping[str, Value] = field(default_factory=dict)
    labels: str | None = None
    task: str = "classification"


_CROP: dict[str, Value] = {"resize": "crop", "crop_fraction": 0.875}

PRESETS: Mapping[str, Preset] = {
    "imagenet": Preset(
        "torchvision's models of ImageNet: the centre of the picture, mean and std of ImageNet",
        {**_CROP, "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)},
        labels="imagenet",
    ),
    "efficientnet-lite": Preset(
        "EfficientNet-Lite: the centre of the picture, (pixel - 127) / 128",
        {**_CROP, "resample": "bicubic", "mean": (0.49803922,), "std": (0.50196078,)},
        labels="imagenet",
    ),
    "inception": Preset(
        "Inception, MobileNet of TensorFlow, many ViT: the centre of the picture, values from -1 to 1",
        {**_CROP, "mean": (0.5,), "std": (0.5,)},
        labels="imagenet",
    ),
    "clip": Preset(
        "CLIP: the centre of the picture, mean and std of its training",
        {
            "resize": "crop",
            "resample": "bicubic",
            "mean": (0.48145466, 0.4578275, 0.40821073),
            "std": (0.26862954, 0.26130258, 0.27577711),
        },
        task="embedding",
    ),
    "yolo": Preset(
        "YOLOv5 to v11: the whole picture between grey bars, values from 0 to 1",
        {"resize": "fit", "pad": 114, "resize_as": "opencv"},
        labels="coco",
        task="detection",
    ),
    "ppocr": Preset(
        "PP-OCR's recognisers: lines of text, scaled to the input's height, values from -1 to 1",
        {
            "colour": "bgr",
            "resize": "height",
            "resize_as": "opencv",
            "mean": (0.5,),
            "std": (0.5,),
            "pad": 127,
        },
        task="ocr",
    ),
    "ppocr-detection": Preset(
        "PP-OCR's detectors of lines: the whole picture between grey bars, values from -1 to 1",
        {
            "colour": "bgr",
            "resize": "fit",
            "resize_as": "opencv",
            "mean": (0.5,),
            "std": (0.5,),
            "pad": 127,
        },
        task="text-detection",
    ),
    "unit": Preset("values from 0 to 1, the whole picture stretched to the size"),
}
"""Presets by name."""

LISTS = ("imagenet", "coco")
"""Lists of classes that ship: the 1,000 of ImageNet, the 80 of COCO, in order of index."""


def class_names(name: str) -> list[str]:
    """Return a list of classes that ships."""
    return (files("service.export") / "names" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
