"""Which vector widths, threads and layouts a case is run with."""

from engine.compiler.emit.target import Target
from tests.differential.comparison import Mode
from tests.differential.layouts import LAYOUTS
from tests.engine.compiler.emulation import BF16, INT8, WIDTHS

THREADS = (2, 3, 7)
"""Besides one, which every case runs with as well."""


def modes_of(index: int, count: int) -> list[Mode]:
    """Return as many modes, others for each index: all widths, threads and layouts take their turns."""
    targets, layouts = WIDTHS, list(LAYOUTS)
    return [
        Mode(
            targets[(index + place) % len(targets)],
            THREADS[(index // len(targets) + place) % len(THREADS)],
            layouts[(index + 2 * place) % len(layouts)],
        )
        for place in range(count)
    ]


def rounded_mode_of(index: int, precision: str) -> Mode:
    """Return the mode of a case in bfloat16 or int8: all targets and layouts take their turns."""
    targets, layouts = _rounded_targets(precision), list(LAYOUTS)
    return Mode(targets[index % len(targets)], layout=layouts[index % len(layouts)])


def _rounded_targets(precision: str) -> list[Target]:
    """Return the targets that have instructions for a precision, then those without."""
    special = BF16 if precision == "bf16" else INT8
    return list(dict.fromkeys((*special, *WIDTHS)))
