import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.requests import ClientDisconnect

from engine import InputError, LayerError
from service.errors import ServiceError
from service.traffic.choice import Choice
from service.traffic.request_endings import RequestEndings
from tests.service.stores.folders import PolledFolder, write_scale


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (None, (1, 0)),
        (ServiceError(500, "internal_error", "a fault"), (1, 1)),
        (ServiceError(504, "timeout", "too late"), (1, 1)),
        (LayerError("a fault of the model"), (1, 1)),
        (ServiceError(400, "invalid_request", "no JSON"), (0, 0)),
        (InputError("another shape"), (0, 0)),
        (ClientDisconnect(), (0, 0)),
        (asyncio.CancelledError(), (0, 0)),
    ],
)
def test_what_counts_of_requests_that_a_header_led(
    tmp_path: Path, error: BaseException | None, counted: tuple[int, int]
) -> None:
    write_scale(tmp_path / "m" / "1", 1)
    model, endings = PolledFolder(tmp_path).repository.entry("m").find(None), RequestEndings()
    for is_led in (True, False):
        with suppress(BaseException), Choice(model, endings, is_led):
            if error is not None:
                raise error
        if is_led:
            assert endings.of("m", "1") == counted
    assert endings.of("m", "1") == (counted[0] + 1, counted[1] + (error is not None))
