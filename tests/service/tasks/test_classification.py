import math
from collections.abc import Sequence

import numpy as np
import pytest

from engine import Array, Port
from service.config.model_config import ModelConfig, ModelConfigError
from service.errors import ServiceError
from service.tasks import TaskModel, open_task
from service.tasks.classification import Classification, ClassPrediction

LOGITS = Port("out0", "8", (None, 3), "f32")
SCORES = Port("out1", "9", (1, 3), "f32")
LABELS = ["zero", "one", "two"]


def classifier(**options: object) -> ModelConfig:
    labels = options.pop("labels", LABELS)
    return ModelConfig.model_validate({"task": "classification", "labels": labels, "classification": options})


def predicted(config: ModelConfig, array: Array, top_k: int | None = None) -> list[list[ClassPrediction]]:
    task = Classification(TaskModel(config, [], [Port("out0", "8", None, "f32")]))
    predictions = task.predict([array], (), {} if top_k is None else {"top_k": top_k})
    return [list(item) for item in predictions]


def remark(predictions: Sequence[Sequence[ClassPrediction]]) -> str | None:
    return Classification(TaskModel(classifier(), [], [LOGITS])).remark(predictions)


def test_best_first() -> None:
    scores = np.array([[0.1, 0.7, 0.2], [0.5, 0.25, 0.25]])
    assert predicted(classifier(), scores) == [
        [ClassPrediction("one", 1, 0.7), ClassPrediction("two", 2, 0.2), ClassPrediction("zero", 0, 0.1)],
        [ClassPrediction("zero", 0, 0.5), ClassPrediction("one", 1, 0.25), ClassPrediction("two", 2, 0.25)],
    ]


def test_top_k_of_the_request_and_of_the_model() -> None:
    scores = np.array([[0.1, 0.7, 0.2]])
    assert [p.index for p in predicted(classifier(top_k=2), scores)[0]] == [1, 2]
    assert [p.index for p in predicted(classifier(top_k=2), scores, 1)[0]] == [1]
    assert len(predicted(classifier(), scores, 99)[0]) == 3


def test_softmax() -> None:
    logits = np.array([[0.0, math.log(3), -np.inf], [1000.0, 1000.0, 999.0]], np.float32)
    first, second = predicted(classifier(softmax=True), logits)
    assert [p.index for p in first] == [1, 0, 2]
    np.testing.assert_allclose([p.probability for p in first], [0.75, 0.25, 0], rtol=1e-6)
    np.testing.assert_allclose(sum(p.probability for p in second), 1)


def test_nan_comes_last() -> None:
    item = predicted(classifier(), np.array([[np.nan, 0.1, 0.9]]))[0]
    assert [p.index for p in item] == [2, 1, 0]


@pytest.mark.parametrize("softmax", [True, False])
def test_item_without_a_score_that_is_a_number_has_no_predictions(softmax: bool) -> None:
    scores = np.array([[np.nan, np.nan, np.nan], [0.1, 0.2, 0.7], [np.nan] * 3], np.float32)
    config = classifier(softmax=softmax)
    predictions = predicted(config, scores)
    assert [len(item) for item in predictions] == [0, 3, 0]
    assert predictions[1][0].label == "two"
    said = remark(predictions)
    assert said is not None
    assert "items 0, 2 of the batch" in said
    assert remark(predictions[1:2]) is None


def test_one_nan_among_logits_leaves_no_probabilities() -> None:
    assert predicted(classifier(softmax=True), np.array([[1.0, np.nan, 2.0]])) == [[]]


def test_remark_lists_no_more_than_ten_items() -> None:
    said = remark([[]] * 1000)
    assert said is not None
    assert "items 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … of" in said
    assert "item 0 of" in (remark([[]]) or "")


@pytest.mark.parametrize("shape", [(3,), (1, 3, 1, 1)])
def test_other_shapes(shape: tuple[int, ...]) -> None:
    scores = np.array([0.1, 0.7, 0.2], np.float16).reshape(shape)
    assert predicted(classifier(), scores)[0][0].label == "one"


def test_integers_and_empty_batches() -> None:
    assert predicted(classifier(), np.array([[1, 3, 2]], np.uint8))[0][0].index == 1
    assert predicted(classifier(), np.zeros((0, 3))) == []
    assert predicted(classifier(softmax=True), np.zeros((1, 0))) == [[]]


def test_labels_may_be_missing() -> None:
    assert predicted(classifier(labels=None), np.array([[0.1, 0.9]]))[0][0].label == "1"
    assert predicted(classifier(), np.array([[0, 0, 0, 1]]))[0][0].label == "3"


@pytest.mark.parametrize("shape", [(), (1, 3, 2), (1, 3, 4, 4)])
def test_output_that_holds_no_classes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ServiceError) as caught:
        predicted(classifier(), np.zeros(shape))
    assert (caught.value.status, caught.value.code) == (422, "no_classes")


@pytest.mark.parametrize("name", ["9", "out1"])
def test_chosen_output(name: str) -> None:
    config = classifier(output=name)
    task = open_task(TaskModel(config, [], [LOGITS, SCORES]))
    predictions = task.predict([np.array([[1.0, 0, 0]]), np.array([[0, 0, 1.0]])], (), {})
    assert predictions is not None
    assert predictions[0][0] == ClassPrediction("two", 2, 1.0)


@pytest.mark.parametrize("shape", [(None, 3), (1, 3), (3,), (None, 3, 1, 1), (None, None), None])
def test_outputs_that_fit(shape: tuple[int | None, ...] | None) -> None:
    open_task(TaskModel(classifier(), [], [Port("out0", "8", shape, "f32")]))


@pytest.mark.parametrize(
    ("config", "port", "key", "text"),
    [
        (classifier(), Port("o", "8", (None, 10), "f32"), "labels", "there are 3; expected 10"),
        (classifier(), Port("o", "8", (10,), "f32"), "labels", "expected 10"),
        (classifier(), Port("o", "8", (1, 3, 4), "f32"), "classification.output", "(batch, classes)"),
        (classifier(), Port("o", "8", (), "f32"), "classification.output", "(batch, classes)"),
        (classifier(), Port("o", "8", (1, 3), "c64"), "classification.output", "complex"),
        (classifier(output="x"), LOGITS, "classification.output", "no output 'x'; expected 8"),
    ],
)
def test_outputs_that_do_not_fit(config: ModelConfig, port: Port, key: str, text: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        open_task(TaskModel(config, [], [port]))
    assert caught.value.key == key
    assert text in str(caught.value)


def test_graph_without_outputs() -> None:
    with pytest.raises(ModelConfigError, match="no output"):
        open_task(TaskModel(classifier(), [], []))


def test_raw_models_predict_nothing() -> None:
    assert open_task(TaskModel(ModelConfig(), [], [])).predict([np.zeros((1, 3))], (), {}) is None
