"""What a web page makes its visitor's browser send to a server on loopback, and what other clients send."""

from collections.abc import Iterator

import httpx
import pytest

from tests.service.models import VECTOR, add_model
from tests.service.server.process import SOON, ServerProcess

QUESTION = {"inputs": [{"data": [[-1, 0, 1]]}]}
LOAD, UNLOAD = "/v2/repository/models/vector/load", "/v2/repository/models/vector/unload"
READY = "/v2/models/vector/ready"
SIMPLE = {"Content-Type": "text/plain"}
PAGE = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
REBOUND = {"Host": "evil.example:8000", "Origin": "http://evil.example:8000", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = tmp_path_factory.mktemp("models")
    add_model(models, "vector", VECTOR)
    with ServerProcess("--models", str(models), "--model-control", "explicit") as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    """A client of the server; an earlier test may have unloaded the model."""
    with httpx.Client(base_url=server.url, timeout=SOON) as created:
        assert created.post(LOAD).status_code == 200
        yield created


def test_pages_change_nothing_and_run_nothing(client: httpx.Client) -> None:
    for headers, status in ((PAGE | SIMPLE, 403), (REBOUND | SIMPLE, 421), (SIMPLE, 400)):
        assert client.post(UNLOAD, content=b"{}", headers=headers).status_code == status
    for headers, status in ((PAGE, 403), (REBOUND, 421), ({"Host": "evil.example"}, 421)):
        assert client.post("/infer", json=QUESTION, headers=headers).status_code == status
        assert client.post(UNLOAD, headers=headers).status_code == status
    assert client.get("/models", headers=REBOUND).status_code == 421
    assert client.get(READY).status_code == 200


def test_body_that_is_refused_is_not_taken_for_the_next_request(client: httpx.Client) -> None:
    response = client.post("/infer", content=bytes(1 << 20), headers=PAGE)
    assert (response.status_code, response.json()["code"]) == (403, "origin_refused")
    assert response.headers["connection"] == "close"


def test_other_clients_go_on_working(client: httpx.Client) -> None:
    for headers in ({}, {"Host": "localhost:8000"}, {"Host": "gpu-box"}, {"Sec-Fetch-Site": "same-origin"}):
        assert client.post("/infer", json=QUESTION, headers=headers).status_code == 200
    assert client.post(UNLOAD).status_code == 200
    assert client.get(READY).status_code == 503
