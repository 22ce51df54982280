"""What a box is called where a detector and a classifier have read it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from engine import Array
from service.config.model_config import ModelConfig
from service.images.geometry import ImageGeometry
from service.tasks.boxes import BoxParameters
from service.tasks.classification import ClassPrediction
from service.tasks.detection import Detected
from service.tasks.pipeline import Pipeline, combine
from service.tasks.task import Prediction, Task, TaskModel

BOX = (1.0, 2.0, 3.0, 4.0)
LABELS = ("a", "b", "c")


class Finds(Task):
    """Finds an a and a b."""

    name = "finds"
    prediction = Detected
    parameters = BoxParameters

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Prediction]]:
        return [[Detected("a", 0, 0.8, BOX), Detected("b", 1, 0.7, BOX)]]


class Reads(Task):
    """Reads an a in the first crop, and nearly nothing in the second one."""

    name = "reads"
    prediction = ClassPrediction

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Prediction]]:
        scores = ((0.9, 0.05, 0.05), (0.4, 0.2, 0.4))
        return [[ClassPrediction(LABELS[i], i, score) for i, score in enumerate(crop)] for crop in scores]


def pipeline(**step: Any) -> Pipeline:
    """Return the pipeline of both, with these keys of its second step."""
    steps = [{"name": "find", "model": "x"}, {"name": "read", "model": "y", "crops": "find", **step}]
    config = ModelConfig.model_validate({"task": "pipeline", "pipeline": {"steps": steps}})
    image, classes = {"size": (8, 8)}, {"task": "classification", "labels": LABELS}
    labelled = ModelConfig.model_validate({"image": image, **classes})
    part = TaskModel(labelled, (None,), ())  # type: ignore[arg-type]
    return Pipeline(TaskModel(config, (), ()), [Finds(part), Reads(part)])


@pytest.mark.parametrize(
    ("least", "asked", "labels"),
    [(0.0, {}, "ab"), (0.5, {}, "a"), (0.5, {"confidence": 0.1}, "ab"), (0.0, {"confidence": 0.99}, "")],
)
def test_confidence_is_the_minimum_of_the_label_by_both(
    least: float, asked: dict[str, float], labels: str
) -> None:
    """The probabilities by both are 0.97, and 0.14 / 0.38 although the detector's is 0.7."""
    (found,) = pipeline(combine=True, confidence=least).predict((), (), asked) or ()
    assert [one.label for one in found if isinstance(one, Detected)] == list(labels)


def test_confidence_needs_labels_by_both() -> None:
    with pytest.raises(ValueError, match=r"steps.1.confidence .*; expected combine = true"):
        pipeline(confidence=0.5)


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
