"""Dropout, which the exporter keeps only where it is set not to optimise."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import LayerCase, f32, function, module

PLAIN = {"export": ("optlevel=1",)}
FEATURE_DROPOUT = """
    pnnx.Input   input   0 1 x #x=(2,3,4)f32
    F.dropoutnd  dropout 1 1 x y p=0.5 training=False $input=x #x=(2,3,4)f32 #y=(2,3,4)f32
    pnnx.Output  output  1 0 y #y=(2,3,4)f32
"""


def functional(name: str, **arguments: Any) -> Callable[[Any, Any], Any]:
    """Call torch.nn.functional.NAME(x, …) as it is outside of training."""
    return lambda torch, x: getattr(torch.nn.functional, name)(x, training=False, **arguments)


CASES: list[LayerCase] = [
    module("nn.Dropout", "plain", lambda nn: nn.Dropout(0.3), f32(2, 3), **PLAIN),
    module("nn.Dropout2d", "plain", lambda nn: nn.Dropout2d(), f32(2, 3, 4, 2), **PLAIN),
    module("nn.Dropout3d", "plain", lambda nn: nn.Dropout3d(), f32(2, 3, 2, 4, 2), **PLAIN),
    module("nn.AlphaDropout", "plain", lambda nn: nn.AlphaDropout(), f32(2, 3), **PLAIN),
    function("F.dropout", "plain", functional("dropout", p=0.3), f32(2, 3), **PLAIN),
    function("F.dropoutnd", "1d", functional("dropout1d"), f32(2, 3, 4), graph=FEATURE_DROPOUT),
    function("F.dropout2d", "plain", functional("dropout2d"), f32(2, 3, 4, 2), **PLAIN),
    function("F.dropout3d", "plain", functional("dropout3d"), f32(2, 3, 4, 2, 2), **PLAIN),
    function("F.alpha_dropout", "plain", functional("alpha_dropout"), f32(2, 3), **PLAIN),
    function("F.feature_alpha_dropout", "plain", functional("feature_alpha_dropout"), f32(2, 3), **PLAIN),
]
