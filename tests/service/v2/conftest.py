"""A real server, and the protocol's real client."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.service.server.process import SOON, ServerProcess
from tests.service.v2.models import add_v2_models


@pytest.fixture(scope="session")
def v2_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = add_v2_models(tmp_path_factory.mktemp("v2"))
    flags = ("--no-warm-up", "--model-control", "explicit", "--max-body-bytes", "200000", "--workers", "2")
    with ServerProcess("--models", str(models), *flags) as started:
        yield started


@pytest.fixture(scope="session")
def address(v2_server: ServerProcess) -> str:
    return urlsplit(v2_server.url).netloc


@pytest.fixture
def http(v2_server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=v2_server.url, timeout=SOON) as created:
        yield created
