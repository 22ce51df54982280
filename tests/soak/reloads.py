"""A model that is loaded again and again while clients ask it: no request fails, and nothing is left behind."""

import http.client
import json
from typing import TextIO
from urllib.parse import urlsplit

from tests.service.server.process import ROOT, ServerProcess
from tests.soak.askers import PERIOD, Askers, expected_of
from tests.soak.checkpoint import CheckpointLog, growth_of

CLIENTS = 4
MAX_GROWTH = 24 << 20
"""Bytes that the server may grow by, once a quarter of the reloads is over."""


def run_reloads(times: int, target: TextIO) -> list[str]:
    """Load a model again under load; returns what was wrong.

    Args:
        times: how often.
        target: where a checkpoint goes after each time.
    """
    faults: list[str] = []
    flags = ("--models", str(ROOT / "models" / "digits"), "--model-control", "explicit")
    with ServerProcess(*flags, module="service.cli") as server:
        log = CheckpointLog(target, 0.0)
        with Askers(server.url, expected_of(server.url), CLIENTS, survives=True) as askers:
            for number in range(times):
                status, body = _load(server.url)
                if status != http.client.OK:
                    faults.append(f"load {number}: {status} {body[:300]!r}")
                log.write(server.process.pid, {"200": askers.responses}, len(faults) + len(askers.faults))
        if not askers.responses:
            faults.append("nothing was answered meanwhile")
        server.terminate()
        if code := server.exit_code():
            faults.append(f"exit code {code}")
    growth = growth_of(log.written)
    if growth > MAX_GROWTH:
        faults.append(f"{growth / 1e6:.1f} MB more memory than after a quarter of the reloads")
    return (
        faults + askers.faults + [line for line in server.lines if " ERROR " in line or "Traceback" in line]
    )


def _load(url: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PERIOD)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v2/repository/models/digits/load", json.dumps({}), headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
