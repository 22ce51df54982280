"""What a box is called where a detector and a classifier have read it."""

import pytest

from service.tasks.classification import ClassPrediction
from service.tasks.detection import Detected
from service.tasks.pipeline import combine

BOX = (1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize(
    ("detected", "scores", "label", "probability"),
    [
        (("a", 0.9), (0.6, 0.3, 0.1), "a", 0.54 / 0.58),
        (("a", 0.6), (0.2, 0.7, 0.1), "b", 0.28 / 0.44),
        (("a", 0.9), (0.3, 0.6, 0.1), "a", 0.27 / 0.34),
        (("a", 1.0), (0.0, 1.0, 0.0), "a", 0.0),
        (("d", 0.9), (0.2, 0.7, 0.1), "b", 0.7),
    ],
)
def test_the_label_is_the_most_probable_by_both(
    detected: tuple[str, float], scores: tuple[float, ...], label: str, probability: float
) -> None:
    classes = [
        ClassPrediction(name, index, score)
        for index, (name, score) in enumerate(zip("abc", scores, strict=True))
    ]
    found = combine(Detected(detected[0], 7, detected[1], BOX), classes)
    assert (found.label, found.box) == (label, BOX)
    assert found.index == "abc".index(label)
    assert found.probability == pytest.approx(probability)
