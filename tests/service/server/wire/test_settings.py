"""Keys, origins, counts and logs of inference requests, whose paths are written plainly or with escapes."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
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
V2 = Ask(
    "/v2/models/vector/infer", b'{"inputs": [{"name": "0", "shape": [1], "datatype": "FP32", "data": [1]}]}'
)
COUNT = re.compile(r"http_server_request_duration_seconds_count\{(.*)\} (\d+)")
FAULTY = Ask("/infer?model=fault", b'{"inputs": [{"data": [1]}]}')
MIXED = (
    Ask(VECTOR, GOOD),
    Ask(VECTOR, b"{"),
    Ask(VECTOR, GOOD, (("Accept", "text/html"),)),
    Ask("/infer?model=none", GOOD),
    Ask("/v2/models/vector/versions/1/infer", b"{}"),
    Ask("/v2/models/vector/infer", b"{"),
    Ask("/v2/models/none/infer", b"{}"),
    V2,
    FAULTY,
)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    add_model(tmp_path / "models", "vector", VECTOR_MODEL)
    add_model(tmp_path / "models", "fault", FAULT)
    return tmp_path / "models"


@pytest.fixture
def server(models: Path) -> Iterator[ServerProcess]:
    with start(models, "--log-format", "json") as started:
        yield started


def start(models: Path, *flags: str) -> ServerProcess:
    return ServerProcess("--models", str(models), "--no-warm-up", *flags)


def both(server: ServerProcess, case: Ask) -> Reply:
    """Return the answer to a request that has the same status and headers in both forms."""
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


def test_only_pages_of_known_origins_may_read_the_answer(models: Path) -> None:
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
    answer = httpx.get(f"{server.url}/v2/models/{model}/stats", timeout=SOON).json()
    (stats,) = answer["model_stats"]
    counts = {name: what["count"] for name, what in stats["inference_stats"].items()}
    return {**counts, "runs": stats["execution_count"], "rows": stats["inference_count"]}


def test_http_requests_are_counted_under_the_same_routes(server: ServerProcess) -> None:
    def count(form: str) -> Counter[str]:
        before = http_counts(server)
        for case in MIXED:
            ask(server, getattr(case, form)())
        return http_counts(server) - before

    plain = count("plain")
    assert plain == count("escaped")
    assert plain.total() == len(MIXED)


@pytest.mark.parametrize("model", ["vector", "fault"])
def test_models_count_what_they_are_asked_alike(server: ServerProcess, model: str) -> None:
    seen = [statistics(server, model)]
    for form in ("plain", "escaped"):
        for case in MIXED:
            ask(server, getattr(case, form)())
        seen.append(statistics(server, model))
    added = [{name: after[name] - before[name] for name in after} for before, after in pairwise(seen)]
    assert added[0] == added[1]
    assert any(added[0].values())


def access_lines(server: ServerProcess) -> list[dict[str, Any]]:
    lines = [record for record in server.records() if record["logger"] == "service.http.access"]
    for line in lines:
        assert line.pop("duration_ms") > 0
        assert line.pop("time")
    return lines


def test_access_log_names_the_route_however_the_path_is_written(server: ServerProcess) -> None:
    named = [
        Ask(case.target, case.body, (*case.headers, ("X-Request-ID", f"r{number}")))
        for number, case in enumerate(MIXED)
    ]
    for case in named:
        ask(server, case.plain())
        ask(server, case.escaped())
    server.terminate()
    assert server.exit_code() == 0
    lines = access_lines(server)
    assert len(lines) == 2 * len(MIXED)
    for number, (plain, through) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
        assert plain == through
        assert plain["request_id"] == f"r{number}"


def test_fault_is_logged_alike(server: ServerProcess) -> None:
    for request in (FAULTY.plain(), FAULTY.escaped()):
        assert ask(server, request).status == 500
    server.terminate()
    assert server.exit_code() == 0
    plain, through = (record for record in server.records() if "exception" in record)
    assert plain.keys() == through.keys()
    assert plain["message"] == through["message"]
    assert "a fault of the server" in plain["exception"]


def test_client_that_leaves_in_the_middle_of_a_body_is_counted_alike(server: ServerProcess) -> None:
    for request in (Ask(VECTOR, GOOD).plain(), Ask(VECTOR, GOOD).escaped()):
        with connected(server) as wire:
            wire.send(request[:-5])
        server.wait_for_line(re.compile('"status": ?499'))
    server.terminate()
    assert server.exit_code() == 0
    plain, through = access_lines(server)
    assert plain.pop("request_id") != through.pop("request_id")
    assert plain == through
