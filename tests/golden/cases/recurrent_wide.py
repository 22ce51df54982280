"""Recurrent layers with more units than a vector has lanes, and not a multiple of them."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import LayerCase, f32, module


def make(name: str, **options: Any) -> Callable[[Any], Any]:
    """Return what makes nn.NAME of 9 features and 21 units."""
    return lambda nn: getattr(nn, name)(9, 21, **options)


CASES: list[LayerCase] = [
    case
    for name in ("RNN", "GRU", "LSTM")
    for case in (
        module(f"nn.{name}", "wide", make(name), f32(6, 7, 9), also=((f32(1, 1, 9),), (f32(3, 16, 9),))),
        module(
            f"nn.{name}",
            "wide_bidirectional",
            make(name, num_layers=2, bidirectional=True, batch_first=True),
            f32(3, 5, 9),
            also=((f32(1, 11, 9),),),
        ),
    )
]
