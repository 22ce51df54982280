"""Statistics of every tensor of a run on many rows."""

from tests.attack.attack import Attack, Target
from tests.attack.attacks.requests import ask_in_turn
from tests.attack.attacks.rows import digits_request

ROWS = 5000
SHORT_ROWS = 100
"""Rows of each request where an attack has one."""


def run(target: Target, count: int) -> None:
    """Ask `count` times for statistics of 5,000 rows."""
    rows = ROWS if count > 1 else SHORT_ROWS
    ask_in_turn(target, (digits_request(rows, "trace=stats") for _ in range(count)))


STATISTICS = Attack("statistics of 5,000 rows", "requests", run, (1, 4, 16))
