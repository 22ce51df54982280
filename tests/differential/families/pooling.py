"""Pooling, adaptive pooling, resizing and reductions."""

from typing import Any

from tests.differential.drawing import Drawing
from tests.differential.families.family import family

_WINDOWS = ((2, 2), (3, 3), (1, 3), (5, 5), (3, 2), (1, 1), (13, 13))


def _window(d: Drawing) -> dict[str, Any]:
    window = d.pick(_WINDOWS)
    stride = d.pick((window, (1, 1), (2, 2), (3, 1)))
    padding = (d.number(0, window[0] // 2), d.number(0, window[1] // 2)) if d.chance(0.6) else (0, 0)
    return {"kernel_size": window, "stride": stride, "padding": padding, "ceil_mode": d.chance(0.3)}


@family(4, weight=3)
def max_pool(d: Drawing, x: str) -> None:
    dilation = (1, 1) if d.chance(0.8) else (2, d.number(1, 2))
    given = _window(d) | {"dilation": dilation, "return_indices": False}
    if d.chance(0.5):
        d.add("nn.MaxPool2d", [x], **given)
    else:
        d.add("F.max_pool2d", [x], named=True, **given)


@family(4, weight=3)
def average_pool(d: Drawing, x: str) -> None:
    given = _window(d) | {"count_include_pad": d.chance(0.5)}
    given["divisor_override"] = d.number(1, 9) if d.chance(0.15) else None
    if d.chance(0.5):
        d.add("nn.AvgPool2d", [x], **given)
    else:
        d.add("F.avg_pool2d", [x], named=True, **given)


@family(4, weight=2)
def adaptive_pool(d: Drawing, x: str) -> None:
    size = d.pick(((1, 1), (1, 1), (2, 3), (7, 7), (1, 4), (5, 2), (0, 1)))
    kind = d.pick(("Avg", "Max"))
    given: dict[str, Any] = {"output_size": size} | ({"return_indices": False} if kind == "Max" else {})
    if d.chance(0.5):
        d.add(f"nn.Adaptive{kind}Pool2d", [x], **given)
    else:
        d.add(f"F.adaptive_{kind.lower()}_pool2d", [x], named=True, **given)


@family(4, weight=3)
def resize(d: Drawing, x: str) -> None:
    bilinear = d.chance(0.5)
    given: dict[str, Any] = {"mode": "bilinear" if bilinear else "nearest"}
    given["align_corners"] = d.chance(0.5) if bilinear else None
    if d.chance(0.5):
        factor = d.pick(((2.0, 2.0), (2.0, 2.0), (1.5, 2.5), (0.5, 0.5), (3.0, 1.0), (0.7, 1.3)))
        given |= {"size": None, "scale_factor": factor}
    else:
        given |= {"size": (d.number(1, 20), d.number(1, 20)), "scale_factor": None}
    kind = d.pick(("nn.Upsample", "F.interpolate", "F.upsample", "nearest module", "nearest function"))
    if kind == "F.interpolate":
        recompute = given["scale_factor"] is not None and d.chance(0.3)
        d.add(kind, [x], named=True, **given, recompute_scale_factor=recompute)
    elif kind in ("nn.Upsample", "F.upsample"):
        d.add(kind, [x], named=kind[0] == "F", **given)
    else:
        name = {"nearest module": "nn.UpsamplingNearest2d", "nearest function": "F.upsample_nearest"}[kind]
        d.add(name, [x], size=given["size"], scale_factor=given["scale_factor"])


@family(weight=3)
def reduction(d: Drawing, x: str) -> None:
    rank = d.rank(x)
    axes = [axis - rank if d.chance(0.5) else axis for axis in range(rank) if d.chance(0.5)] or [-1]
    kind = d.pick(("torch.mean", "torch.mean", "torch.sum"))
    if kind == "torch.sum" and d.specs[x].size > 4096:
        return  # such sums are too large to go on with
    d.add(kind, [x], named=True, dim=tuple(axes), keepdim=d.chance(0.6))


@family(3, 4, weight=2)
def gate(d: Drawing, x: str) -> None:
    """Squeeze and excitation: multiply by what the mean over all pixels says."""
    rank = d.rank(x)
    mean = d.add("torch.mean", [x], named=True, dim=tuple(range(2, rank)), keepdim=True)
    scale = d.add("F.sigmoid", mean, named=True) if mean else []
    if scale:
        pair = [x, *scale] if d.chance(0.5) else [*scale, x]
        d.add("pnnx.Expression", pair, expr="mul(@0,@1)")
