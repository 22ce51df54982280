"""Products of the reference implementation on operands rounded to bfloat16, as in compiled bf16 kernels.

A compiled program is compared with the reference implementation. Where its kernels round the operands of products, so
do the layers that they are compared with: the two then differ by the order of float32 sums alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from engine.dtypes import Array
from engine.kernels.bfloat16 import rounded_to_bfloat16

_rounds: ContextVar[bool] = ContextVar("rounds", default=False)


@contextmanager
def operands_rounded(rounds: bool = True) -> Iterator[None]:
    """Have the products of this thread round their float32 operands to bfloat16, or not."""
    token = _rounds.set(rounds)
    try:
        yield
    finally:
        _rounds.reset(token)


def operand(array: Array) -> Array:
    """Return an operand of a product, rounded on request."""
    return rounded_to_bfloat16(array) if _rounds.get() and array.dtype == np.float32 else array
