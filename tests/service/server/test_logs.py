"""What the process writes to standard error."""

from pathlib import Path

import httpx

from tests.service.models import add_model
from tests.service.server.blocking import FAULT
from tests.service.server.process import SOON, ServerProcess


def test_logs_can_be_json(tmp_path: Path) -> None:
    models = add_model(tmp_path, "fault", FAULT)
    flags = ("--models", str(models), "--no-warm-up", "--log-format", "json")
    with ServerProcess(*flags) as server:
        body = {"inputs": [{"data": [1]}]}
        httpx.post(f"{server.url}/infer", json=body, headers={"X-Request-ID": "r1"}, timeout=SOON)
        server.terminate()
        assert server.exit_code() == 0
    records = server.records()
    assert all({"time", "level", "logger", "message"} <= set(record) for record in records)
    (access,) = [record for record in records if record["logger"] == "service.access"]
    assert access["duration_ms"] > 0
    expected = {"request_id": "r1", "method": "POST", "path": "/infer", "status": 500, "model": "fault"}
    assert expected.items() <= access.items()
    (fault,) = [record for record in records if "exception" in record]
    assert (fault["request_id"], fault["level"]) == ("r1", "error")
