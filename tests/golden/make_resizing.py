"""Write `resizing.npz`: what PyTorch, OpenCV and Pillow make of pictures that are resized.

    pip install opencv-python-headless
    python -m tests.golden.make_resizing

needs the `train` extra besides. OpenCV's own kernels are asked, not Intel's, which round bicubic filters otherwise.
"""

from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

from engine import Array
from tests.service.images.cases import CASES, DATA, PARTS, ResizingCase, draw_picture

OPENCV = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "box": cv2.INTER_AREA,
}


def resized(picture: Array, size: tuple[int, int], case: ResizingCase) -> Array:
    """Resize a picture in a library; returns (rows, columns, 3)."""
    resample = case.keys.get("resample", "bilinear")
    library = case.keys.get("resize_as", "pillow")
    if library == "opencv":
        return np.asarray(cv2.resize(picture, size, interpolation=OPENCV[resample]))
    if library == "pillow":
        return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling[resample.upper()]))
    tensor = torch.from_numpy(picture).permute(2, 0, 1)[None].float()
    smooth = {} if resample == "nearest" else {"antialias": case.keys.get("antialias", True)}
    made: Array = F.interpolate(tensor, size[::-1], mode=resample, **smooth)[0].permute(1, 2, 0).numpy()
    return made


def letterbox(picture: Array, case: ResizingCase) -> Array:
    """Do what LetterBox(new_shape, auto=False, scaleup=...) of ultralytics does."""
    (columns, rows), (height, width) = case.array, picture.shape[:2]
    ratio = min(rows / height, columns / width)
    if not case.keys.get("scale_up", True):
        ratio = min(ratio, 1.0)
    size = round(width * ratio), round(height * ratio)
    across, down = (columns - size[0]) / 2, (rows - size[1]) / 2
    shown = picture if size == (width, height) else resized(picture, size, case)
    top, bottom = round(down - 0.1), round(down + 0.1)
    left, right = round(across - 0.1), round(across + 0.1)
    framed = cv2.copyMakeBorder(shown, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(114, 114, 114))
    return np.asarray(framed)


def centre(picture: Array, case: ResizingCase) -> Array:
    """Do what Resize(shorter_side) and CenterCrop(size) of torchvision do."""
    side, (columns, rows), (height, width) = case.keys["shorter_side"], case.array, picture.shape[:2]
    size = (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
    whole = resized(picture, size, case)
    top, left = round((size[1] - rows) / 2.0), round((size[0] - columns) / 2.0)
    return whole[top : top + rows, left : left + columns]


def respond(case: ResizingCase) -> Array:
    picture = draw_picture(case.picture)
    kind = case.keys.get("resize")
    made = (
        letterbox(picture, case)
        if kind == "fit"
        else centre(picture, case)
        if kind == "crop"
        else resized(picture, case.array, case)
    )
    return made if made.dtype == np.uint8 else np.rint(made * PARTS).astype(np.int16)


if __name__ == "__main__":
    cv2.ipp.setUseIPP(False)
    responses: dict[str, Any] = {case.name: respond(case) for case in CASES}
    np.savez_compressed(DATA, **responses)
