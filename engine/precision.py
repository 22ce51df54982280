"""In which arithmetic the products of a model are computed."""

import math
from enum import Enum

from engine.errors import BuildError

LOSS_TOLERATED = 0.01
"""Default accuracy budget of `auto`."""


class Precision(Enum):
    """Precision of the operands of convolutions and matrix products; sums, and all other layers, are float32."""

    F32 = "f32"
    """Not at all, as in PyTorch."""
    BF16 = "bf16"
    """bfloat16, to nearest even: float32 with 8 instead of 24 significant bits."""
    INT8 = "int8"
    """Eight-bit integers, with the scales of `kuiper quantize`; layers that it excludes are float32."""
    INT4 = "int4"
    """float32, with the weights of linear layers rounded to four bits by groups of 32 inputs."""
    AUTO = "auto"
    """The fastest whose measured loss stays under the model's tolerance: INT8 where the model was quantized, else BF16
    where it is faster, else F32."""


def choose_precision(wanted: Precision | str) -> Precision:
    """Return a precision by name.

    Raises:
        BuildError: there is no such precision.
    """
    try:
        return Precision(wanted)
    except ValueError as error:
        names = ", ".join(item.value for item in Precision)
        raise BuildError(f"precision: {wanted!r:.80} is unknown; expected one of {names}") from error


def checked_tolerance(tolerance: float) -> float:
    """Return the loss that `auto` may take.

    Loss is the largest over a run's outputs of |y - y32| / |y32|, in Euclidean norms, y32 being the output in float32.

    Raises:
        BuildError: it is no number from 0 to 1.
    """
    is_number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
    if not (is_number and math.isfinite(tolerance) and 0 <= tolerance <= 1):
        raise BuildError(f"tolerance: {tolerance!r:.80}; expected a number from 0 to 1")
    return float(tolerance)
