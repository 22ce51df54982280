"""Keys, origins, counts and logs of inference requests, whose paths are written plainly or with escapes."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.models import VECTOR as VECTOR_MODEL
from tests.service.models import add_model
from tests.service.server.blocking import FAULT
from tests.service.server.process import SOON, ServerProcess
from tests.service.server.wire.cases import GOOD, VECTOR
from tests.service.server.wire.wire import Ask, Reply, ask, connected

KEY, PAGE = "key-0123456789abcdef", "https://page.test"
COUNT = re.compile(r"http_server_request_duration_seconds_count\{(.*)\} (\d+)")
FAULTY = Ask("/infer?model=fault", b'{"inputs": [{"data": [1]}]}')
V2_GOOD = b'{"inputs": [{"name": "0", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}'
INFER, V2 = "/infer", "/v2/models/{name}/infer"
MIXED = (
    (Ask(VECTOR, GOOD), INFER, 200, "vector"),
    (Ask(VECTOR, b"{"), INFER, 400, "vector"),
    (Ask(VECTOR, GOOD, (("Accept", "text/html"),)), INFER, 406, "vector"),
    (Ask("/infer?model=none", GOOD), INFER, 404, None),
    (
        Ask("/v2/models/vector/versions/1/infer", b"{}"),
        "/v2/models/{name}/versions/{version}/infer",
        400,
        "vector",
    ),
    (Ask("/v2/models/vector/infer", b"{"), V2, 400, "vector"),
    (Ask("/v2/models/none/infer", b"{}"), V2, 404, None),
    (Ask("/v2/models/vector/infer", V2_GOOD), V2, 200, "vector"),
    (FAULTY, INFER, 500, "fault"),
)
"""Requests; and of each its route, the status of its response, and the model that is reported of."""
COUNTED = {
    "vector": {"success": 2, "fail": 4, "runs": 2, "rows": 2},
    "fault": {"success": 0, "fail": 1, "runs": 0, "rows": 0},
}
"""Model -> what its statistics grow by for all of `MIXED`."""
FORMS = (Ask.plain, Ask.escaped)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    add_model(root, "vector", VECTOR_MODEL)
    add_model(root, "fault", FAULT)
    return root


@pytest.fixture(scope="module")
def shared_server(models: Path) -> Iterator[ServerProcess]:
    with start(models, "--log-format", "json") as started:
        yield started
        started.terminate()
        assert started.exit_code() == 0


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    """A server whose log is JSON; what earlier tests had it log is read."""
    shared_server.reset()
    return shared_server


def start(models: Path, *flags: str) -> ServerProcess:
    return ServerProcess("--models", str(models), "--no-warm-up", *flags)


def both(server: ServerProcess, case: Ask) -> Reply:
    """Return the response to a request that has the same status and headers in both forms."""
    plain, through = ask(server, case.plain()), ask(server, case.escaped())
    ignored = {"date", "x-request-id", "content-length"}
    kept = [
        {name: reply.headers[name] for name in reply.headers.keys() - ignored} for reply in (plain, through)
    ]
    assert kept[0] == kept[1]
    assert plain.status == through.status
    return plain


def test_key_is_needed_however_the_path_is_written(models: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{KEY}\n")
    with start(models, "--api-keys-file", str(tmp_path / "keys")) as server:
        for header, status in (
            (("Authorization", f"Bearer {KEY}"), 200),
            (("X-API-Key", KEY), 200),
            (("Authorization", "Bearer wrong"), 401),
            (("X-API-Key", ""), 401),
            (("X-Other", "x"), 401),
        ):
            assert both(server, Ask(VECTOR, GOOD, (header,))).status == status


def test_only_pages_of_known_origins_may_read_the_response(models: Path) -> None:
    with start(models, "--cors-origins", PAGE) as server:
        for body, origin in product((GOOD, b"{"), (PAGE, "https://other.test", None)):
            headers = () if origin is None else (("Origin", origin),)
            reply = both(server, Ask(VECTOR, body, headers))
            assert reply.headers.get("access-control-allow-origin") == (PAGE if origin == PAGE else None)


def http_counts(server: ServerProcess) -> Counter[str]:
    text = httpx.get(f"{server.url}/metrics", timeout=SOON).text
    found = {labels: int(count) for labels, count in COUNT.findall(text)}
    return Counter({labels: count for labels, count in found.items() if "/metrics" not in labels})


def statistics(server: ServerProcess, model: str) -> dict[str, Any]:
    response = httpx.get(f"{server.url}/v2/models/{model}/stats", timeout=SOON).json()
    (stats,) = response["model_stats"]
    counts = {name: what["count"] for name, what in stats["inference_stats"].items()}
    return {**counts, "runs": stats["execution_count"], "rows": stats["inference_count"]}


@pytest.mark.parametrize("form", FORMS)
def test_http_requests_are_counted_by_route_and_status(
    server: ServerProcess, form: Callable[[Ask], bytes]
) -> None:
    before = http_counts(server)
    for case, *_ in MIXED:
        ask(server, form(case))
    expected = Counter(
        f'http_request_method="POST",http_response_status_code="{status}",http_route="{route}"'
        for _, route, status, _ in MIXED
    )
    assert http_counts(server) - before == expected


@pytest.mark.parametrize("form", FORMS)
def test_models_count_what_they_are_asked(server: ServerProcess, form: Callable[[Ask], bytes]) -> None:
    before = {model: statistics(server, model) for model in COUNTED}
    for case, *_ in MIXED:
        ask(server, form(case))
    for model, expected in COUNTED.items():
        after = statistics(server, model)
        assert {name: after[name] - before[model][name] for name in expected} == expected


def access_lines(server: ServerProcess, *request_ids: str) -> list[dict[str, Any]]:
    """Return the lines of the access log for some requests, once that of the last request is written."""
    server.wait_for_line(re.compile(rf'^(?=.*"service\.access").*"{request_ids[-1]}"'))
    records = [json.loads(line) for line in list(server.lines)]
    lines = [record for record in records if record["logger"] == "service.access"]
    lines = [line for line in lines if line["request_id"] in request_ids]
    for line in lines:
        assert line.pop("duration_ms") > 0
        assert line.pop("time")
    return lines


@pytest.mark.parametrize("form", FORMS)
def test_access_log_names_the_route_however_the_path_is_written(
    server: ServerProcess, form: Callable[[Ask], bytes]
) -> None:
    request_ids = [f"{form.__name__}-{number}" for number in range(len(MIXED))]
    for request_id, (case, *_) in zip(request_ids, MIXED, strict=True):
        ask(server, form(replace(case, headers=(*case.headers, ("X-Request-ID", request_id)))))
    reported = [
        (line["request_id"], line["path"], line["status"], line.get("model"))
        for line in access_lines(server, *request_ids)
    ]
    assert reported == [
        (request_id, *expected) for request_id, (_, *expected) in zip(request_ids, MIXED, strict=True)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_fault_is_logged_with_what_raised_it(server: ServerProcess, form: Callable[[Ask], bytes]) -> None:
    request_id = f"fault-{form.__name__}"
    assert ask(server, form(replace(FAULTY, headers=(("X-Request-ID", request_id),)))).status == 500
    access_lines(server, request_id)
    records = [json.loads(line) for line in list(server.lines)]
    (reported,) = (
        record for record in records if "exception" in record and record["request_id"] == request_id
    )
    assert (reported["level"], reported["message"]) == ("error", "unhandled error")
    assert "a fault of the server" in reported["exception"]


@pytest.mark.parametrize("form", FORMS)
def test_client_that_leaves_in_the_middle_of_a_body_is_counted(
    server: ServerProcess, form: Callable[[Ask], bytes]
) -> None:
    request_id = f"left-{form.__name__}"
    with connected(server) as wire:
        wire.send(form(Ask(VECTOR, GOOD, (("X-Request-ID", request_id),)))[:-5])
    (line,) = access_lines(server, request_id)
    assert (line["method"], line["path"], line["status"]) == ("POST", INFER, 499)
