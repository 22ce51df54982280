"""No operand and no parameter makes a layer on quantized tensors fail with anything but the engine's errors."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.dtypes import Array
from engine.spec import QuantizedTensor
from tests.property.trial import arrays, attempt, few, ints, mostly, shapes

SCALES = mostly(st.floats(1e-3, 10), st.sampled_from((0.0, -1.0, 1e-44, 1e300, float("nan"), float("inf"))))
ZERO_POINTS = mostly(st.integers(0, 127), st.integers(-200, 300) | st.just(2**40))


@st.composite
def quantized(draw: st.DrawFn, shape: st.SearchStrategy[tuple[int, ...]]) -> QuantizedTensor:
    """Draw a quantized tensor, rarely of 32-bit integers."""
    dtype = np.dtype(draw(mostly(st.sampled_from(("u1", "i1")), st.just("i4"))))
    limits, rng = np.iinfo(dtype), np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.integers(limits.min, limits.max, draw(shape), endpoint=True).astype(dtype)
    return QuantizedTensor(values, draw(st.floats(1e-3, 10)), draw(st.integers(0, 127)))


def operands(shape: st.SearchStrategy[tuple[int, ...]]) -> st.SearchStrategy[Any]:
    """Draw a quantized tensor, now and then an ordinary one or none at all.

    Not of complex numbers: shape rules refuse many layers those, which numpy would run.
    """
    return mostly(
        quantized(mostly(shape, shapes())), arrays(shapes(), ("f4", "f8", "f2", "i8", "u1")) | st.none()
    )


@st.composite
def weights(draw: st.DrawFn, shape: tuple[int, ...]) -> dict[str, Array]:
    """Draw the attributes of a quantized layer; rarely with something wrong."""
    out = shape[0]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    given = {
        "weight": rng.integers(-128, 128, shape).astype(draw(mostly(st.just("i1"), st.just("f4")))),
        "bias": rng.normal(size=out).astype("f4"),
        "weight.q_per_channel_scales": rng.uniform(0.01, 1, draw(mostly(st.just(out), st.integers(0, 3)))),
        "weight.q_per_channel_zero_points": rng.integers(-9, 9, draw(mostly(st.just(out), st.just(1)))),
    }
    for name in draw(mostly(st.just(["bias"]), st.lists(st.sampled_from(list(given)[1:]), unique=True))):
        del given[name]
    return given


@given(
    st.sampled_from(("nn.quantized.Quantize", "torch.quantize_per_tensor")),
    arrays(shapes()),
    SCALES,
    ZERO_POINTS,
    few(
        dtype=mostly(
            st.sampled_from(("torch.qint8", "torch.quint8", 13)), st.sampled_from(("torch.float", 7))
        )
    ),
)
def test_quantize(type_name: str, real: Array, scale: float, zero_point: int, params: dict[str, Any]) -> None:
    given = attempt(type_name, [real], {"scale": scale, "zero_point": zero_point, **params})
    if given is not None:
        back = attempt("nn.quantized.DeQuantize", [given], {})
        again = attempt(type_name, [back], {"scale": scale, "zero_point": zero_point, **params})
        np.testing.assert_array_equal(again.values, given.values)


@given(st.sampled_from(("nn.quantized.DeQuantize", "torch.dequantize")), operands(shapes()))
def test_dequantize(type_name: str, item: Any) -> None:
    attempt(type_name, [item], {})


@given(
    st.data(),
    st.lists(mostly(st.just(0), st.integers(1, 2)), min_size=0, max_size=3),
    few(dim=mostly(st.integers(-2, 1), st.integers(-4, 4))),
    SCALES,
    ZERO_POINTS,
    st.booleans(),
)
def test_cat(
    data: st.DataObject, odd: list[int], params: dict[str, Any], scale: float, zero_point: int, listed: bool
) -> None:
    shape = data.draw(shapes(2, 2))
    items = [data.draw(quantized(st.just((*shape, *[1] * extra)))) for extra in odd]
    inputs: list[Any] = [tuple(items)] if listed else items
    attempt("nn.quantized.cat", inputs, {"scale": scale, "zero_point": zero_point, **params})


@given(
    st.sampled_from(("nn.quantized.Conv2d", "nn.intrinsic.quantized.ConvReLU2d")),
    st.data(),
    few(
        stride=ints(),
        padding=ints(0, 2),
        dilation=ints(1, 2),
        groups=mostly(st.just(2), st.integers(-1, 3)),
        scale=SCALES,
        zero_point=ZERO_POINTS,
        padding_mode=mostly(st.just("zeros"), st.just("reflect")),
    ),
)
def test_convolution(type_name: str, data: st.DataObject, params: dict[str, Any]) -> None:
    channels = 2 if params.get("groups") == 2 else 4
    kernel = data.draw(mostly(st.tuples(*[st.integers(1, 2)] * 2), shapes(0, 3)))
    item = data.draw(operands(st.tuples(st.integers(0, 2), st.just(4), st.integers(3, 6), st.integers(3, 6))))
    attempt(type_name, [item], params, data.draw(weights((4, channels, *kernel))))


@given(
    st.sampled_from(("nn.quantized.Linear", "nn.intrinsic.quantized.LinearReLU")),
    st.data(),
    few(scale=SCALES, zero_point=ZERO_POINTS),
)
def test_linear(type_name: str, data: st.DataObject, params: dict[str, Any]) -> None:
    item = data.draw(operands(shapes(0, 3).map(lambda shape: (*shape, 4))))
    attempt(type_name, [item], params, data.draw(weights(data.draw(mostly(st.just((3, 4)), shapes(1, 3))))))


@given(
    st.sampled_from(
        ("nn.ReLU", "F.sigmoid", "nn.Tanh", "torch.flatten", "nn.MaxPool2d", "torch.argmax", "torch.cat")
    ),
    operands(shapes(0, 5)),
)
def test_layers_that_know_nothing_of_quantization(type_name: str, item: Any) -> None:
    attempt(type_name, [item], {"kernel_size": 2} if type_name == "nn.MaxPool2d" else {})


@given(
    st.sampled_from(("add", "add_relu", "mul", "mul_relu")),
    st.tuples(*[operands(mostly(st.just((2, 3)), shapes(0, 2)))] * 2),
    SCALES,
    ZERO_POINTS,
)
def test_sums_and_products(name: str, items: tuple[Any, Any], scale: float, zero_point: int) -> None:
    attempt(f"pnnx.custom_op.quantized.{name}", list(items), {"arg_2": scale, "arg_3": zero_point})
