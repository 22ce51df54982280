"""Lines of text, drawn as probability maps: rotated, faint, beside one another."""

from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from engine import Array, Port
from service.config.model_config import ModelConfig, ModelConfigError
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.tasks import TaskModel
from service.tasks.text_detection import TextDetection, TextLine


def task(shape: tuple[int | None, ...] | None = (1, 1, 80, 120), **keys: Any) -> TextDetection:
    config = ModelConfig.model_validate({"task": "text-detection", "text-detection": keys})
    return TextDetection(TaskModel(config, [], [Port("out0", "1", shape, "f32")]))


def drawn(*polygons: tuple[float, list[tuple[int, int]]]) -> Array:
    """Return a map (1, 1, 80, 120) with polygons, each of a probability in hundredths."""
    image = Image.new("L", (120, 80))
    for percent, corners in polygons:
        ImageDraw.Draw(image).polygon(corners, fill=int(percent))
    return np.asarray(image, np.float32)[None, None] / 100


def rectangle(left: int, top: int, right: int, bottom: int) -> list[tuple[int, int]]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def found(maps: Array, images: tuple[ImageGeometry, ...] = (), **parameters: Any) -> list[TextLine]:
    (lines,) = task(expand=0).predict([maps], images, parameters)
    return list(lines)


def test_a_line_is_the_rectangle_through_the_centres_of_its_outer_pixels() -> None:
    (line,) = found(drawn((90, rectangle(10, 20, 59, 29))))
    assert line.corners == ((10.5, 20.5), (59.5, 20.5), (59.5, 29.5), (10.5, 29.5))
    assert line.box == (10.5, 20.5, 59.5, 29.5)
    assert line.probability == pytest.approx(0.9, abs=0.01)
    assert line.text == ""


def test_a_rotated_line_keeps_its_direction() -> None:
    corners = [(20, 10), (84, 42), (80, 50), (16, 18)]
    (line,) = found(drawn((80, corners)))
    np.testing.assert_allclose(line.corners, np.array([corners[0], *corners[1:]]) + 0.5, atol=1.5)


def test_lines_grow_by_their_area_over_their_perimeter() -> None:
    maps = drawn((90, rectangle(20, 30, 80, 40)))
    (line,) = task(expand=1.6).predict([maps], (), {})[0]
    distance = 1.6 * 60 * 10 / 140
    expected = [20.5 - distance, 30.5 - distance, 80.5 + distance, 40.5 + distance]
    np.testing.assert_allclose(line.box, expected)


def test_lines_come_from_top_to_bottom_and_side_by_side_from_left_to_right() -> None:
    places = [rectangle(70, 12, 110, 22), rectangle(5, 50, 50, 60), rectangle(5, 10, 50, 20)]
    lines = found(drawn(*((90, place) for place in places)))
    assert [line.box[:2] for line in lines] == [(5.5, 10.5), (70.5, 12.5), (5.5, 50.5)]


def test_lines_of_a_rotated_page_come_in_their_order() -> None:
    lines = [
        [(x + 20, y + 40), (x + 90, y + 5), (x + 94, y + 13), (x + 24, y + 48)]
        for x, y in ((0, 0), (6, 12), (12, 24))
    ]
    found_lines = found(drawn(*((90, line) for line in lines[::-1])))
    assert [round(line.corners[0][0] / 6) for line in found_lines] == [3, 4, 5]


def test_what_is_faint_or_small_is_no_line() -> None:
    faint, small, clear = rectangle(10, 10, 60, 20), rectangle(80, 60, 82, 62), rectangle(10, 50, 60, 60)
    maps = drawn((40, faint), (90, small), (70, clear))
    assert [line.box[1] for line in found(maps)] == [50.5]
    assert [line.box[1] for line in found(maps, confidence=0.35)] == [10.5, 50.5]
    assert not found(maps, confidence=0.8)
    assert len(found(maps, confidence=0.0, max_detections=1)) == 1


def test_lines_lie_on_the_picture_and_within_it() -> None:
    geometry = ImageGeometry(240, 120, (0.5, 0.5), (0.0, 10.0))
    (line,) = found(drawn((90, rectangle(100, 0, 119, 20))), (geometry,))
    assert line.box == (201, 0, 239, 21)


def test_logits_become_probabilities() -> None:
    logits = np.where(drawn((100, rectangle(10, 10, 60, 20))) > 0, 2.0, -5.0).astype(np.float32)
    (line,) = task(sigmoid=True, expand=0).predict([logits], (), {})[0]
    assert line.probability == pytest.approx(1 / (1 + np.exp(-2.0)), rel=1e-5)


def test_numbers_that_are_none_are_no_lines() -> None:
    maps = drawn((90, rectangle(10, 10, 60, 20)))
    assert found(np.full_like(maps, np.nan)) == []
    maps[..., 12, 12] = np.inf
    assert found(maps) == []


def test_outputs_of_another_shape_are_refused() -> None:
    with pytest.raises(ModelConfigError, match=r"\(batch, 1, rows, columns\)"):
        task((1, 2, 80, 120))
    with pytest.raises(ServiceError, match=r"\(1, 2, 8, 8\)"):
        task(None).predict([np.zeros((1, 2, 8, 8), np.float32)], (), {})
