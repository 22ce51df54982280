"""Large batches where the address space is limited."""

from tests.attack.attack import Attack, Target
from tests.attack.attacks.rows import digits_request


def run(target: Target, count: int) -> None:
    """Ask for `count` batches of 100 to 350 rows, the largest first."""
    for place in range(count):
        with target.connect() as wire:
            wire.send(digits_request(350 - 250 * place // count))
            wire.reply()


ADDRESS_SPACE = Attack(
    "100 to 350 rows within 900 MB",
    "requests",
    run,
    (2, 12, 50),
    address_space=900_000_000,
    is_measured=False,
)
