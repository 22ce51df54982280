import pytest

from service.codec import JSON_TYPE, NPZ_TYPE, negotiate
from tests.service.codec.payloads import refused


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, JSON_TYPE),
        ("", JSON_TYPE),
        ("*/*", JSON_TYPE),
        ("application/*", JSON_TYPE),
        ("application/json", JSON_TYPE),
        ("application/x-npz", NPZ_TYPE),
        ("Application/X-NPZ; v=1", NPZ_TYPE),
        ("application/x-npz, application/json", JSON_TYPE),
        ("application/x-npz, application/json;q=0.9", NPZ_TYPE),
        ("application/x-npz;q=0.4, */*;q=0.5", JSON_TYPE),
        ("application/x-npz, */*;q=0.5", NPZ_TYPE),
        ("*/*, application/json;q=0", NPZ_TYPE),
        ("text/html, application/xhtml+xml, */*;q=0.8", JSON_TYPE),
        ("application/json;q=many", JSON_TYPE),
        ("image/png, application/x-npz ; Q = 0.001", NPZ_TYPE),
    ],
)
def test_choice(accept: str | None, chosen: str) -> None:
    assert negotiate(accept) == chosen


@pytest.mark.parametrize(
    "accept", ["text/html", "image/*", "application/json;q=0", "*/*;q=0.000", ",", "x" * 9999]
)
def test_nothing_fits(accept: str) -> None:
    error = refused(lambda: negotiate(accept), 406, "not_acceptable", JSON_TYPE)
    assert error.details["offered"] == [JSON_TYPE, NPZ_TYPE]
    assert len(error.message) < 400
