"""Quantization, and convolution and matrix products of integers."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, function
from tests.golden.quantized_models import ACTIVATION, quantized_model, with_weight

_EXACT: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-7}
_QUANTIZE = f"scale={ACTIVATION[0]} zero_point={ACTIVATION[1]} dtype=torch.qint8"
"""What the exporter writes for activations: it calls them all qint8, and the operand's declared type shows better."""

_OUTPUT = (0.047, 90)


def _around(operators: str, rank: int) -> str:
    """Put operators that turn `q` into `r` between an input and an output."""
    shape = ",".join("?" * rank)
    return f"""
        pnnx.Input pnnx_input_0 0 1 x
        nn.quantized.Quantize quantize 1 1 x q {_QUANTIZE} #q=({shape})u8
        {operators}
        nn.quantized.DeQuantize dequantize 1 1 r y
        pnnx.Output pnnx_output_0 1 0 y
    """


def _product(
    kind: str,
    name: str,
    shape: tuple[int, ...],
    input: Input,
    *also: Input,
    params: str = "",
    per_channel: bool = True,
    bias: bool = True,
    output: tuple[float, int] = _OUTPUT,
    **options: Any,
) -> LayerCase:
    """Make a case of a quantized module with a weight of some shape."""
    sizes = (shape[1] * options.get("groups", 1), shape[0])
    arguments = (*sizes, shape[2:]) if len(shape) > 2 else sizes

    def build(torch: Any) -> Any:
        module = with_weight(torch, kind, arguments, shape, output, per_channel, bias, **options)
        return quantized_model(torch, {"op": module}, lambda model, item: model.op(item))

    line = f"{kind} op 1 1 q r {params} scale={output[0]} zero_point={output[1]}"
    graph = _around(line, len(input.shape))
    return LayerCase(kind, name, build, (input,), also=tuple((item,) for item in also), graph=graph, **_EXACT)


def _network(torch: Any) -> Any:
    functional = torch.nn.functional

    def run(model: Any, item: Any) -> Any:
        item = functional.max_pool2d(functional.relu(model.conv(item)), 2)
        item = functional.adaptive_avg_pool2d(item, 2).flatten(1)
        return torch.sigmoid(model.linear(item))

    conv = with_weight(torch, "nn.quantized.Conv2d", (3, 4, (3, 3)), (4, 3, 3, 3), _OUTPUT, True, True)
    linear = with_weight(torch, "nn.quantized.Linear", (16, 5), (5, 16), (0.02, 100), True, True)
    return quantized_model(torch, {"conv": conv, "linear": linear}, run)


_NETWORK = """
    nn.quantized.Conv2d conv 1 1 q c scale=0.047 zero_point=90
    nn.ReLU relu 1 1 c d
    nn.MaxPool2d pool 1 1 d e kernel_size=(2,2)
    F.adaptive_avg_pool2d mean 1 1 e f output_size=(2,2)
    torch.flatten flat 1 1 f g start_dim=1 end_dim=-1
    nn.quantized.Linear linear 1 1 g h scale=0.02 zero_point=100
    F.sigmoid sigmoid 1 1 h r
"""


def _residual(torch: Any) -> Any:
    """Make a network of scales at which PyTorch computes exactly.

    Activations are below 128, as its own configuration for FBGEMM has them: that adds pairs of products in 16 bits. Of
    means half-way between two integers, it rounds some before it adds the zero point and some after: here that is even.
    """

    def run(model: Any, item: Any) -> Any:
        first = model.first(item)
        grouped = model.grouped(model.depthwise(first))
        joined = torch.ops.quantized.add_relu(first, grouped, 0.041, 16)
        pooled = torch.nn.functional.avg_pool2d(joined, 2)
        return model.last(pooled.flatten(2).permute(0, 2, 1))

    relu = "nn.intrinsic.quantized.ConvReLU2d"
    modules = {
        "first": with_weight(torch, relu, (3, 32, (3, 3)), (32, 3, 3, 3), (0.06, 3), True, True, stride=2),
        "depthwise": with_weight(
            torch, _CONV, (32, 32, (3, 3)), (32, 1, 3, 3), (0.031, 131), True, True, padding=1, groups=32
        ),
        "grouped": with_weight(
            torch, _CONV, (32, 32, (1, 1)), (32, 8, 1, 1), (0.029, 127), True, True, groups=4
        ),
        "last": with_weight(torch, _LINEAR, (32, 10), (10, 32), (0.052, 121), True, True),
    }
    return quantized_model(torch, modules, run)


