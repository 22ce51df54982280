"""Responses with types, from the fields that the server's API describes."""

import pytest

from service.client import Box, Detection, ResponseError
from service.client.responses import read_detections, read_response, read_trace

FIELDS = {"model": "m", "version": "2", "request_id": "r", "timing": {"total_ms": 1.5, "observed": True}}


def test_boxes_are_detections() -> None:
    found = {"label": "cat", "index": 3, "probability": 0.75, "box": [1, 2.5, 30, 40], "mask": "x"}
    (item,) = read_detections(read_response({**FIELDS, "predictions": [[found]]}, {}))
    assert item == [Detection("cat", 3, 0.75, Box(1.0, 2.5, 30.0, 40.0), found)]
    assert item[0].box.x2 - item[0].box.x1 == 29


def test_what_the_response_leaves_out_is_empty() -> None:
    response = read_response(FIELDS, {})
    assert (response.predictions, response.warnings, dict(response.timing)) == ([], [], {"total_ms": 1.5})


@pytest.mark.parametrize("fields", [{}, [], None, {"model": "m"}, {**FIELDS, "timing": 3}])
def test_other_responses_are_reported(fields: object) -> None:
    with pytest.raises(ResponseError, match="the response is not one of /infer"):
        read_response(fields, {})
    with pytest.raises(ResponseError, match="the response is not one of /infer"):
        read_trace(fields, {})
