from itertools import groupby
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine import Array, Port
from service.codec.formats.image import bind_images
from service.config.image_config import ImageConfig
from service.config.limits import Limits
from service.config.model_config import ModelConfig, ModelConfigError
from service.errors import ServiceError
from service.images.preparation import ImageInput, find_image_input, open_images, prepare
from service.tasks import TaskModel
from service.tasks.ocr import LineReading
from tests.service.codec.payloads import encoded

LETTERS = ["a", "b", "c"]


def task(shape: tuple[int | None, ...] | None = None, **keys: Any) -> LineReading:
    labels = keys.pop("labels", LETTERS)
    values = {"task": "ocr", "ocr": keys} | ({"labels": labels} if labels else {})
    return LineReading(TaskModel(ModelConfig.model_validate(values), [], [Port("out0", "1", shape, "f32")]))


def path(*characters: int, count: int = 4) -> Array:
    """Return scores (1, steps, characters) of which the given ones are the highest, with 0.7."""
    scores = np.full((1, len(characters), count), 0.3 / (count - 1), np.float32)
    scores[0, np.arange(len(characters)), characters] = 0.7
    return scores


@pytest.mark.parametrize(
    ("keys", "characters", "text"),
    [
        ({}, (0, 1, 1, 0, 1, 2, 2, 3, 0), "aabc"),
        ({}, (1, 1, 1), "a"),
        ({}, (0, 0), ""),
        ({"blank": 3}, (0, 3, 0, 1, 2, 2), "aabc"),
    ],
)
def test_best_path(keys: dict[str, Any], characters: tuple[int, ...], text: str) -> None:
    ((line,),) = task(**keys).predict([path(*characters)], (), {})
    assert line.text == text
    assert line.probability == pytest.approx(0.7 if text else 0)


def test_a_space_after_the_characters() -> None:
    ((line,),) = task(space=True).predict([path(1, 4, 2, count=5)], (), {})
    assert line.text == "a b"


def test_random_paths_against_a_plain_loop_and_pytorch() -> None:
    torch = pytest.importorskip("torch")
    logits = np.random.default_rng(0).normal(size=(30, 2, 4)).astype(np.float32) * 3
    lines = task(steps_first=True, softmax=True).predict([logits], (), {})
    probabilities = torch.softmax(torch.from_numpy(logits), dim=2)
    for place, (line,) in enumerate(lines):
        values, best = probabilities[:, place].max(dim=1)
        runs = [
            (index, [step for step, _ in group])
            for index, group in groupby(enumerate(best.tolist()), lambda p: p[1])
        ]
        kept = [(index, values[steps[0]].item()) for index, steps in runs if index]
        assert line.text == "".join(LETTERS[index - 1] for index, _ in kept)
        assert line.probability == pytest.approx(np.mean([value for _, value in kept]), rel=1e-5)


def test_large_scores_do_not_overflow_in_softmax() -> None:
    ((line,),) = task(softmax=True).predict([path(1, 2, 2, 0, 3) * np.float32(1000)], (), {})
    assert line.text == task().predict([path(1, 2, 2, 0, 3)], (), {})[0][0].text != ""
    assert line.probability == pytest.approx(1)


@pytest.mark.parametrize("keys", [{}, {"softmax": True}])
def test_characters_that_are_ruled_out_by_minus_infinity(keys: dict[str, Any]) -> None:
    scores = path(1, 2, 2, 0, 3)
    ruled_out = np.where(scores == scores.max(axis=2, keepdims=True), scores, -np.inf).astype(np.float32)
    ((line,),) = task(**keys).predict([ruled_out], (), {})
    assert line.text == task(**keys).predict([scores], (), {})[0][0].text != ""
    assert np.isfinite(line.probability)
    for value in (np.inf, -np.inf):
        scores[0, 1] = value
        assert task(**keys).predict([scores], (), {}) == [[]], "a step without a most probable character"


def test_scores_that_are_no_numbers() -> None:
    scores = path(1, 2)
    scores[0, 0, 0] = np.nan
    found = task().predict([scores], (), {})
    assert found == [[]]
    assert "item 0" in (task().remark(found) or "")


@pytest.mark.parametrize(
    ("shape", "keys", "key"),
    [
        ((None, None, 9), {}, "labels"),
        ((None, 4), {}, "ocr.output"),
        (None, {"labels": None}, "labels"),
        (None, {"blank": 5}, "ocr.blank"),
    ],
)
def test_models_that_do_not_fit(shape: tuple[int | None, ...] | None, keys: dict[str, Any], key: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        task(shape, **keys)
    assert caught.value.key == key


def test_outputs_of_other_shapes() -> None:
    with pytest.raises(ServiceError) as caught:
        task().predict([np.zeros((1, 5, 9), np.float32)], (), {})
    assert (caught.value.status, caught.value.code) == (422, "no_text")


LINES = ImageConfig.model_validate({"size": [8, 64], "resize": "height", "pad": 255, "scale": 1.0})


def lines(*sizes: tuple[int, int], width: int | None = None) -> Array:
    target = find_image_input(LINES, Port("x", "0", (None, 3, 8, width), "f32"))
    assert isinstance(target, ImageInput)
    data = [encoded(Image.new("RGB", size)) for size in sizes]
    return prepare(open_images(data, 1 << 24), LINES, target).array


def test_lines_keep_their_width_and_are_padded_to_the_widest() -> None:
    array = lines((100, 20), (15, 10), (300, 20))
    assert array.shape == (3, 3, 8, 128)  # 300 * 8 / 20 = 120, in steps of 32
    shown = [(row[0] == 0).all(axis=0) for row in array]
    assert [int(row.sum()) for row in shown] == [40, 12, 120]
    assert all(row[: row.sum()].all() for row in shown)
    assert set(np.unique(array)) == {0, 255}


def test_a_line_that_is_too_wide_for_a_fixed_width_is_squeezed() -> None:
    array = lines((1000, 20), width=64)
    assert array.shape == (1, 3, 8, 64)
    assert not array.any()


def test_a_very_long_line_is_refused_by_the_limit_of_tensors() -> None:
    config = ModelConfig(image=LINES)
    port = Port("x", "0", (None, 3, 8, None), "f32")
    with pytest.raises(ServiceError) as caught:
        bind_images(
            [("", encoded(Image.new("L", (9000, 1))))], [port], config, Limits(tensor_elements=20_000)
        )
    assert caught.value.code == "tensor_too_large"
