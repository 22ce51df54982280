"""torchvision's operators, against references written from their definitions."""

from typing import Any

from tests.golden import vision_reference as reference
from tests.golden.case import Input, LayerCase, f32

_DEFORMABLE = "torchvision.ops.DeformConv2d"
_REGIONS = "torchvision.ops.RoIAlign"


def _pair(value: tuple[int, int]) -> str:
    return f"({value[0]},{value[1]})"


def _deformable(
    name: str,
    *inputs: Input,
    weight: tuple[int, int, int, int],
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    bias: bool = True,
    **options: Any,
) -> LayerCase:
    """Make a case of a deformable convolution; the third input, where there is one, is the mask."""

    def build(torch: Any) -> Any:
        class Convolution(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.conv = torch.nn.Module()
                self.conv.register_buffer("weight", torch.randn(weight))
                self.conv.register_buffer("bias", torch.randn(weight[0]) if bias else None)

            def forward(self, input: Any, offset: Any, mask: Any = None) -> Any:
                tensors = (input, offset, self.conv.weight, self.conv.bias, mask)
                return reference.deform_conv2d(torch, *tensors, stride, padding, dilation)

        return Convolution()

    channels = inputs[0].shape[1]
    params = (
        f"bias={bias} dilation={_pair(dilation)} groups={channels // weight[1]} in_channels={channels}"
        f" kernel_size={_pair((weight[2], weight[3]))} out_channels={weight[0]} padding={_pair(padding)}"
        f" stride={_pair(stride)}"
    )
    graph = _around(f"{_DEFORMABLE} conv {len(inputs)} 1 {_names(inputs)} out {params}", inputs)
    return LayerCase(_DEFORMABLE, name, build, inputs, graph=graph, **options)


def _names(inputs: tuple[Input, ...]) -> str:
    return " ".join(f"in_{index}" for index in range(len(inputs)))


def _around(operator: str, inputs: tuple[Input, ...]) -> str:
    """Put an operator between its inputs and one output."""
    sources = [f"pnnx.Input pnnx_input_{index} 0 1 in_{index}" for index in range(len(inputs))]
    return "\n".join([*sources, operator, "pnnx.Output pnnx_output_0 1 0 out"])


def _regions(
    name: str,
    rois: tuple[tuple[float, ...], ...],
    size: tuple[int, int] = (3, 2),
    scale: float = 1.0,
    ratio: int = 2,
    aligned: bool = False,
) -> LayerCase:
    """Make a case of pooled regions; they are part of the model."""
    inputs = (f32(2, 3, 6, 7),)

    def build(torch: Any) -> Any:
        class Regions(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.rois = torch.nn.Module()
                self.rois.register_buffer("data", torch.tensor(rois).reshape(-1, 5))

            def forward(self, input: Any) -> Any:
                return reference.roi_align(torch, input, self.rois.data, size, scale, ratio, aligned)

        return Regions()

    params = f"aligned={aligned} output_size={_pair(size)} sampling_ratio={ratio} spatial_scale={scale}"
    constant = "pnnx.Attribute rois 0 1 boxes\n"
    graph = constant + _around(f"{_REGIONS} align 2 1 in_0 boxes out {params}", inputs)
    return LayerCase(_REGIONS, name, build, inputs, graph=graph)


_BOXES = (
    (0.0, 0.0, 0.0, 6.0, 5.0),
    (1.0, 1.3, 2.2, 5.1, 4.7),
    (1.0, 2.0, 2.0, 2.1, 2.2),
    (0.0, -3.0, -2.5, 9.0, 8.5),
    (0.0, 6.0, 5.0, 20.0, 20.0),
)

CASES: list[LayerCase] = [
    _deformable("plain", f32(2, 4, 5, 6), f32(2, 18, 3, 4), weight=(3, 4, 3, 3)),
    _deformable(
        "masked", f32(1, 4, 5, 6), f32(1, 18, 3, 4), f32(1, 9, 3, 4, low=0, high=1), weight=(3, 4, 3, 3)
    ),
    _deformable(
        "steps",
        f32(1, 2, 7, 6),
        f32(1, 12, 4, 4),
        weight=(2, 2, 2, 3),
        stride=(2, 1),
        padding=(1, 2),
        dilation=(2, 3),
        bias=False,
    ),
    _deformable(
        "groups",
        f32(2, 4, 4, 5),
        f32(2, 16, 3, 4),
        f32(2, 8, 3, 4),
        weight=(6, 2, 2, 2),
        also=((f32(1, 4, 4, 5), f32(1, 16, 3, 4), f32(1, 8, 3, 4)),),
    ),
    _deformable("far_offsets", f32(1, 2, 4, 4), f32(1, 2, 4, 4, low=-9, high=9), weight=(1, 2, 1, 1)),
    _regions("plain", _BOXES),
    _regions("aligned", _BOXES, aligned=True),
    _regions("adaptive", _BOXES, ratio=0),
    _regions("adaptive_aligned", (*_BOXES, (1.0, 3.0, 3.0, 2.0, 2.0)), ratio=-1, aligned=True),
    _regions("scaled", _BOXES, size=(2, 2), scale=0.5, ratio=3),
    _regions("one_cell", _BOXES, size=(1, 1), ratio=1, aligned=True),
    _regions("none", ()),
]
