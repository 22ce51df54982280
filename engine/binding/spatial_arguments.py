"""Arguments of spatial operators as files give them: values for all axes or one, inputs without a batch, padding."""

from collections.abc import Sequence

from engine.binding.arguments import Ints
from engine.errors import ArgumentError
from engine.kernels.windows import Pairs

PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}
"""`padding_mode` of a convolution -> mode."""

LAYER_MODES = {
    "ConstantPad": "constant",
    "ZeroPad": "constant",
    "ReflectionPad": "reflect",
    "ReplicationPad": "replicate",
    "CircularPad": "circular",
}
"""Name of a padding layer, without its number of axes -> mode."""


def spread(argument: str, values: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return one value for each of `rank` spatial axes, a single value standing for all of them.

    Raises:
        ArgumentError: there are neither one nor `rank` values.
    """
    if len(values) == rank:
        return tuple(values)
    if len(values) == 1:
        return tuple(values) * rank
    raise ArgumentError(argument, f"got {tuple(values)}", f"one int or {rank}")


def add_batch(shape: Sequence[int], rank: int) -> tuple[tuple[int, ...], bool]:
    """Return (batch, channels, *spatial) of an input with or without its batch axis, and whether it lacked one.

    Raises:
        ArgumentError: the input has neither `rank + 2` nor `rank + 1` axes.
    """
    if len(shape) == rank + 2:
        return tuple(shape), False
    if len(shape) == rank + 1:
        return (1, *shape), True
    expected = f"{rank + 2}: (batch, channels, *spatial), or {rank + 1} without batch"
    raise ArgumentError("input", f"has {len(shape)} axes", expected)


def padding_pairs(
    padding: Ints | str,
    mode: str,
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Pairs:
    """Turn PyTorch's padding into (before, after) per axis; `same` puts an odd element after.

    With strides `same` is ONNX's SAME_UPPER, which PyTorch lacks and the exporter writes so: it gives a window to each
    stride that begins in an axis, and depends on the axes' `sizes`.

    Where a mode other than zeros pads unevenly or more than two axes, the exporter writes both sizes of every axis, the
    last axis first; of one axis it writes nothing, and then only `same` is possible.
    """
    if mode != "constant" and padding == ():
        padding = "same"
    if not isinstance(padding, str):
        if mode != "constant" and len(padding) == 2 * len(kernel) > 2:
            return list(zip(padding[-2::-2], padding[::-2], strict=True))
        return [(size, size) for size in spread("padding", padding, len(kernel))]
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding != "same":
        raise ArgumentError("padding", f"got {padding!r}", "ints, 'same' or 'valid'")
    totals = [
        max((-(-size // step) - 1) * step + d * (k - 1) + 1 - size, 0) if step > 1 else d * (k - 1)
        for size, k, step, d in zip(sizes, kernel, stride, dilation, strict=True)
    ]
    return [(total // 2, total - total // 2) for total in totals]
