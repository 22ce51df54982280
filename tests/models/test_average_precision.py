"""The average precision that the card of digit-scenes shows, on cases that are worked out by hand."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FILE = Path(__file__).parents[2] / "models" / "digit-scenes" / "training" / "average_precision.py"
LEFT, RIGHT = (0, 0, 10, 10), (50, 0, 60, 10)


def load() -> Any:
    spec = spec_from_file_location("average_precision", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULE = load()


def said(*boxes: tuple[tuple[float, ...], int, float]) -> Any:
    return MODULE.Detections(
        np.array([box for box, _, _ in boxes], np.float64).reshape(-1, 4),
        np.array([digit for _, digit, _ in boxes], np.int64),
        np.array([score for _, _, score in boxes], np.float64),
    )


TWO = said((LEFT, 3, 1), (RIGHT, 3, 1))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (said((LEFT, 3, 0.9), (RIGHT, 3, 0.8)), 1.0),
        (said(), 0.0),
        # half is found: precision is 1 at recalls of 0 to 0.5, and 0 beyond
        (said((LEFT, 3, 0.9)), 51 / 101),
        # the second box finds what is found already: precision is 2/3 from there to full recall
        (said((LEFT, 3, 0.9), (LEFT, 3, 0.8), (RIGHT, 3, 0.7)), (51 + 50 * 2 / 3) / 101),
        # a false one that is surest of all: precision is 1/2, then 2/3, which counts for lower recalls as well
        (said(((90, 90, 99, 99), 3, 0.95), (LEFT, 3, 0.9), (RIGHT, 3, 0.8)), 2 / 3),
        # read as another digit
        (said((LEFT, 5, 0.9), (RIGHT, 3, 0.8)), 51 / 101),
        # overlaps of exactly a half, and of less: 10x5 of 10x10, and 10x4.9
        (said(((0, 0, 10, 5), 3, 0.9)), 51 / 101),
        (said(((0, 0, 10, 4.9), 3, 0.9)), 0.0),
    ],
)
def test_one_class(found: Any, wanted: float) -> None:
    assert MODULE.average_precision([found], [TWO], 3, 0.5) == pytest.approx(wanted)


def test_pictures_are_ranked_together() -> None:
    truth = [said((LEFT, 3, 1)), said((LEFT, 3, 1))]
    found = [said((RIGHT, 3, 0.9)), said((LEFT, 3, 0.8))]
    # the surest box of all is false: precision 1/2 up to a recall of one in two
    assert MODULE.average_precision(found, truth, 3, 0.5) == pytest.approx(51 / 101 / 2)


def test_mean_is_over_the_classes_that_occur() -> None:
    truth = [said((LEFT, 3, 1), (RIGHT, 7, 1))]
    mean, by_class = MODULE.mean_average_precision([said((LEFT, 3, 0.9), (RIGHT, 1, 0.9))], truth)
    assert by_class == {3: pytest.approx(1.0), 7: 0.0}
    assert mean == pytest.approx(0.5)


def test_overlaps() -> None:
    boxes = np.array([LEFT, (5, 0, 15, 10)], np.float64)
    np.testing.assert_allclose(MODULE.iou(boxes, boxes), [[1, 1 / 3], [1 / 3, 1]])
