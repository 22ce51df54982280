"""Answers that are much larger than their requests."""

from tests.attack.attack import Attack, Target
from tests.attack.attacks.requests import ask_in_turn
from tests.attack.attacks.rows import digits_request

ROWS = (100, 400, 800, 1500)
CAPTURED = "trace=stats&capture=" + ",".join(map(str, range(32)))
"""The operands of the digits, all of them."""


def run(target: Target, count: int) -> None:
    """Ask `count` times for every operand of many rows, as JSON."""
    ask_in_turn(target, (digits_request(ROWS[index % len(ROWS)], CAPTURED) for index in range(count)))


CAPTURES = Attack("every operand of up to 1,500 rows", "requests", run, (2, 12, 40))
