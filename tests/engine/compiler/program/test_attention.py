"""Attention, extremes and convolutions of columns as compiled graphs, against numpy."""

import math
from pathlib import Path

import numpy as np
import pytest

from engine.dtypes import Array
from tests.engine.compiler.plans import kinds_of, lowered
from tests.engine.compiler.program.parity import left_to_numpy
from tests.engine.models import make_graph

MASKED = np.zeros((6, 6), np.float32)
MASKED[2], MASKED[:, 5] = -math.inf, -math.inf
"""The third query sees no key, nobody sees the last."""


def numbers(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compare(folder: Path, text: str, weights: dict[str, Array], *inputs: Array) -> list[Array]:
    """Run a graph on both backends and any number of threads; returns the outputs."""
    plain, *compiled = (
        make_graph(folder, text, weights, backend=backend, threads=threads)
        for backend, threads in (("numpy", 1), ("native", 1), ("native", 2), ("native", 3))
    )
    expected = plain.forward(list(inputs))
    first = compiled[0].forward(list(inputs))
    assert left_to_numpy(compiled[0], inputs) == set()
    for output, true in zip(first, expected, strict=True):
        assert (output.shape, output.dtype) == (true.shape, true.dtype)
        np.testing.assert_allclose(output, true, rtol=1e-4, atol=1e-5)
    for graph in compiled[1:]:
        assert all(
            np.array_equal(*pair, equal_nan=True)
            for pair in zip(graph.forward(list(inputs)), first, strict=True)
        )
    return first


def declared(*arrays: Array) -> list[str]:
    return [
        f"pnnx.Input in{place} 0 1 {name} #{name}=({','.join(map(str, array.shape))})f32"
        for place, (name, array) in enumerate(zip("qkvm", arrays, strict=False))
    ]


@pytest.mark.parametrize("options", ["is_causal=False", "is_causal=True", "is_causal=False scale=0.3"])
@pytest.mark.parametrize("leading", [(), (3,), (2, 5), (1, 19)])
def test_scaled_dot_product_attention(tmp_path: Path, leading: tuple[int, ...], options: str) -> None:
    q, k, v = (
        numbers(seed, *leading, length, width) for seed, length, width in ((0, 11, 20), (1, 7, 20), (2, 7, 9))
    )
    line = f"F.scaled_dot_product_attention a 3 1 q k v y {options} $query=q $key=k $value=v"
    lines = [*declared(q, k, v), line, "pnnx.Output out 1 0 y"]
    assert "MatrixProduct" in kinds_of(lowered(tmp_path, *lines))
    compare(tmp_path, "\n".join(lines), {}, q, k, v)


@pytest.mark.parametrize("mask", [MASKED, MASKED[None, None], np.stack([MASKED] * 3), numbers(4, 2, 1, 1, 6)])
def test_query_that_sees_no_key_gets_zeros(tmp_path: Path, mask: Array) -> None:
    q, k, v = (numbers(seed, 2, 3, 6, 8) for seed in range(3))
    line = "F.scaled_dot_product_attention a 4 1 q k v m y $query=q $key=k $value=v $attn_mask=m"
    text = "\n".join([*declared(q, k, v, mask), line, "pnnx.Output out 1 0 y"])
    (output,) = compare(tmp_path, text, {}, q, k, v, mask)
    assert np.isfinite(output).all()
    if mask.shape[-2] > 1:
        assert (output[:, :, 2] == 0).all()


@pytest.mark.parametrize("options", ["is_causal=False", "is_causal=True scale=0.3"])
@pytest.mark.parametrize("leading", [(), (3,), (2, 2)])
def test_long_sequences_are_computed_in_blocks(
    tmp_path: Path, leading: tuple[int, ...], options: str
) -> None:
    """Rows, columns and features that neither blocks nor vectors divide."""
    q, k, v = (
        numbers(seed, *leading, length, width)
        for seed, length, width in ((0, 397, 20), (1, 701, 20), (2, 701, 9))
    )
    line = f"F.scaled_dot_product_attention a 3 1 q k v y {options} $query=q $key=k $value=v"
    lines = [*declared(q, k, v), line, "pnnx.Output out 1 0 y"]
    kinds = kinds_of(lowered(tmp_path, *lines))
    assert "Attention" in kinds
    assert "MatrixProduct" not in kinds
    compare(tmp_path, "\n".join(lines), {}, q, k, v)


def test_masks_of_long_sequences_are_added_to_each_block(tmp_path: Path) -> None:
    q, k, v = (numbers(seed, 2, 3, 600, 8) for seed in range(3))
    mask = numbers(4, 2, 1, 600, 600)
    mask[:, :, 7], mask[..., 5] = -math.inf, -math.inf
    line = "F.scaled_dot_product_attention a 4 1 q k v m y $query=q $key=k $value=v $attn_mask=m"
    text = "\n".join([*declared(q, k, v, mask), line, "pnnx.Output out 1 0 y"])
    (output,) = compare(tmp_path, text, {}, q, k, v, mask)
    assert (output[:, :, 7] == 0).all()


@pytest.mark.parametrize("is_batch_first", [True, False])
@pytest.mark.parametrize("sources", ["q", "q k", "q k v"])
def test_multihead_attention(tmp_path: Path, is_batch_first: bool, sources: str) -> None:
    """Heads find their way back beside each other, whichever axis comes first, with one source or several."""
    names = sources.split()
    shapes = {"q": (2, 9, 24), "k": (2, 5, 24), "v": (2, 5, 24)}
    given = [
        np.ascontiguousarray(numbers(place, *shapes[name]).swapaxes(0, 0 if is_batch_first else 1))
        for place, name in enumerate(names)
    ]
    weights = {
        "a.in_proj_weight": numbers(5, 72, 24) / 5, "a.in_proj_bias": numbers(6, 72),
        "a.out_proj.weight": numbers(7, 24, 24) / 5, "a.out_proj.bias": numbers(8, 24),
    }  # fmt: skip
    attributes = " ".join(
        f"@{name[2:]}=({','.join(map(str, array.shape))})f32" for name, array in weights.items()
    )
    line = (
        f"nn.MultiheadAttention a {len(names)} 1 {sources} y add_bias_kv=False add_zero_attn=False "
        f"batch_first={is_batch_first} bias=True embed_dim=24 kdim=24 num_heads=4 vdim=24 {attributes} "
        "outputs=attn_output"
    )
    lines = [*declared(*given), line, "pnnx.Output out 1 0 y"]
    kinds = kinds_of(lowered(tmp_path, *lines))
    assert kinds.count("Linear") == (2 if len(names) == 1 else 4)
    compare(tmp_path, "\n".join(lines), weights, *given)


@pytest.mark.parametrize("options", ["dim=1 keepdim=False", "dim=-1 keepdim=True"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_without_places(tmp_path: Path, name: str, options: str) -> None:
    x = numbers(0, 3, 17, 5)
    x[1, 2, 3] = math.nan
    lines = [*declared(x), f"torch.{name} m 1 1 q y {options} $input=q", "pnnx.Output out 1 0 y"]
    assert kinds_of(lowered(tmp_path, *lines)) == ["Reduction"]
    compare(tmp_path, "\n".join(lines), {}, x)


def test_extremes_with_places_are_left_to_numpy(tmp_path: Path) -> None:
    lines = [
        *declared(numbers(0, 3, 5)),
        "torch.max m 1 2 q y z dim=1 keepdim=False $input=q",
        "pnnx.Output out 2 0 y z",
    ]
    assert kinds_of(lowered(tmp_path, *lines)) == ["Fallback"]


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "dilation", "groups"),
    [
        ((1, 16, 60, 1), (5, 1), (1, 1), (0, 0), (1, 1), 1),
        ((2, 6, 33, 1), (3, 1), (2, 1), (1, 0), (2, 1), 2),
        ((1, 20, 40, 1), (3, 3), (1, 1), (1, 1), (1, 1), 1),
        ((3, 18, 31, 1), (3, 3), (1, 3), (0, 1), (1, 1), 18),
    ],
)
def test_convolution_of_one_column(
    tmp_path: Path,
    shape: tuple[int, ...],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
) -> None:
    """As fast as one row, which is what it is made of; another tensor is added to all of it."""
    channels, filters = shape[1], 18
    weights = {"c.weight": numbers(1, filters, channels // groups, *kernel)}
    options = " ".join(
        f"{key}=({value[0]},{value[1]})"
        for key, value in (
            ("kernel_size", kernel),
            ("stride", stride),
            ("padding", padding),
            ("dilation", dilation),
        )
    )
    x = numbers(0, *shape)
    rows = (shape[2] + 2 * padding[0] - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    other = numbers(2, shape[0], filters, rows, 1)
    size = f"({filters},{channels // groups},{kernel[0]},{kernel[1]})"
    line = (
        f"nn.Conv2d c 1 1 q z bias=False groups={groups} in_channels={channels} out_channels={filters} "
        f"padding_mode=zeros {options} @weight={size}f32"
    )
    expression = "pnnx.Expression e 2 1 z k y expr=add(@0,@1)"
    text = "\n".join([*declared(x, other), line, expression, "pnnx.Output out 1 0 y"])
    compare(tmp_path, text, weights, x, other)
