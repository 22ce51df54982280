"""What a process of several inherits from the supervisor that started it, and what the two say to each other."""

import json
import os
import socket
from collections.abc import MutableMapping
from dataclasses import asdict, dataclass

READY = b"r"
"""From the process: it serves. Messages are bytes on a socket pair; its end is the end of the supervisor."""
RETIRE = b"t"
"""From the supervisor: another process has taken its place."""
ABORT = b"a"
"""From the supervisor: abort the drain."""
START_FAILED = 3
"""Exit code of a server that could not start; the one that uvicorn itself uses."""
_VARIABLE = "_KUIPER_SLOT"
"""Environment variable that hands the slot over; no setting, and gone once it is read."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one process among several. File descriptors are inherited under the numbers that stand here.

    Attributes:
        processes: how many processes there are.
        sockets: descriptors of the listening sockets, which all processes share.
        metrics: folder in which `prometheus_client` keeps the counters of all slots.
        grpc_port: port that all processes listen on for gRPC; None without.
        number: distinguishes the process from all others alive; the label `process` of its metrics.
        channel: descriptor of the socket pair to the supervisor.
        is_first: whether no other process serves yet, so that the port is served while models are loaded.
        is_shown: whether what it does at its start is logged; otherwise only what goes wrong is.
    """

    processes: int
    sockets: list[int]
    metrics: str
    grpc_port: int | None
    number: int = 0
    channel: int = -1
    is_first: bool = False
    is_shown: bool = False

    def open_sockets(self) -> list[socket.socket]:
        """Return the listening sockets."""
        return [socket.socket(fileno=number) for number in self.sockets]

    def variables(self) -> dict[str, str]:
        """Return the environment variables that hand it over."""
        return {_VARIABLE: json.dumps(asdict(self)), "PROMETHEUS_MULTIPROC_DIR": self.metrics}


def take_slot(environment: MutableMapping[str, str] = os.environ) -> Slot | None:
    """Return the slot that this process was started for, and forget it; None where it was started by itself.

    Args:
        environment: the environment variables.
    """
    text = environment.pop(_VARIABLE, None)
    return None if text is None else Slot(**json.loads(text))
