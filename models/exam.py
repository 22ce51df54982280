"""Measure the models that ship on drawings that nothing was trained on: `python models/exam.py [--fonts FOLDER]`.

Draws printed digits in fonts that are not trained on (`fonts.MEASURED`), and handwritten ones of scans that are held
out; plain, thick, small, rotated, inverted, coloured, noisy, blurred and shaded. Sends them as PNG through the server's
decoding, the engine and the task, and prints what is right. Needs the extra `train` for the scans.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from fonts import FOLDERS, MEASURED, find_fonts, glyph
from ink import VISIBLE, draw_ink
from PIL import Image, ImageFilter
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "digit-scenes")]

from training.average_precision import iou  # noqa: E402
from training.command import TRAIN_SHARE  # noqa: E402

from service.codec import decode  # noqa: E402
from service.commands.inference import Inference  # noqa: E402
from service.config.limits import Limits  # noqa: E402
from service.repository.version_loader import LoadOptions, load_version  # noqa: E402

SEED = 9001
LEAST_FAMILIES = 8
SCENES = 30
OVERLAP = 0.5
KINDS = ("plain", "thick", "small", "rotated", "inverted", "coloured", "noisy", "blurred", "shaded", "mixed")
"""Mixed drawings are rotated by up to 15 degrees and have three others of these at once."""

Rng = np.random.Generator


class Drawing(NamedTuple):
    """A picture of one digit.

    Attributes:
        picture: RGB.
        digit: 0 to 9.
        source: printed or handwritten.
        kind: one of `KINDS`.
    """

    picture: Image.Image
    digit: int
    source: str
    kind: str


class Source:
    """Draws the ink of digits, printed or handwritten.

    Args:
        families: of fonts, each a list of files.
        scans: (n, 8, 8) of values 0 to 1.
        digits: (n,) what they show.
    """

    def __init__(self, families: list[list[Path]], scans: np.ndarray, digits: np.ndarray) -> None:
        self.fonts = [font for family in families for font in family]
        self.scans, self.digits = scans, digits

    def printed(self, font: Path, digit: int, height: int, thick: bool, angle: float) -> np.ndarray:
        """Return the ink of a printed digit, (rows, columns) of values 0 to 1."""
        ink = np.pad(glyph(font, digit, 5 if thick else 0), 80)
        return _sized(Image.fromarray(np.uint8(ink * 255)).rotate(angle, Image.Resampling.BICUBIC), height)

    def handwritten(self, place: int, height: int, angle: float, rng: Rng) -> np.ndarray:
        """Return the ink of a held-out scan, bent, turned and slanted."""
        ink = np.pad(draw_ink(self.scans[place], 120, rng, bent=True), 80)
        return _sized(Image.fromarray(np.uint8(np.clip(ink, 0, 1) * 255)).rotate(angle), height)


def _sized(picture: Image.Image, height: int) -> np.ndarray:
    cut = picture.crop(picture.point(lambda value: 255 * (value >= 255 * VISIBLE)).getbbox())
    width = max(2, round(cut.width * height / cut.height))
    return np.asarray(cut.resize((width, height), Image.Resampling.BOX), np.float32) / 255


def drawings(source: Source, rng: Rng) -> Iterator[Drawing]:
    """Yield of each kind one digit of each font, and as many held-out scans."""
    for kind in KINDS:
        for number, font in enumerate(source.fonts):
            kinds = {kind}
            if kind == "mixed":
                kinds = {
                    "rotated",
                    *rng.choice([one for one in KINDS if one != kind], 3, replace=False).tolist(),
                }
            side = int(rng.choice((64, 128, 256)))
            height = round(side * (rng.uniform(0.28, 0.4) if "small" in kinds else rng.uniform(0.5, 0.8)))
            turn = 15 * (rng.uniform(-1, 1) if kind == "mixed" else rng.choice((-1, 1)) * (kind == "rotated"))
            ink = source.printed(font, number % 10, height, "thick" in kinds, turn)
            yield Drawing(_single(ink, side, kinds, rng), number % 10, "printed", kind)
            place = int(rng.integers(len(source.scans)))
            ink = source.handwritten(place, height, turn, rng)
            yield Drawing(_single(ink, side, kinds, rng), int(source.digits[place]), "handwritten", kind)


def _single(ink: np.ndarray, side: int, kinds: set[str], rng: Rng) -> Image.Image:
    """Lay ink near the middle of a square picture, dark on light but for the kinds that say otherwise."""
    if ink.shape[1] > 0.9 * side:
        ink = _sized(Image.fromarray(np.uint8(ink * 255)), round(ink.shape[0] * 0.9 * side / ink.shape[1]))
    room = np.array((side, side)) - ink.shape
    top, left = np.round(room * rng.uniform(0.3, 0.7, 2)).astype(int)
    whole = np.zeros((side, side), np.float32)
    whole[top : top + ink.shape[0], left : left + ink.shape[1]] = ink
    dark, light = np.full(3, 20.0), np.full(3, 245.0)
    if "inverted" in kinds:
        dark, light = light, dark
    if "coloured" in kinds:
        dark, light = _colours(rng)
    canvas = light + (dark - light) * whole[..., None]
    if "shaded" in kinds:
        canvas *= _shade(side, side, rng)[..., None]
    return _exposed(canvas, 30 if "noisy" in kinds else 0, side * 0.025 if "blurred" in kinds else 0, rng)


def _colours(rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """Return two colours whose brightness differs by 70 of 255 or more."""
    while True:
        ink, ground = rng.uniform(0, 255, (2, 3))
        if abs((ink - ground) @ (0.299, 0.587, 0.114)) >= 70:
            return ink, ground


def _shade(height: int, width: int, rng: Rng) -> np.ndarray:
    """Return a light that falls off from one side of the picture to the other, (height, width) from 1 to 0.45."""
    angle = rng.uniform(0, 2 * np.pi)
    y, x = np.mgrid[:height, :width] / max(height, width) - 0.5
    along = np.cos(angle) * x + np.sin(angle) * y
    return np.float32(1 - 0.55 * (along - along.min()) / np.ptp(along))


def _exposed(canvas: np.ndarray, noise: float, blur: float, rng: Rng) -> Image.Image:
    picture = Image.fromarray(np.uint8(np.clip(canvas, 0, 255)))
    if blur:
        picture = picture.filter(ImageFilter.GaussianBlur(blur))
    if noise:
        grain = rng.normal(0, noise, (*canvas.shape[:2], 1))
        picture = Image.fromarray(np.uint8(np.clip(np.asarray(picture) + grain, 0, 255)))
    return picture


class Scene(NamedTuple):
    """A picture of several digits.

    Attributes:
        picture: RGB.
        boxes: (digits, 4) left, top, right and bottom of the ink.
        digits: (digits,).
        strokes: (height, width) bool.
    """

    picture: Image.Image
    boxes: np.ndarray
    digits: np.ndarray
    strokes: np.ndarray


def draw_scene(source: Source, is_printed: bool, is_photographed: bool, rng: Rng) -> Scene:
    """Draw 3 to 8 digits that do not touch, on a plain ground or one that looks photographed."""
    width, height = ((640, 480), (480, 640), (500, 500))[rng.integers(3)]
    light = _colours(rng)[1] if rng.random() < 0.4 else np.full(3, rng.choice((250.0, 15.0)))
    canvas = np.broadcast_to(light, (height, width, 3)).astype(np.float32)
    if is_photographed:
        canvas = _photographed(canvas, rng)
    strokes, boxes, digits = np.zeros((height, width), bool), [], []
    for _ in range(int(rng.integers(3, 9))):
        digit, ink = _any_digit(source, is_printed, round(rng.uniform(0.1, 0.3) * max(width, height)), rng)
        rows, columns = ink.shape
        for _ in range(50):
            left, top = rng.integers(4, width - columns - 4), rng.integers(4, height - rows - 4)
            box = (left, top, left + columns, top + rows)
            if all(_apart(box, other) for other in boxes):
                place = canvas[top : top + rows, left : left + columns]
                place += (_contrasting(place.mean((0, 1)), rng) - place) * ink[..., None]
                strokes[top : top + rows, left : left + columns] |= ink >= VISIBLE
                boxes.append(box)
                digits.append(digit)
                break
    picture = _exposed(canvas, 12 if is_photographed else 0, 1.0 if is_photographed else 0, rng)
    return Scene(picture, np.array(boxes, np.float64), np.array(digits), strokes)


def _any_digit(source: Source, is_printed: bool, height: int, rng: Rng) -> tuple[int, np.ndarray]:
    angle = rng.uniform(-15, 15) if rng.random() < 0.3 else 0.0
    if is_printed:
        digit, font = int(rng.integers(10)), source.fonts[rng.integers(len(source.fonts))]
        return digit, source.printed(font, digit, height, rng.random() < 0.2, angle)
    place = int(rng.integers(len(source.scans)))
    return int(source.digits[place]), source.handwritten(place, height, angle, rng)


def _photographed(canvas: np.ndarray, rng: Rng) -> np.ndarray:
    """Add a shade, and the soft spots of paper or cloth."""
    height, width = canvas.shape[:2]
    spots = Image.fromarray(np.float32(rng.normal(0, 9, (height // 12, width // 12))))
    grain = np.asarray(spots.resize((width, height), Image.Resampling.BICUBIC))
    return canvas * _shade(height, width, rng)[..., None] + grain[..., None]


def _contrasting(ground: np.ndarray, rng: Rng) -> np.ndarray:
    while True:
        ink = rng.uniform(0, 255, 3) if rng.random() < 0.5 else np.full(3, rng.choice((10.0, 245.0)))
        if abs((ink - ground) @ (0.299, 0.587, 0.114)) >= 80:
            return ink


def _apart(box: tuple[int, ...], other: tuple[int, ...], gap: int = 8) -> bool:
    return (
        box[0] >= other[2] + gap
        or other[0] >= box[2] + gap
        or box[1] >= other[3] + gap
        or other[1] >= box[3] + gap
    )


class Shipped:
    """A model that ships, and how the server reads pictures with it."""

    def __init__(self, name: str) -> None:
        self.model = load_version(name, HERE / name, LoadOptions())

    def predict(self, picture: Image.Image, **parameters: Any) -> Any:
        """Return what a request with this picture is answered."""
        model = self.model
        decoded = decode(_png(picture), "image/png", model.graph.inputs, model.config, Limits())
        outputs = model.graph.forward(decoded.inputs)
        found = model.task.predict(outputs, [one.geometry for one in decoded.pictures], parameters)
        return None if found is None else found[0]


def examine_digits(source: Source, seed: int) -> None:
    """Print the accuracy of digits, of all drawings and of each kind."""
    model = Shipped("digits")
    right: dict[tuple[str, str], list[bool]] = {}
    for one in drawings(source, np.random.default_rng(seed)):
        is_right = model.predict(one.picture, top_k=1)[0].label == str(one.digit)
        right.setdefault((one.source, one.kind), []).append(is_right)
    for name in ("printed", "handwritten"):
        rows = {kind: right[name, kind] for kind in KINDS}
        every = np.concatenate(list(rows.values()))
        parts = ", ".join(f"{kind} {np.mean(row):.3f}" for kind, row in rows.items())
        print(f"digits, {name}: accuracy {np.mean(every):.4f} of {len(every)} ({parts})")


def scenes(source: Source, seed: int, is_printed: bool, is_photographed: bool) -> Iterator[Scene]:
    """Yield the scenes of one kind."""
    rng = np.random.default_rng((seed, is_printed, is_photographed))
    for _ in range(SCENES):
        yield draw_scene(source, is_printed, is_photographed, rng)


async def examine_reader(source: Source, seed: int) -> None:
    """Print precision and recall of digit-reader, and which part of what it finds it reads right."""
    reader = Inference(str(HERE / "digit-reader"))
    async with reader.client() as client:
        for is_printed in (True, False):
            for is_photographed in (False, True):
                right = shown = total = located = 0
                for scene in scenes(source, seed, is_printed, is_photographed):
                    response = await client.predict(_png(scene.picture), model=reader.name)
                    found = [SimpleNamespace(**one) for one in response.predictions[0]]
                    hits, boxes, near = _hits(found, scene)
                    right, shown, located = right + hits, shown + boxes, located + near
                    total += len(scene.boxes)
                print(
                    f"digit-reader, {_kind(is_printed, is_photographed)}: precision {right / max(1, shown):.3f} "
                    f"({right} of {shown} boxes), recall {right / total:.3f} ({right} of {total} digits), "
                    f"read {right / max(1, located):.3f} of those found",
                    flush=True,
                )


def _kind(is_printed: bool, is_photographed: bool) -> str:
    return f"{'printed' if is_printed else 'handwritten'}, {'photographed' if is_photographed else 'plain'}"


def _png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def examine_scenes(source: Source, seed: int) -> None:
    """Print precision and recall of digit-scenes, and the IoU of digit-masks."""
    detector, masker = Shipped("digit-scenes"), Shipped("digit-masks")
    for is_printed in (True, False):
        for is_photographed in (False, True):
            right = shown = total = located = shared = union = 0
            for scene in scenes(source, seed, is_printed, is_photographed):
                hits, boxes, near = _hits(detector.predict(scene.picture), scene)
                right, shown, located = right + hits, shown + boxes, located + near
                total += len(scene.boxes)
                mask = np.asarray(masker.predict(scene.picture, mask="array")[0].mask) == 0
                shared += int((mask & scene.strokes).sum())
                union += int((mask | scene.strokes).sum())
            name = _kind(is_printed, is_photographed)
            print(
                f"digit-scenes, {name}: precision {right / max(1, shown):.3f} ({right} of {shown} boxes), "
                f"recall {right / total:.3f} ({right} of {total} digits), located {located / total:.3f}"
            )
            print(f"digit-masks, {name}: IoU {shared / max(1, union):.3f}", flush=True)


def _hits(found: Any, scene: Scene) -> tuple[int, int, int]:
    """Return how many digits are found and read, how many boxes there are, and how many digits are found."""
    boxes = np.array([one.box for one in found], np.float64).reshape(-1, 4)
    over = iou(scene.boxes, boxes) >= OVERLAP
    same = scene.digits[:, None] == np.array([one.index for one in found], int)
    return int((over & same).any(1).sum()), len(boxes), int(over.any(1).sum())


def main() -> None:
    """Draw, ask, and print one line for each model and kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fonts", type=Path, nargs="+", default=list(FOLDERS), metavar="FOLDER")
    parser.add_argument("--only", choices=("digits", "scenes", "reader"))
    parser.add_argument("--seed", type=int, default=SEED, help="of the drawings")
    options = parser.parse_args()
    data = load_digits()
    count = int(TRAIN_SHARE * len(data.images))
    families = find_fonts(MEASURED, options.fonts, LEAST_FAMILIES)
    source = Source(families, (data.images[count:] / 16).astype(np.float32), data.target[count:])
    if options.only in (None, "digits"):
        examine_digits(source, options.seed)
    if options.only in (None, "scenes"):
        examine_scenes(source, options.seed)
    if options.only in (None, "reader"):
        asyncio.run(examine_reader(source, options.seed))


if __name__ == "__main__":
    main()
