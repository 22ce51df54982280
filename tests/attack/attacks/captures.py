"""Responses that are much larger than their requests."""

from collections.abc import Iterator
from itertools import cycle, islice

from tests.attack.attack import Attack, Target
from tests.attack.attacks.requests import ask_in_turn
from tests.attack.attacks.rows import digits_request

ROWS = (100, 400, 800, 1500)
CAPTURED = "trace=stats&capture=" + ",".join(map(str, range(32)))
"""The operands of the digits, all of them."""
_FEW = "trace=off&capture=3,4,5"
"""The largest operands of the digits."""
_NPZ = "application/x-npz"
_KINDS = (
    (50, CAPTURED, "*/*"),
    (100, CAPTURED, _NPZ),
    (400, _FEW, _NPZ),
    (150, _FEW, "*/*"),
    (250, _FEW, "*/*"),
)
"""Rows, query and accepted type of requests of which some are answered, and some are a little too large."""


def run(target: Target, count: int) -> None:
    """Ask `count` times for every operand of many rows, as JSON."""
    ask_in_turn(target, (digits_request(ROWS[index % len(ROWS)], CAPTURED) for index in range(count)))


def answered(target: Target, count: int) -> None:
    """Ask `count` times for as many operands as a response may hold, or a few more."""
    requests: Iterator[bytes] = (digits_request(*kind) for kind in islice(cycle(_KINDS), count))
    ask_in_turn(target, requests)


CAPTURES = Attack("every operand of up to 1,500 rows", "requests", run, (2, 12, 40))
LARGE_RESPONSES = Attack("as many operands as a response may hold", "requests", answered, (2, 15, 50))
