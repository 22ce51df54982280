"""A batch size that the server has not seen, with each request."""

from tests.attack.attack import Attack, Target
from tests.attack.attacks.rows import digits_request


def run(target: Target, count: int) -> None:
    """Ask for 17 rows, 18 rows, and so on, one after the other."""
    with target.connect() as wire:
        for rows in range(17, 17 + count):
            if not wire.send(digits_request(rows)) or not wire.reply():
                break


BATCH_SIZES = Attack("a new batch size with each request", "requests", run, (3, 40, 94))
