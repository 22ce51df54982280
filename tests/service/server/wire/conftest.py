"""A server with short timeouts, for the tests that wait for that; all others have the time that they need."""

from collections.abc import Iterator

import pytest

from tests.service.models import VECTOR, add_model
from tests.service.server.process import ServerProcess
from tests.service.v2.models import SAME


@pytest.fixture(scope="session")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Return a server with timeouts of three seconds."""
    models = tmp_path_factory.mktemp("models")
    add_model(models, "vector", VECTOR)
    add_model(models, "same", SAME.format(dtype="f32"))
    with ServerProcess("--models", str(models), "--no-warm-up", "--timeout", "3") as started:
        yield started
