"""CSV of millions of lines or numbers."""

from tests.attack.attack import Attack, Target
from tests.attack.attacks.requests import ask_in_turn, post
from tests.attack.models import TABLE

PATH = f"/infer?model={TABLE}&trace=off"
MAX_BYTES = 63_000_000
"""Bytes of a table; a body may have a little more by default."""
_LINES = (b"0\n", b"\n", b"1,2\n", b'"0"\n', b"0;1\n", b"-1.25e-3\n", b"NaN\n", b"x\n")
_COLUMNS = (b"0,", b"1.5,", b'"1",', b",", b"0;", b"0\t")


def run(target: Target, count: int) -> None:
    """Send so many lines of each kind, then so many numbers in one line of each kind."""
    for pattern in (*_LINES, *_COLUMNS):
        lines = min(count, MAX_BYTES // len(pattern))
        ask_in_turn(target, [post(PATH, pattern * lines + b"0", "text/csv")])


TABLES = Attack(
    "CSV of many lines or numbers",
    "lines or numbers",
    run,
    (200_000, 30_000_000, 60_000_000),
    models=(TABLE,),
)
