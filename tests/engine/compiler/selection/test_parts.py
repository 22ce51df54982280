"""How threads share a layer: evenly, along pixels or filters, and not at all where it takes no time."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph, TensorScale
from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.shapes import ConvShape
from engine.compiler.contraction.staged_convolution import StagedConvolution
from engine.compiler.emit.target import Target, host_target, target_named
from engine.compiler.kernels.depthwise import Depthwise
from engine.compiler.selection.bf16 import product_group
from engine.compiler.selection.call import PARTS_OF_THREAD, parallel_parts
from engine.compiler.selection.int8 import _filter_parts, _tile_chunk
from engine.compiler.selection.machine import Machine
from tests.cases import check_each
from tests.differential.comparison import compiling_for
from tests.differential.rounding import always_rounding
from tests.engine.compiler.emulation import BF16, WIDTHS
from tests.engine.compiler.program.test_int8 import Writer, numbers
from tests.engine.models import make_graph


@pytest.fixture(autouse=True)
def _one_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose for a core's own cache of 1 MiB, whatever this processor has."""
    monkeypatch.setattr("engine.compiler.selection.call.machine_of", Machine)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_parts(threads: int) -> None:
    """A microsecond is not shared, milliseconds are in as many parts for each thread."""
    assert parallel_parts(1e3, threads) == 1
    assert parallel_parts(1e9, threads) == (1 if threads == 1 else threads * PARTS_OF_THREAD)
    assert parallel_parts(1e9, threads, 1) == threads
    for nanoseconds in np.geomspace(1e3, 1e6, 100):
        parts = parallel_parts(float(nanoseconds), threads)
        assert parts <= threads or parts % threads == 0
        assert parts == 1 or nanoseconds / parts >= 3000


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_filters_are_split_evenly(threads: int) -> None:
    """No thread has more than a quarter above its share, however many blocks of filters there are."""
    for shared in (1, threads, 4 * threads):
        for blocks in range(1, 60):
            parts = _filter_parts(blocks, shared, threads)
            assert 1 <= parts <= shared
            if parts > 1:
                chunks = -(-blocks // -(-blocks // parts))
                most = -(-chunks // threads) * -(-blocks // parts)
                assert most <= 1.25 * blocks / threads


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize(("size", "channels"), [(56, 64), (28, 128), (112, 16)])
def test_rows_are_split_evenly(tmp_path: Path, threads: int, size: int, channels: int) -> None:
    """No thread has a row more than another where rows can be divided so."""
    writer, shape = Writer(), (1, channels, size, size)
    writer.input("x", shape)
    writer.convolution("x", "y", (channels, channels, 3, 3), padding=1)
    writer.convolution("y", "z", (channels, 1, 3, 3), padding=1, groups=channels)
    writer.tensors["y"] = TensorScale(0.1, 5)
    writer.add("pnnx.Output", "z", "")
    for kernel in kernels_of(tmp_path / "model", writer, threads, shape):
        if isinstance(kernel, DirectConvolution):
            rows, most = -(-size // kernel.chunk.rows), kernel.chunk.rows
        elif isinstance(kernel, Depthwise) and kernel._parts[1] == 1:
            rows, most = kernel._parts[0], kernel.rows
        else:
            continue
        assert rows >= threads
        assert -(-rows // threads) * most == -(-size // threads)


def kernels_of(folder: Path, writer: Writer, threads: int, x: tuple[int, ...]) -> list[object]:
    """Return the kernels of a program, which gives the bits of numpy's layers."""
    folder.mkdir()
    writer.tensors["x"] = TensorScale(0.05, 3)
    native, plain = writer.graphs(folder, threads)
    given = [numbers(*x)]
    for ours, other in zip(native.forward(given), plain.forward(given), strict=True):
        np.testing.assert_array_equal(ours, other)
    return calls_of(native, threads)


def calls_of(graph: RuntimeGraph, threads: int) -> list[object]:
    """Return the kernels of a graph's only program."""
    (program,) = graph._executor._programs._known.values()  # type: ignore[union-attr]
    assert program.threads == threads
    return [call.kernel for call in program.calls]


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_int8_shares_pixels_or_the_filters_where_weights_are_more(
    tmp_path: Path, threads: int, kernel: int
) -> None:
    in_vectors = replace(host_target(), has_tiles=False)
    for size, channels in ((48, 32), (7, 512)):
        writer = Writer()
        writer.input("x", (1, channels, size, size))
        writer.convolution("x", "y", (channels, channels, kernel, kernel), padding=kernel // 2)
        writer.add("pnnx.Output", "y", "")
        shape = (1, channels, size, size)
        with compiling_for(in_vectors):
            made = kernels_of(tmp_path / f"{size}", writer, threads, shape)
        (found,) = [made for made in made if isinstance(made, DirectConvolution)]
        blocks = found._parts[0]
        pixels = found.chunks // blocks
        has_many_filters = size == 7
        assert (blocks > 1) == (threads > 1 and has_many_filters)
        assert (pixels > 1) == (threads > 1 and not has_many_filters)
        assert threads == 1 or found.chunks % threads == 0


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_depthwise_shares_rows_or_the_channels_where_rows_are_few(tmp_path: Path, threads: int) -> None:
    for size, channels in ((32, 256), (6, 1024)):
        writer = Writer()
        writer.input("x", (1, channels, size, size))
        writer.convolution("x", "y", (channels, 1, 3, 3), padding=1, groups=channels)
        writer.add("pnnx.Output", "y", "")
        made = kernels_of(tmp_path / f"{size}", writer, threads, (1, channels, size, size))
        (found,) = [kernel for kernel in made if isinstance(kernel, Depthwise)]
        rows, vectors = found._parts
        has_rows = size == 32
        assert (rows > 1) == (threads > 1 and has_rows)
        assert (vectors > 1) == (threads > 1 and not has_rows)
        assert found.chunks % threads == 0


def test_groups_that_share_a_vector_are_convolved_together(tmp_path: Path) -> None:
    lanes = host_target().lanes

    def check(depth: int) -> None:
        channels = 16 * depth
        lines = (
            f"pnnx.Input in 0 1 x #x=(1,{channels},9,9)f32",
            f"nn.Conv2d conv 1 1 x y bias=False dilation=(1,1) groups=16 in_channels={channels} "
            f"kernel_size=(3,3) out_channels={channels} padding=(1,1) padding_mode=zeros stride=(1,1) "
            f"@weight=({channels},{depth},3,3)f32",
            "pnnx.Output out 1 0 y",
        )
        folder = tmp_path / f"{depth}"
        folder.mkdir()
        weights = {"conv.weight": numbers(channels, depth, 3, 3)}
        graph = make_graph(folder, "\n".join(lines), weights, backend="native", threads=1)
        graph.forward([numbers(1, channels, 9, 9)])
        kernels = [type(made) for made in calls_of(graph, 1)]
        expected = Depthwise if depth < lanes and lanes % depth == 0 else DirectConvolution
        assert expected in kernels

    check_each((2, 3, 4, 8, 16), check)


def rounded_kernel(folder: Path, target: Target, threads: int, size: int, channels: int) -> StagedConvolution:
    """Return the kernel of a 3x3 convolution in bf16, whose program was not refused."""
    lines = (
        f"pnnx.Input in 0 1 x #x=(1,{channels},{size},{size})f32",
        f"nn.Conv2d conv 1 1 x y bias=False dilation=(1,1) groups=1 in_channels={channels} kernel_size=(3,3) "
        f"out_channels={channels} padding=(1,1) padding_mode=zeros stride=(1,1) "
        f"@weight=({channels},{channels},3,3)f32",
        "pnnx.Output out 1 0 y",
    )
    weights = {"conv.weight": numbers(channels, channels, 3, 3)}
    folder.mkdir()
    with compiling_for(target), always_rounding():
        graph = make_graph(
            folder, "\n".join(lines), weights, backend="native", precision="bf16", threads=threads
        )
        graph.forward([numbers(1, channels, size, size)])
    assert graph.verification.refused == ()
    (found,) = [made for made in calls_of(graph, threads) if isinstance(made, StagedConvolution)]
    return found


@pytest.mark.parametrize("target", [*WIDTHS, *BF16], ids=lambda target: target.name)
@pytest.mark.parametrize("threads", [2, 4])
def test_bf16_splits_rows_evenly(tmp_path: Path, target: Target, threads: int) -> None:
    """Also where the core's own cache asks for more parts than there are threads."""
    found = rounded_kernel(tmp_path / "model", target, threads, size=112, channels=64)
    parts = -(-112 // found.rows)
    assert parts > threads
    assert -(-parts // threads) * found.rows <= 1.1 * 112 / threads


@pytest.mark.parametrize("name", ["avx512", "avx2", "sse", "neon"])
def test_bf16_computes_nothing_in_vain_in_vectors(name: str) -> None:
    """Groups of pixels keep to rows, registers are well used, and few groups are not full."""
    target = target_named(name)

    def check(size: tuple[int, int]) -> None:
        shape = ConvShape(images=1, size=size, channels=64, filters=512, kernel=(3, 3))
        pixels, vectors = product_group(target, shape, size[0])
        assert pixels < size[1] or pixels % size[1] == 0
        assert target.registers // 2 <= pixels * vectors <= target.registers - 2
        lines, length = size if pixels < size[1] else (1, size[0] * size[1])
        blocks = -(-512 // (vectors * target.lanes))
        computed = lines * -(-length // pixels) * pixels * blocks * vectors * target.lanes
        assert computed <= 1.2 * size[0] * size[1] * 512

    check_each([(7, 7), (14, 14), (20, 20), (28, 28), (33, 33), (1, 512), (512, 1)], check)


@pytest.mark.parametrize(("size", "pixels"), [((7, 7), 14), ((13, 13), 13), ((5, 5), 5), ((28, 28), 6)])
def test_bf16_takes_whole_rows_where_parts_of_one_would_leave_registers_unused(
    size: tuple[int, int], pixels: int
) -> None:
    shape = ConvShape(images=1, size=size, channels=64, filters=512, kernel=(3, 3))
    assert product_group(target_named("avx512"), shape, size[0])[0] == pixels


@pytest.mark.parametrize("target", [*WIDTHS, *BF16], ids=lambda target: target.name)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_bf16_shares_rows_or_the_filters_where_weights_are_many(
    tmp_path: Path, target: Target, threads: int
) -> None:
    """However many vectors of filters its kernel multiplies at once."""
    for size, channels in ((48, 32), (7, 512)):
        found = rounded_kernel(tmp_path / f"{size}", target, threads, size, channels)
        blocks, _, rows = found._parts
        has_many_filters = size == 7
        assert blocks == (threads if has_many_filters else 1)
        assert (rows > 1) == (threads > 1 and not has_many_filters)
        assert found.chunks % threads == 0


def test_matrix_registers_are_shared() -> None:
    """All threads have work, and evenly much of it, whatever processor this is: also where an image has one row."""

    def check(case: tuple[int, tuple[int, int], tuple[int, int], bool]) -> None:
        threads, size, kernel, has_more_weights = case
        shape = ConvShape(images=1, size=size, channels=64, filters=256, kernel=kernel)
        rows, blocks = _tile_chunk(shape, 1 << 18, threads, threads, has_more_weights)
        all_blocks = 256 // 32
        row_parts, block_parts = -(-size[0] // rows), -(-all_blocks // blocks)
        assert (block_parts > 1) == (threads > 1 and (has_more_weights or size[0] == 1))
        most = -(-row_parts * block_parts // threads) * rows * blocks
        assert row_parts * block_parts >= threads
        assert most <= 1.25 * size[0] * all_blocks / threads

    sizes = ((14, 14), (56, 56), (1, 512), (1, 3136))
    check_each(product((1, 2, 4), sizes, ((1, 1), (3, 3)), (False, True)), check)