_RESIDUAL = """
    nn.intrinsic.quantized.ConvReLU2d first 1 1 q a scale=0.06 zero_point=3 stride=(2,2)
    nn.quantized.Conv2d depthwise 1 1 a b scale=0.031 zero_point=131 padding=(1,1) groups=32
    nn.quantized.Conv2d grouped 1 1 b c scale=0.029 zero_point=127 groups=4
    pnnx.custom_op.quantized.add_relu sum 2 1 a c d arg_2=0.041 arg_3=16
    F.avg_pool2d mean 1 1 d e kernel_size=(2,2)
    torch.flatten flat 1 1 e f start_dim=2 end_dim=-1
    Tensor.permute turn 1 1 f g dims=(0,2,1)
    nn.quantized.Linear last 1 1 g r scale=0.052 zero_point=121
"""


def _pointwise(name: str) -> LayerCase:
    """Make a case of a sum or product whose operands have scales of their own, as the exporter writes it."""

    def compute(torch: Any, x: Any, y: Any) -> Any:
        first = torch.quantize_per_tensor(x, *ACTIVATION, torch.quint8)
        second = torch.quantize_per_tensor(y, 0.02, 130, torch.quint8)
        return getattr(torch.ops.quantized, name)(first, second, *_OUTPUT).dequantize()

    inputs = f32(2, 3, 5, 4), f32(2, 3, 5, 4)
    return function(f"pnnx.custom_op.quantized.{name}", "two", compute, *inputs, **_EXACT)


def _joined(torch: Any, x: Any, y: Any) -> Any:
    first = torch.quantize_per_tensor(x, *ACTIVATION, torch.quint8)
    second = torch.quantize_per_tensor(y, 0.02, 130, torch.quint8)
    return torch.ops.quantized.cat([first, second], 1, *_OUTPUT).dequantize()


def _expanded(torch: Any) -> Any:
    """Make what the exporter expands ConvReLU2d to: a convolution without a scale, ReLU, and quantization."""
    conv = with_weight(torch, "nn.quantized.Conv2d", (3, 4, (3, 3)), (4, 3, 3, 3), _OUTPUT, True, True)

    def run(model: Any, item: Any) -> Any:
        real = torch.nn.functional.conv2d(
            item.dequantize(), model.conv.weight().dequantize(), model.conv.bias()
        )
        return torch.quantize_per_tensor(real.relu(), 0.02, 0, torch.quint8)

    return quantized_model(torch, {"conv": conv}, run)


def _cat(torch: Any) -> Any:
    def run(model: Any, *items: Any) -> Any:
        return torch.ops.quantized.cat([*items, items[0]], 1, 0.05, 70)

    return quantized_model(torch, {}, run)


