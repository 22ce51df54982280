"""A server that is killed at any moment, and started again: it comes up on the same port, and answers as before."""

import json
import signal
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import TextIO

from tests.bench.service.server import free_port
from tests.service.server.process import ROOT, ServerProcess
from tests.soak.askers import Askers, expected_of

CLIENTS = 4
MAX_SECONDS = 2.0
"""Longest time that a server is left to answer before it is killed."""
IN_START = 4
"""One in so many servers is killed at any moment of its start, rather than while it answers."""


def run_crashes(folder: Path, times: int, seed: int, target: TextIO) -> list[str]:
    """Kill a server again and again; returns what was wrong.

    Args:
        folder: where its compiled kernels are kept, so that half-written ones would be met again.
        times: how often.
        seed: when it is killed is drawn from it.
        target: where a line of JSON goes for each time.
    """
    port, chance = free_port(), Random(seed)
    flags = ("--models", str(ROOT / "models" / "digits"), "--port", str(port))
    environment = {"KUIPER_CACHE": str(folder / "cache")}
    with ServerProcess(*flags, module="service.cli", environment=environment) as server:
        expected = expected_of(server.url)
    faults: list[str] = []
    for number in range(times):
        until_ready = number % IN_START != IN_START - 1
        began = monotonic()
        with ServerProcess(
            *flags, module="service.cli", environment=environment, until_ready=until_ready
        ) as server:
            ready = monotonic() - began
            with Askers(server.url, expected, CLIENTS, survives=False) as askers:
                sleep(chance.random() * MAX_SECONDS)
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
        faults += [f"crash {number}: {fault}" for fault in askers.faults]
        line = {"crash": number, "in_start": not until_ready, "seconds": round(ready, 2)}
        print(
            json.dumps(line | {"responses": askers.responses, "faults": len(faults)}), file=target, flush=True
        )
    with ServerProcess(*flags, module="service.cli", environment=environment) as server:
        if expected_of(server.url).keys() != expected.keys():
            faults.append("not all pictures are answered in the end")
        with Askers(server.url, expected, CLIENTS, survives=True) as askers:
            sleep(MAX_SECONDS)
    return faults + [f"in the end: {fault}" for fault in askers.faults]
