"""Which vector widths, threads and layouts a case is run with."""

from engine.compiler.emit.target import Target, bf16_targets, int8_targets, supported_targets
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


def rounded_mode_of(index: int, precision: str) -> Mode:
    """Return the mode of a case in bfloat16 or int8: all targets and layouts take their turns."""
    targets, layouts = _rounded_targets(precision), list(LAYOUTS)
    return Mode(targets[index % len(targets)], layout=layouts[index % len(layouts)])


def _rounded_targets(precision: str) -> list[Target]:
    """Return the targets that have instructions for a precision, then those without."""
    special = bf16_targets() if precision == "bf16" else int8_targets()
    return list(dict.fromkeys((*special, *supported_targets())))
