"""Classification of items that may belong to several classes, and tables of labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Array, Port
from service.config.model_config import ModelConfig, ModelConfigError, load_model_config
from service.errors import ServiceError
from service.tasks import TaskModel
from service.tasks.classification import Classification

LOGITS = np.array([[2.0, -1.0, 0.5, -3.0], [-9.0, -9.0, -9.0, -9.0]], np.float32)


def task(**keys: Any) -> Classification:
    config = ModelConfig.model_validate({"task": "classification", "classification": keys})
    return Classification(TaskModel(config, [], [Port("out0", "1", (None, 4), "f32")]))


def found(model: Classification, output: Array = LOGITS, **parameters: Any) -> list[list[tuple[int, float]]]:
    return [
        [(one.index, one.probability) for one in item] for item in model.predict([output], (), parameters)
    ]


def test_classes_that_reach_the_threshold() -> None:
    model = task(sigmoid=True)
    first, second = found(model)
    assert [index for index, _ in first] == [0, 2]
    np.testing.assert_allclose([value for _, value in first], 1 / (1 + np.exp([-2.0, -0.5])))
    assert second == []


def test_as_pytorch() -> None:
    torch = pytest.importorskip("torch")
    expected = torch.sigmoid(torch.from_numpy(LOGITS)).numpy()
    for item, row in zip(found(task(sigmoid=True, threshold=0)), expected, strict=True):
        assert len(item) == 4
        np.testing.assert_allclose([value for _, value in sorted(item)], row, rtol=1e-6)


@pytest.mark.parametrize(
    ("keys", "parameters", "count"),
    [
        ({}, {}, 2),
        ({"threshold": 0.2}, {}, 3),
        ({"threshold": 0.2}, {"threshold": 0.8}, 1),
        ({"threshold": 0.0, "top_k": 3}, {}, 3),
        ({}, {"threshold": 0, "top_k": 1}, 1),
    ],
)
def test_threshold_and_top_k(keys: dict[str, Any], parameters: dict[str, Any], count: int) -> None:
    assert len(found(task(sigmoid=True, **keys), **parameters)[0]) == count


def test_extreme_logits() -> None:
    with np.errstate(all="raise"):
        (item,) = found(task(sigmoid=True), np.array([[1e30, -1e30, np.inf, -np.inf]]))
    assert item == [(0, 1.0), (2, 1.0)] or item == [(2, 1.0), (0, 1.0)]


def test_a_threshold_for_classes_that_exclude_each_other() -> None:
    with pytest.raises(ServiceError, match="exclude each other"):
        found(task(softmax=True), threshold=0.3)


def test_what_is_said_of_items_without_predictions() -> None:
    model = task(sigmoid=True)
    remark = model.remark(model.predict([LOGITS], (), {}))
    assert (
        remark
        == "no class of item 1 of the batch has a score that reaches the threshold: there are no predictions"
    )


@pytest.mark.parametrize("keys", [{"softmax": True, "sigmoid": True}, {"threshold": 0.3}])
def test_keys_that_do_not_go_together(keys: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        task(**keys)


def labels_of(folder: Path, text: str, file: str = "") -> tuple[str, ...] | None:
    (folder / "model.toml").write_text('task = "classification"\n' + text)
    (folder / "labels.txt").write_text(file)
    return load_model_config(folder).labels


def test_table_of_labels(tmp_path: Path) -> None:
    assert labels_of(tmp_path, '[labels]\n0 = "cat"\n2 = "dog"') == ("cat", "1", "dog")
    assert labels_of(tmp_path, 'labels = { 1 = "b", 0 = "a" }') == ("a", "b")


def test_file_of_numbered_labels(tmp_path: Path) -> None:
    assert labels_of(tmp_path, 'labels = "labels.txt"', "1: b\n0: a: b\n") == ("a: b", "b")
    assert labels_of(tmp_path, 'labels = "labels.txt"', "1: b\nplain\n") == ("1: b", "plain")


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ('[labels]\ncat = "cat"', ""),
        ('[labels]\n99999999 = "cat"', ""),
        ("[labels]\n0 = 7", ""),
        ("[labels]", ""),
        ('labels = "labels.txt"', "0: a\n0: b"),
        ('labels = "labels.txt"', "9999999: a"),
    ],
)
def test_labels_that_are_none(tmp_path: Path, text: str, file: str) -> None:
    with pytest.raises(ModelConfigError, match="labels"):
        labels_of(tmp_path, text, file)
