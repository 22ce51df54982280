"""A request is answered as its case says, and alike in whatever form it is written on the wire."""

import json
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from tests.cases import check_each
from tests.service.server.process import ServerProcess
from tests.service.server.wire.cases import INFER, LIMIT, PROTOCOL, Exchange
from tests.service.server.wire.wire import Ask, Reply, ask
from tests.service.v2.models import add_v2_models

TIMED = {"timing", "trace", "request_id"}
"""Members of a response that differ from one request to the next."""
COMPUTING = {"start_ms", "duration_ms", "share", "backend", "fused", "fused_into", "precision"}
"""What is said of a layer or operand that is another once the model's program is compiled, in the background."""
VARYING = {"date", "content-length", "x-request-id"}
MADE_ID = re.compile("[0-9a-f]{32}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = add_v2_models(tmp_path_factory.mktemp("models"))
    with ServerProcess("--models", str(models), "--no-warm-up", "--max-body-bytes", str(LIMIT)) as started:
        yield started


def without_times(document: Any) -> Any:
    """Return a response without what differs each time; of its trace the layers are left."""
    if not isinstance(document, dict):
        return document
    kept = {name: value for name, value in document.items() if name not in TIMED}
    trace = document.get("trace") or document.get("parameters", {}).get("trace")
    if trace:
        kept["parameters"] = None
        kept["layers"] = trace["layers"]
    return _without(kept, COMPUTING)


def _without(document: Any, names: set[str]) -> Any:
    if isinstance(document, dict):
        return {name: _without(value, names) for name, value in document.items() if name not in names}
    return [_without(item, names) for item in document] if isinstance(document, list) else document


def content(reply: Reply) -> Any:
    """Return what a response says, but for its times."""
    kind = reply.headers["content-type"]
    if kind == "application/x-npz":
        arrays = np.load(BytesIO(reply.body))
        return {name: arrays[name].tolist() for name in arrays.files if name.isdigit()}
    if kind == "application/json" and "content-encoding" not in reply.headers:
        document = json.loads(reply.body)
        if "details" in document and MADE_ID.fullmatch(str(document["details"].get("request_id"))):
            document["details"]["request_id"] = "made"
        return without_times(document)
    return reply.body


def headers(reply: Reply) -> dict[str, str]:
    """Return a response's headers, but for those that differ each time."""
    assert int(reply.headers["content-length"]) == len(reply.body)
    kept = {name: value for name, value in reply.headers.items() if name not in VARYING}
    given = reply.headers["x-request-id"]
    kept["x-request-id"] = "made" if MADE_ID.fullmatch(given) else given
    kept["has date"] = str("date" in reply.headers)
    return kept


def error_code(reply: Reply) -> str | None:
    """Return the code of an error; None of any other response."""
    return reply.json()["code"] if reply.status >= 400 else None


def check_alike(server: ServerProcess, case: Exchange, other: Callable[[Ask], bytes]) -> None:
    plain, through = ask(server, case.request.plain()), ask(server, other(case.request))
    for reply in (plain, through):
        assert (reply.status, error_code(reply)) == (case.status, case.code), reply.body
    assert headers(plain) == headers(through)
    assert content(plain) == content(through)


@pytest.mark.parametrize("other", [Ask.escaped, Ask.with_trailer, Ask.chunked])
def test_inference_is_answered_alike(server: ServerProcess, other: Callable[[Ask], bytes]) -> None:
    check_each(INFER, lambda name: check_alike(server, INFER[name], other))


@pytest.mark.parametrize("other", [Ask.escaped, Ask.with_trailer, Ask.chunked])
def test_inference_of_the_protocol_is_answered_alike(
    server: ServerProcess, other: Callable[[Ask], bytes]
) -> None:
    check_each(PROTOCOL, lambda name: check_alike(server, PROTOCOL[name], other))
