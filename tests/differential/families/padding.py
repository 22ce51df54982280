"""Padding of every mode, and activations that are rarer than others."""

from typing import Any

from tests.differential.drawing import Drawing
from tests.differential.families.family import family

_MODES = {"Constant": "constant", "Zero": "constant", "Reflection": "reflect", "Replication": "replicate"}


@family(2, 3, 4, 5, weight=3)
def pad(d: Drawing, x: str) -> None:
    rank, shape = d.rank(x), d.shape(x)
    axes = min(d.pick((1, 2, 3)), max(1, rank - 1))  # without a batch as well
    name = d.pick((*_MODES, "Circular"))
    mode = _MODES.get(name, "circular")
    sizes: list[int] = []
    for axis in range(axes):
        extent = shape[-1 - axis]
        most = min(3, extent - 1) if mode == "reflect" else min(3, extent)
        sizes += [d.number(0, most), d.number(0, most)]
    value = d.pick((0.0, 0.5, -1.0)) if name == "Constant" else 0.0
    if mode == "constant" and d.chance(0.2):
        sizes[0] = -d.number(0, min(2, shape[-1] - 1))  # it crops
    if d.chance(0.3) or rank < 3:
        given: dict[str, Any] = {"value": value if mode == "constant" else None}
        d.add("F.pad", [x], named=True, mode=mode, pad=tuple(sizes), **given)
    else:
        given = {"value": value} if name == "Constant" else {}
        d.add(f"nn.{name}Pad{axes}d", [x], padding=tuple(sizes), **given)


@family(weight=3)
def rare_activation(d: Drawing, x: str) -> None:
    shape = d.shape(x)
    choices: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("CELU", "celu", {"alpha": d.pick((1.0, 0.5))}),
        ("SELU", "selu", {}),
        ("RReLU", "rrelu", {"lower": 0.125, "upper": 0.25}),
        ("Softplus", "softplus", {"beta": d.pick((1.0, 2.0)), "threshold": 20.0}),
        ("LogSigmoid", "logsigmoid", {}),
        ("Softsign", "softsign", {}),
        ("Tanhshrink", "tanhshrink", {}),
        ("Softshrink", "softshrink", {"lambd": 0.5}),
    )
    module, function, given = d.pick(choices)
    if d.chance(0.15) and len(shape) > 1:
        d.add("F.prelu", [x, d.constant((d.pick((1, shape[1])),))])
    elif d.chance(0.5):
        d.add(f"nn.{module}", [x], **given)
    else:
        d.add(f"F.{function}", [x], named=True, **given)


@family(weight=1)
def step(d: Drawing, x: str) -> None:
    """Activations with a step: of numbers that are far from it, since either side of it is right."""
    apart = d.add("pnnx.Expression", [x], expr="mul(max(abs(@0),0.001),0.5)")
    if not apart:
        return
    if d.chance(0.5):
        d.add(*d.pick((("nn.Hardshrink", apart), ("F.hardshrink", apart))), lambd=0.0001)
    else:
        d.add(*d.pick((("nn.Threshold", apart), ("F.threshold", apart))), threshold=0.0001, value=-2.0)
