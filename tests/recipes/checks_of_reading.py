"""PP-OCR, whose three models `rapidocr-onnxruntime` brings: what is read is what its own runtime reads."""

import asyncio
import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.commands.inference import Inference
from service.config.model_config import load_model_config
from service.export import export
from tests.recipes.packages import need_package

READER = "ch_PP-OCRv4_rec_infer"


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


@pytest.mark.parametrize(
    ("name", "shape"),
    [("ch_PP-OCRv4_det_infer", "1,3,160?,160?"), ("ch_ppocr_mobile_v2.0_cls_infer", "?,3,48,192")],
)
def test_the_other_two_models(tmp_path: Path, name: str, shape: str) -> None:
    report = export(model(name), tmp_path / "net", inputs=[shape])
    assert all(agreement.agrees for agreement in report.agreements)
    assert all(np.isfinite(output.relative or 0) for item in report.agreements for output in item.outputs)
