"""What all tests share."""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from engine.compiler.program import programs

# A slow machine is no failure; and what a run in CI finds must be found again by the next.
settings.register_profile(
    "kuiper",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kuiper")

os.environ["KUIPER_CACHE"] = ""  # what is tested is what the compiler makes now


class _Refusals(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture(autouse=True)
def no_program_is_refused(request: pytest.FixtureRequest) -> Iterator[None]:
    """A program that verification refuses is a mistake in the compiler, whatever else a test looks at."""
    logger, handler = logging.getLogger(programs.__name__), _Refusals()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    if "plants_a_mistake" not in request.keywords:
        assert not handler.messages
