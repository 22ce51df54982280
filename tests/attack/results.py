"""What came of a run of attacks, as data and as JSON."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from tests.attack.measurement import Measurement
from tests.attack.witness import Observation

SAVED = Path("docs/bench/attacks.json")
"""Where a run writes to that is to be shown."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long an honest client waited.

    Attributes:
        p50: median, in seconds; None where nothing was asked.
        p99: 99th percentile, in seconds; None where nothing was asked.
        asked: number of questions.
        refused: how many of them got another response than 200, or none.
    """

    p50: float | None
    p99: float | None
    asked: int
    refused: int


@dataclass(frozen=True, slots=True)
class AttackResult:
    """What came of one attack.

    Attributes:
        attack: its name.
        size: how large it was.
        unit: what its size counts.
        sent: bytes that the attacker sent.
        rest: the server's resident bytes before the attack.
        peak: the most resident bytes during the attack.
        after: the server's resident bytes afterwards.
        livez: what a client noticed who asked `/livez` during the attack.
        idle: what a client noticed before the attack who had digits recognised.
        honest: what it noticed during the attack.
        replies: what the attacker was answered: status and code -> how often.
        excesses: which limits on latency and memory were exceeded.
        faults: what must not be.
    """

    attack: str
    size: int
    unit: str
    sent: int
    rest: int
    peak: int
    after: int
    livez: Latency
    idle: Latency
    honest: Latency
    replies: Mapping[str, int]
    excesses: tuple[str, ...]
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttackReport:
    """A run of attacks.

    Attributes:
        machine: what it ran on.
        date: its day, such as 2026-11-22.
        scale: how large the attacks were: short, usual or full.
        results: one for each attack.
    """

    machine: Mapping[str, str]
    date: str
    scale: str
    results: tuple[AttackResult, ...]


_FORMAT = TypeAdapter(AttackReport)


def to_json(report: AttackReport) -> str:
    """Return a report as JSON."""
    return _FORMAT.dump_json(report, indent=1).decode() + "\n"


def from_json(text: str) -> AttackReport:
    """Return the report of a JSON text that `to_json` wrote.

    Raises:
        pydantic.ValidationError: it is none.
    """
    return _FORMAT.validate_json(text)


def result_of(measurement: Measurement) -> AttackResult:
    """Return what came of an attack as plain data."""
    return AttackResult(
        attack=measurement.attack.name,
        size=measurement.size,
        unit=measurement.attack.unit,
        sent=measurement.sent,
        rest=measurement.rest,
        peak=measurement.peak,
        after=measurement.after,
        livez=_latency(measurement.livez),
        idle=_latency(measurement.idle),
        honest=_latency(measurement.honest),
        replies=dict(sorted(measurement.replies.items())),
        excesses=tuple(measurement.excesses()),
        faults=tuple(measurement.faults),
    )


def _latency(of: Observation) -> Latency:
    return Latency(
        p50=_number(of.percentile(50)),
        p99=_number(of.percentile(99)),
        asked=of.replies.total(),
        refused=of.refused,
    )


def _number(seconds: float) -> float | None:
    """Return a time, None for nan, which JSON does not have."""
    return None if math.isnan(seconds) else round(seconds, 6)
