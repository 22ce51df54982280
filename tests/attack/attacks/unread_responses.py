"""Large responses that nobody reads."""

from contextlib import ExitStack

from tests.attack.attack import Attack, Target
from tests.attack.attacks.rows import digits_request

MAX_ROWS = 300
CAPTURED = "trace=off&capture=1,2,3,4"
"""Operands of 15 MB each, for the most rows."""


def run(target: Target, count: int) -> None:
    """Ask for `count` responses of many megabytes, each on a connection of its own, and read none."""
    request = digits_request(min(MAX_ROWS, 25 * count), CAPTURED, "application/x-npz")
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(target.connect(receive_buffer=4096)).send(request)
        target.hold()


UNREAD_RESPONSES = Attack("large responses that nobody reads", "responses", run, (2, 16, 40))
