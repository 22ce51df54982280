"""Which vector widths, threads and layouts a case is run with."""

from engine.compiler.emit.target import supported_targets
from tests.differential.comparison import Mode
from tests.differential.layouts import LAYOUTS

THREADS = (2, 3, 7)
"""Besides one, which every case runs with as well."""


def modes_of(index: int, count: int) -> list[Mode]:
    """Return as many modes, others for each index: all widths, threads and layouts take their turns."""
    targets, layouts = supported_targets(), list(LAYOUTS)
    return [
        Mode(
            targets[(index + place) % len(targets)],
            THREADS[(index // len(targets) + place) % len(THREADS)],
            layouts[(index + 2 * place) % len(layouts)],
        )
        for place in range(count)
    ]
