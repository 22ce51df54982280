"""Runs an attack against a server of its own, and measures what it costs whom."""

import contextlib
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.attack.attack import Attack, Scale, Target
from tests.attack.server import AttackedServer
from tests.attack.witness import Observation, Witnesses, ask_once, customer, prober

SECONDS = (0.5, 8.0, 40.0)
"""How long an attack goes on that needs time rather than bytes, by `Scale`."""
IDLE_SECONDS = (0.0, 4.0, 10.0)
"""How long honest clients are measured before the attack."""
REST_SECONDS = (0.0, 3.0, 10.0)
"""How long the server may rest afterwards, before its memory is measured."""
SAMPLE_SECONDS = 0.02

LIVEZ_SECONDS = 0.1
"""What the 99th percentile of `/livez` may be during an attack."""
SLOWER = 5.0
"""How many times as long an honest client may wait, at the 99th percentile."""
PEAK_BYTES, KEPT_BYTES = 400 << 20, 50 << 20
"""How much more memory than at rest the server may have during an attack and afterwards."""


@dataclass
class Measurement:
    """What came of an attack.

    Attributes:
        attack: what was done.
        size: how large.
        sent: bytes that the attacker sent.
        rest, peak, after: the server's resident bytes before, during and after the attack.
        idle, livez, honest: what the customer noticed before, and the prober and the customer during the attack.
        replies: what the attacker was answered.
        faults: what must not be; empty where all is well.
    """

    attack: Attack
    size: int
    sent: int = 0
    rest: int = 0
    peak: int = 0
    after: int = 0
    idle: Observation = field(default_factory=Observation)
    livez: Observation = field(default_factory=Observation)
    honest: Observation = field(default_factory=Observation)
    replies: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def excesses(self) -> list[str]:
        """Return which limits on latency and memory were exceeded."""
        found = []
        if not self.livez.percentile(99) <= LIVEZ_SECONDS:  # nan where nothing was answered
            found.append("livez")
        if not self.honest.percentile(99) <= SLOWER * self.idle.percentile(99):
            found.append("honest")
        if self.honest.refused + self.livez.refused:
            found.append("refused")
        if self.peak > self.rest + PEAK_BYTES:
            found.append("peak")
        if self.after > self.rest + KEPT_BYTES:
            found.append("kept")
        return found if self.attack.is_measured else []


class MemorySampler:
    """Samples the memory of a server on a thread.

    Attributes:
        peak: most resident bytes that were seen.
    """

    def __init__(self, server: AttackedServer) -> None:
        self._server = server
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self.peak = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, self._server.resident_bytes())


def measure(attack: Attack, scale: Scale) -> Measurement:
    """Run an attack against a server of its own; returns what came of it."""
    with AttackedServer(attack) as server:
        return measure_on(server, attack, scale)


def measure_on(server: AttackedServer, attack: Attack, scale: Scale) -> Measurement:
    """Run an attack against a server; returns what came of it."""
    measurement = Measurement(attack, attack.sizes[scale])
    before = ask_once(customer(server.port))
    if IDLE_SECONDS[scale]:
        with Witnesses(server.port) as witnesses:
            time.sleep(IDLE_SECONDS[scale])
            _, measurement.idle = witnesses.observations()
    measurement.rest = server.resident_bytes()
    _attack(measurement, server, scale)
    time.sleep(REST_SECONDS[scale])
    measurement.after = server.resident_bytes()
    _look_afterwards(measurement, server, before)
    return measurement


def _attack(measurement: Measurement, server: AttackedServer, scale: Scale) -> None:
    target = Target(server.port, server.process_id, SECONDS[scale])
    with MemorySampler(server) as sampler, Witnesses(server.port) as witnesses:
        measurement.attack.run(target, measurement.size)
        measurement.livez, measurement.honest = witnesses.observations()
    measurement.sent, measurement.replies, measurement.peak = target.sent, target.replies, sampler.peak


def _look_afterwards(measurement: Measurement, server: AttackedServer, before: tuple[int, bytes]) -> None:
    """Note all that is wrong once the attacker has left."""
    if server.exit_code is not None:
        measurement.faults.append(f"the server ended with {server.exit_code}")
        return
    if ask_once(prober(server.port))[0] != 200:
        measurement.faults.append("/livez is not answered afterwards")
    status, body = ask_once(customer(server.port))
    if status != 200 or _outputs(body) != _outputs(before[1]):
        measurement.faults.append(
            f"an honest client is answered otherwise afterwards: {status} {body[:200]!r}"
        )
    for replies in (measurement.replies, measurement.livez.replies, measurement.honest.replies):
        measurement.faults += [
            f"{count} x {reply}" for reply, count in replies.items() if reply.startswith("500")
        ]


def _outputs(body: bytes) -> object:
    """Return the outputs of a response: they alone do not change from response to response."""
    with contextlib.suppress(ValueError):
        return json.loads(body).get("outputs")
    return None