def _round_trip(scale: float, zero_point: int, dtype: str) -> Any:
    def build(torch: Any) -> Any:
        class RoundTrip(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def forward(self, input: Any) -> Any:
                return torch.quantize_per_tensor(input, scale, zero_point, getattr(torch, dtype)).dequantize()

        return RoundTrip()

    return build


def _written(
    kind: str, name: str, scale: float, zero_point: int, dtype: str, reported: str, declared: str
) -> LayerCase:
    """Make a case of quantization, where the file shows a dtype and declares the operand's."""
    graph = f"""
        pnnx.Input pnnx_input_0 0 1 x
        {kind} quantize 1 1 x q scale={scale} zero_point={zero_point} dtype={reported} {declared}
        torch.dequantize dequantize 1 1 q y
        pnnx.Output pnnx_output_0 1 0 y
    """
    inputs = (f32(4, 50, low=-8, high=8),)
    return LayerCase(kind, name, _round_trip(scale, zero_point, dtype), inputs, graph=graph, **_EXACT)


_CONV, _CONV_RELU = "nn.quantized.Conv2d", "nn.intrinsic.quantized.ConvReLU2d"
_LINEAR, _LINEAR_RELU = "nn.quantized.Linear", "nn.intrinsic.quantized.LinearReLU"
_IMAGE = f32(2, 3, 6, 5)

CASES: list[LayerCase] = [
    _written("nn.quantized.Quantize", "declared_u8", 0.043, 57, "quint8", "torch.qint8", "#q=(4,50)u8"),
    _written("nn.quantized.Quantize", "declared_i8", 0.043, -57, "qint8", "torch.qint8", "#q=(4,50)i8"),
    _written("nn.quantized.Quantize", "beyond_i8", 0.043, 130, "quint8", "torch.qint8", ""),
    _written("torch.quantize_per_tensor", "qint8", 0.1, 3, "qint8", "torch.qint8", ""),
    _written("torch.quantize_per_tensor", "quint8", 0.013, 0, "quint8", "torch.quint8", ""),
    _written("torch.quantize_per_tensor", "qint32", 0.001, -7, "qint32", "torch.qint32", ""),
    function(
        "aten::quantize_per_tensor",
        "exported",
        lambda t, x: t.quantize_per_tensor(x, 0.1, 3, t.quint8).dequantize(),
        f32(4, 50, low=-8, high=25),
        **_EXACT,
    ),
    function(
        "torch.dequantize",
        "tensors",
        lambda t, x: t.dequantize(t.quantize_per_tensor(x, t.tensor(0.25), t.tensor(3), t.qint8)),
        f32(4, 50, low=-8, high=8),
        **_EXACT,
    ),
    LayerCase(
        "nn.quantized.DeQuantize",
        "plain",
        _round_trip(*ACTIVATION, "quint8"),
        (_IMAGE,),
        graph=_around("nn.Dropout drop 1 1 q r", 4),
        **_EXACT,
    ),
    _product(_CONV, "plain", (4, 3, 3, 3), _IMAGE, f32(1, 3, 4, 7)),
    _product(_CONV, "per_tensor", (4, 3, 3, 3), _IMAGE, per_channel=False),
    _product(_CONV, "no_bias", (4, 3, 1, 1), _IMAGE, bias=False),
    _product(
        _CONV,
        "all",
        (4, 2, 3, 2),
        f32(1, 4, 9, 8),
        params="stride=(2,1) padding=(2,1) dilation=(2,3) groups=2",
        stride=(2, 1),
        padding=(2, 1),
        dilation=(2, 3),
        groups=2,
    ),
    _product(
        _CONV,
        "depthwise",
        (4, 1, 3, 3),
        f32(2, 4, 5, 6),
        params="padding=(1,1) groups=4",
        padding=1,
        groups=4,
    ),
    _product(_CONV, "saturated", (4, 3, 3, 3), f32(1, 3, 5, 5, low=-9, high=9), output=(0.02, 200)),
    _product(_CONV_RELU, "plain", (4, 3, 3, 3), _IMAGE, output=(0.02, 0)),
    _product(_CONV_RELU, "zero_point", (4, 3, 3, 3), _IMAGE, output=(0.02, 17)),
    _product(_LINEAR, "plain", (5, 8), f32(3, 8), f32(1, 8)),
    _product(_LINEAR, "per_tensor", (5, 8), f32(3, 8), per_channel=False),
    _product(_LINEAR, "3d", (5, 8), f32(2, 3, 8)),
    _product(_LINEAR, "deep", (3, 700), f32(2, 700), output=(0.3, 120)),
    _product(_LINEAR_RELU, "plain", (5, 8), f32(3, 8), output=(0.02, 0)),
    LayerCase(
        "nn.quantized.cat",
        "three",
        _cat,
        (f32(2, 3, 4), f32(2, 1, 4)),
        graph=f"""
            pnnx.Input pnnx_input_0 0 1 x
            pnnx.Input pnnx_input_1 0 1 z
            nn.quantized.Quantize quantize 1 1 x a {_QUANTIZE} #a=(2,3,4)u8
            nn.quantized.Quantize quantize_1 1 1 z b {_QUANTIZE} #b=(2,1,4)u8
            prim::ListConstruct list 3 1 a b a items
            nn.quantized.cat cat 1 1 items c dim=1 scale=0.05 zero_point=70
            nn.quantized.DeQuantize dequantize 1 1 c y
            pnnx.Output pnnx_output_0 1 0 y
        """,
        **_EXACT,
    ),
    *map(_pointwise, ("add", "add_relu", "mul", "mul_relu")),
    function("nn.quantized.cat", "scales", _joined, f32(2, 3, 5, 4), f32(2, 8, 5, 4), **_EXACT),
    LayerCase(
        _CONV,
        "residual",
        _residual,
        (f32(2, 3, 21, 17),),
        also=((f32(1, 3, 9, 40),), (f32(5, 3, 31, 8),)),
        graph=_around(_RESIDUAL, 4),
        rtol=0,
        atol=0.0521,  # one step: of sums of two tensors whose scales differ, the last digit depends on the order
    ),
    LayerCase(_CONV, "network", _network, (f32(2, 3, 8, 9),), graph=_around(_NETWORK, 4), **_EXACT),
    LayerCase(
        _CONV,
        "expanded",
        _expanded,
        (_IMAGE,),
        graph=_around(
            """
                nn.quantized.Conv2d conv 1 1 q c
                nn.ReLU relu 1 1 c d
                nn.quantized.Quantize out 1 1 d r scale=0.02 zero_point=0 dtype=torch.qint8 #r=(2,4,4,3)u8
            """,
            4,
        ),
        **_EXACT,
    ),
]
