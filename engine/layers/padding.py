"""Padding of the last axes: F.pad, and the modules of one mode and one number of spatial axes each."""

from engine.binding.arguments import Ints, Number
from engine.binding.registry import layer
from engine.binding.spatial_arguments import LAYER_MODES, spread
from engine.dtypes import Array, pnnx_name
from engine.errors import ArgumentError
from engine.kernels.padding import pad, padded_shape
from engine.spec import TensorSpec


def _infer_pad(input: TensorSpec, pad: Ints, mode: str, value: Number | None) -> TensorSpec:
    return input.with_shape(padded_shape(input.shape, pad, mode, _checked_fill(input, mode, value)))


@layer("F.pad", infer=_infer_pad)
def functional_pad(input: Array, pad: Ints, mode: str = "constant", value: Number | None = None) -> Array:
    """Pad (before, after) of the last axis, then of the one before it, and so on; negative pads crop."""
    return _pad(input, pad, mode, _fill(mode, value))


_pad = pad  # the layer's own argument is called `pad`, as in PyTorch


def _fill(mode: str, value: Number | None) -> Number | None:
    """Return the value to pad with; files give 0 to modes that have no use for one."""
    return value if mode == "constant" else None


def _checked_fill(input: TensorSpec, mode: str, value: Number | None) -> Number | None:
    fill = _fill(mode, value)
    if isinstance(fill, complex) and input.dtype.kind != "c":
        raise ArgumentError("value", f"got {fill}", f"a real number for an input of {pnnx_name(input.dtype)}")
    return fill


def _register(type_name: str, mode: str, rank: int) -> None:
    def infer(input: TensorSpec, padding: Ints, value: Number) -> TensorSpec:
        fill = _checked_fill(input, mode, value)
        return input.with_shape(padded_shape(input.shape, spread("padding", padding, 2 * rank), mode, fill))

    @layer(type_name, infer=infer)
    def forward(input: Array, padding: Ints, value: Number = 0) -> Array:
        """Pad the spatial axes in this type's own mode."""
        return pad(input, spread("padding", padding, 2 * rank), mode, _fill(mode, value))


for _name, _mode in LAYER_MODES.items():
    for _rank in (1, 2, 3):
        _register(f"nn.{_name}{_rank}d", _mode, _rank)
