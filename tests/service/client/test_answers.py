"""Answers with types, from the fields that the server's API describes."""

import pytest

from service.client import AnswerError, Box, Detection
from service.client.answers import read_answer, read_detections, read_trace

FIELDS = {"model": "m", "version": "2", "request_id": "r", "timing": {"total_ms": 1.5, "observed": True}}


def test_boxes_are_detections() -> None:
    found = {"label": "cat", "index": 3, "probability": 0.75, "box": [1, 2.5, 30, 40], "mask": "x"}
    (item,) = read_detections(read_answer({**FIELDS, "predictions": [[found]]}, {}))
    assert item == [Detection("cat", 3, 0.75, Box(1.0, 2.5, 30.0, 40.0), found)]
    assert item[0].box.x2 - item[0].box.x1 == 29


def test_what_the_answer_leaves_out_is_empty() -> None:
    answer = read_answer(FIELDS, {})
    assert (answer.predictions, answer.warnings, dict(answer.timing)) == ([], [], {"total_ms": 1.5})


@pytest.mark.parametrize("fields", [{}, [], None, {"model": "m"}, {**FIELDS, "timing": 3}])
def test_other_answers_are_told(fields: object) -> None:
    with pytest.raises(AnswerError, match="the answer is none of /infer"):
        read_answer(fields, {})
    with pytest.raises(AnswerError, match="the answer is none of /infer"):
        read_trace(fields, {})
