"""Operators that had no kernel when this was written: they stand between those that have, or get one some day."""

from tests.differential.drawing import Drawing
from tests.differential.families.family import family


@family(weight=2)
def scan(d: Drawing, x: str) -> None:
    rank, shape = d.rank(x), d.shape(x)
    axis = d.number(0, rank - 1)
    kind = d.pick(("cumsum", "flip", "roll", "log_softmax", "amax", "std"))
    if kind == "cumsum" and shape[axis] <= 64:
        d.add("torch.cumsum", [x], named=True, dim=axis)
    elif kind == "flip":
        d.add("torch.flip", [x], named=True, dims=(axis,))
    elif kind == "roll":
        d.add("torch.roll", [x], named=True, dims=(axis,), shifts=(d.number(-3, 3),))
    elif kind == "log_softmax":
        d.add("F.log_softmax", [x], named=True, dim=axis)
    elif kind == "amax":
        d.add("torch.amax", [x], named=True, dim=(axis,), keepdim=d.chance(0.5))
    elif kind == "std" and shape[axis] > 1:
        d.add("torch.std", [x], named=True, dim=(axis,), keepdim=True, unbiased=d.chance(0.5))


@family(weight=2)
def arrange(d: Drawing, x: str) -> None:
    rank, shape = d.rank(x), d.shape(x)
    kind = d.pick(("prelu", "pad", "stack", "softplus"))
    if kind == "prelu" and rank > 1:
        slopes = d.pick((1, shape[1]))
        d.add("nn.PReLU", [x], weights={"weight": (slopes,)}, num_parameters=slopes)
    elif kind == "pad" and rank > 1:
        pads = (d.number(0, 2), d.number(0, 3), d.number(0, 1), d.number(0, 2))
        d.add("F.pad", [x], named=True, mode="constant", pad=pads, value=d.pick((0.0, 0.5)))
    elif kind == "stack" and rank < 5:
        d.add("torch.stack", [x, d.pick(d.alike(x))], dim=d.number(0, rank))
    elif kind == "softplus":
        d.add("nn.Softplus", [x], beta=1.0, threshold=20.0)


@family(weight=1)
def size(d: Drawing, x: str) -> None:
    """Let a number that the shape shows take part."""
    rank = d.rank(x)
    d.add("pnnx.Expression", [x], expr=f"div(@0,size(@0,{d.number(0, rank - 1)}))")
