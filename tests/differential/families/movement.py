"""Operators that look at a tensor in another way, and concatenations."""

from math import prod

from tests.differential.drawing import Drawing
from tests.differential.families.family import family

_SAME = (
    *(
        "nn.Dropout",
        "nn.Dropout2d",
        "nn.Dropout3d",
        "nn.AlphaDropout",
        "F.dropout",
        "F.dropoutnd",
        "F.dropout1d",
    ),
    *(
        "F.dropout2d",
        "F.dropout3d",
        "F.alpha_dropout",
        "F.feature_alpha_dropout",
        "torch.clone",
        "Tensor.clone",
    ),
    *("Tensor.contiguous", "Tensor.detach", "Tensor.alias"),
)


@family(weight=1)
def same(d: Drawing, x: str) -> None:
    d.add(d.pick(_SAME), [x])


@family(weight=1)
def convert(d: Drawing, x: str) -> None:
    d.add("Tensor.to", [x], copy=False, dtype="torch.float")


@family(weight=3)
def reshape(d: Drawing, x: str) -> None:
    shape, rank = d.shape(x), d.rank(x)
    start = d.number(0, rank - 1)
    end = d.number(start, rank - 1)
    if d.chance(0.25):
        d.add("torch.flatten", [x], named=True, start_dim=start, end_dim=end)
        return
    if d.chance(0.3):
        factors = [n for n in range(1, shape[start] + 1) if shape[start] % n == 0]
        first = d.pick(factors)
        kind = d.pick(("torch.unflatten", "Tensor.unflatten"))
        if rank < 5:
            d.add(kind, [x], named=True, dim=start, sizes=(first, shape[start] // first))
        return
    size = prod(shape)
    factors = [n for n in range(1, min(size, 64) + 1) if size % n == 0]
    wanted = d.pick(
        ((-1,), (shape[0], -1), (*shape[:-1], 1, -1), (d.pick(factors), -1), (-1, d.pick(factors), 1))
    )
    d.add(d.pick(("Tensor.reshape", "Tensor.view")) if d.chance(0.3) else "Tensor.reshape", [x], shape=wanted)


@family(weight=2)
def merge(d: Drawing, x: str) -> None:
    """Go from images to sequences, or add and drop axes of one element."""
    rank, shape = d.rank(x), d.shape(x)
    if 1 in shape and d.chance(0.5):
        d.add("torch.squeeze", [x], dim=d.pick([axis for axis in range(rank) if shape[axis] == 1]))
    elif rank < 5 and d.chance(0.5):
        d.add("torch.unsqueeze", [x], dim=d.number(0, rank))
    elif rank == 4:
        flat = d.add("torch.flatten", [x], named=True, start_dim=2, end_dim=-1)
        d.add("Tensor.permute", flat, named=True, dims=(0, 2, 1))


@family(weight=4)
def permute(d: Drawing, x: str) -> None:
    rank = d.rank(x)
    if d.chance(0.4):
        d.add("torch.transpose", [x], named=True, dim0=d.number(0, rank - 1), dim1=d.number(-rank, rank - 1))
    elif rank == 2 and d.chance(0.4):
        d.add("torch.t", [x])
    else:
        order: list[int] = []
        while len(order) < rank:
            order.append(d.pick([axis for axis in range(rank) if axis not in order]))
        d.add(d.pick(("Tensor.permute", "torch.permute")), [x], named=True, dims=tuple(order))


@family(weight=4)
def cut(d: Drawing, x: str) -> None:
    shape = d.shape(x)
    axis = d.number(0, len(shape) - 1)
    start = d.number(0, shape[axis] - 1)
    kind = d.pick(("slice", "slice", "select", "narrow", "expand"))
    if kind == "slice":
        end = d.number(start + 1, shape[axis])
        d.add("Tensor.slice", [x], named=True, dim=axis, start=start, end=end, step=d.number(1, 3))
    elif kind == "select" and len(shape) > 1:
        d.add("Tensor.select", [x], named=True, dim=axis, index=start - (shape[axis] if d.chance(0.3) else 0))
    elif kind == "narrow":
        length = d.number(1, shape[axis] - start)
        d.add("torch.narrow", [x], dim=axis, start=start, length=length)
    elif kind == "expand":
        sizes = tuple(d.pick((-1, 3)) if extent == 1 else -1 for extent in shape)
        d.add("Tensor.expand", [x], named=True, sizes=sizes)


@family(weight=3)
def take_apart(d: Drawing, x: str) -> None:
    shape = d.shape(x)
    axis = d.number(0, len(shape) - 1)
    extent = shape[axis]
    kind = d.pick(("chunk", "split", "sections", "tensor_split", "unbind"))
    if kind == "chunk":
        count = d.number(1, min(extent, 4))
        pieces = -(-extent // -(-extent // count))
        d.add("torch.chunk", [x], gives=pieces, named=True, chunks=count, dim=axis)
    elif kind == "split":
        size = d.number(max(1, extent // 4), extent)
        d.add("torch.split", [x], gives=-(-extent // size), split_size_or_sections=size, dim=axis)
    elif kind == "sections" and extent > 1:
        first = d.number(1, extent - 1)
        d.add("torch.split", [x], gives=2, split_size_or_sections=(first, extent - first), dim=axis)
    elif kind == "tensor_split" and extent > 1:
        place = d.number(1, extent - 1)
        d.add("torch.tensor_split", [x], gives=2, indices=(place,), dim=axis)
    elif kind == "unbind" and extent <= 4 and len(shape) > 1:
        d.add("torch.unbind", [x], gives=extent, dim=axis)


@family(weight=5)
def concatenate(d: Drawing, x: str) -> None:
    shape = d.shape(x)
    axis = 1 if len(shape) == 4 and d.chance(0.6) else d.number(0, len(shape) - 1)
    fits = [
        y for y in d.floats() if d.rank(y) == len(shape) and _rest(d.shape(y), axis) == _rest(shape, axis)
    ]
    parts = [x, *(d.pick(fits) for _ in range(d.number(1, 3)))]
    if d.chance(0.5):
        parts.reverse()
    d.add("torch.cat", parts, dim=axis - (len(shape) if d.chance(0.3) else 0))


def _rest(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
