"""PP-OCR, whose three models `rapidocr-onnxruntime` brings: what is read is what its own runtime reads."""

import asyncio
import importlib
import warnings
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from service.commands.inference import Inference
from service.config.model_config import load_model_config
from service.export import export
from tests.cases import check_each
from tests.recipes.packages import need_package

READER = "ch_PP-OCRv4_rec_infer"
DETECTOR = "ch_PP-OCRv4_det_infer"
CLASSIFIER = "ch_ppocr_mobile_v2.0_cls_infer"
PIPELINE = """
task = "pipeline"

[scheduling]
timeout = 600  # of CI, beside whose other steps a page may take a minute

[[pipeline.steps]]
name = "find"
model = "lines"

[[pipeline.steps]]
name = "turn"
model = "orientation"
crops = "find"

[[pipeline.steps]]
name = "read"
model = "reader"
crops = "find"
upright = "turn"
"""


def model(name: str) -> Path:
    return need_package("rapidocr_onnxruntime") / "models" / f"{name}.onnx"


@pytest.fixture(scope="module")
def theirs() -> Any:
    """RapidOCR, with its detector of lines and its recogniser."""
    need_package("rapidocr_onnxruntime")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages that it imports
        return importlib.import_module("rapidocr_onnxruntime").RapidOCR()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "reader"
    report = export(model(READER), folder, inputs=["?,3,48,320?"], preset="ppocr")
    assert report.task == "ocr"
    assert all(agreement.agrees for agreement in report.agreements)
    return folder


def crops(theirs: Any) -> list[Any]:
    """Lines of a scanned page and of a board, as RapidOCR's own detector finds and cuts them: BGR, rows first."""
    import cv2

    found = []
    for name in ("page.png", "text.png"):
        picture = cv2.imread(str(need_package("skimage") / "data" / name))
        boxes, _ = theirs.text_det(picture)
        found += theirs.get_crop_img_list(picture, boxes)
    return found


def test_the_characters_come_from_the_file(reader: Path) -> None:
    labels = load_model_config(reader).labels
    assert labels is not None
    assert len(labels) == 6623
    assert "\u3000" in labels  # a space of its own, which is a character
    assert "space = true" in (reader / "model.toml").read_text()


def test_lines_read_as_by_their_own_runtime(reader: Path, theirs: Any, tmp_path: Path) -> None:
    import cv2

    lines = crops(theirs)
    files = [tmp_path / f"{place:03}.png" for place in range(len(lines))]
    for file, line in zip(files, lines, strict=True):
        cv2.imwrite(str(file), line)

    async def responses() -> list[Any]:
        return [outcome.response async for outcome in Inference(str(reader), None, None).outcomes(files)]

    ours = [response.predictions[0][0] for response in asyncio.run(responses())]
    wanted = [theirs.text_rec([line])[0][0] for line in lines]  # one by one: a batch pads them differently
    assert [line["text"] for line in ours] == [text for text, _ in wanted]
    assert "Let us first determine markers of the coins and the" in [line["text"] for line in ours]
    sure = [place for place, (_, score) in enumerate(wanted) if score > 0.9]
    assert len(sure) >= 5
    assert [ours[place]["probability"] for place in sure] == pytest.approx(
        [wanted[place][1] for place in sure], abs=0.02
    )


PAGE = (
    "Region-based segmentation",
    "Let us first determine markers of the coins and the",
    "background. These markers are pixels that we can label",
    "unambiguously as either object or background. Here,",
)
"""What the first lines of skimage's page.png say."""


@pytest.fixture(scope="module")
def pipeline(reader: Path) -> Path:
    """Find lines, turn those that are upside down, read them: the guide's example."""
    folder = reader.parent
    (folder / "angles.txt").write_text("0\n180\n")
    found = export(model(DETECTOR), folder / "lines", inputs=["1,3,736,736"], preset="ppocr-detection")
    turned = export(
        model(CLASSIFIER),
        folder / "orientation",
        inputs=["?,3,48,192"],
        preset="ppocr",
        task="classification",
        labels=str(folder / "angles.txt"),
    )
    assert (found.task, turned.task) == ("text-detection", "classification")
    assert all(agreement.agrees for agreement in (*found.agreements, *turned.agreements))
    (folder / "page").mkdir()
    (folder / "page" / "model.toml").write_text(PIPELINE)
    return folder / "page"


def read(pipeline: Path, *files: Path) -> list[list[dict[str, Any]]]:
    """Return the lines of pictures as a pipeline reads them."""

    async def responses() -> list[Any]:
        return [outcome async for outcome in Inference(str(pipeline), None, None).outcomes(files)]

    outcomes = asyncio.run(responses())
    assert [outcome.error for outcome in outcomes] == [None] * len(files)
    return [outcome.response.predictions[0] for outcome in outcomes]


def likeness(one: str, other: str) -> float:
    """Return how alike two texts are but for their spaces, from 0 to 1."""
    return SequenceMatcher(None, one.replace(" ", ""), other.replace(" ", "")).ratio()


def test_pages_are_read_from_top_to_bottom_however_they_are_turned(pipeline: Path, tmp_path: Path) -> None:
    with Image.open(need_package("skimage") / "data" / "page.png") as opened:
        page = opened.convert("RGB")
    files = {degrees: tmp_path / f"{degrees}.png" for degrees in (0, 12, -20, 180)}
    for degrees, file in files.items():
        page.rotate(degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=(200, 190, 180)).save(file)

    def check(case: tuple[int, list[dict[str, Any]]]) -> None:
        degrees, lines = case
        wanted = PAGE[1:] if abs(degrees) < 90 else PAGE[:0:-1]  # upside down the last line comes first
        texts = [
            max((line["text"] for line in lines), key=lambda text: likeness(text, line)) for line in wanted
        ]
        assert all(likeness(text, line) > 0.9 for text, line in zip(texts, wanted, strict=True)), texts
        places = [[line["text"] for line in lines].index(text) for text in texts]
        assert places == sorted(places)

    check_each(zip(files, read(pipeline, *files.values()), strict=True), check)


def test_lines_are_found_and_read_as_by_their_own_pipeline(pipeline: Path, theirs: Any) -> None:
    file = need_package("skimage") / "data" / "page.png"
    (ours,) = read(pipeline, file)
    found, _ = theirs(str(file))
    assert len(found) >= 5
    for corners, text, _ in found:
        (line,) = [one for one in ours if np.abs(np.subtract(one["corners"], corners)).max() < 4]
        assert likeness(line["text"], text) > 0.9


@pytest.mark.parametrize(
    ("name", "shape"),
    [(DETECTOR, "1,3,160?,160?"), (CLASSIFIER, "?,3,48,192")],
)
def test_the_other_two_models(tmp_path: Path, name: str, shape: str) -> None:
    report = export(model(name), tmp_path / "net", inputs=[shape])
    assert all(agreement.agrees for agreement in report.agreements)
    assert all(np.isfinite(output.relative or 0) for item in report.agreements for output in item.outputs)
