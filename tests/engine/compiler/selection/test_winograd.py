"""Which kernel a Winograd convolution gets: with few tiles it reads the filters as they are, and changes no bit."""

from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph
from engine.compiler.kernels.compact_winograd import CompactWinograd
from engine.compiler.kernels.winograd import Winograd
from tests.engine.compiler.kernels.images import numbers
from tests.engine.models import write_model


def _graph(folder: Path, channels: int, threads: int = 1, backend: str = "native") -> RuntimeGraph:
    lines = (
        f"pnnx.Input in0 0 1 x #x=(?,{channels},7,7)f32",
        f"nn.Conv2d conv 1 1 x y in_channels={channels} out_channels={channels} bias=False kernel_size=(3,3) "
        f"stride=(1,1) padding=(1,1) dilation=(1,1) groups=1 padding_mode=zeros @weight=({channels},{channels},3,3)f32",
        "pnnx.Output out0 1 0 y",
    )
    weights = {"conv.weight": numbers(channels, channels, 3, 3, seed=1)}
    graph = RuntimeGraph(write_model(folder, "\n".join(lines), weights), threads=threads, backend=backend)
    graph.build()
    return graph


def _kernel(graph: RuntimeGraph) -> object:
    """Return the one kernel of the program that was compiled last."""
    *_, program = graph._executor._programs._known.values()  # type: ignore[union-attr]
    (kernel,) = [call.kernel for call in program.calls if isinstance(call.kernel, Winograd | CompactWinograd)]
    return kernel


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_one_row_and_many(tmp_path: Path, threads: int) -> None:
    graph, plain = _graph(tmp_path, 64, threads), _graph(tmp_path, 64, backend="numpy")
    x = numbers(16, 64, 7, 7)
    (together,) = graph.forward([x])
    assert isinstance(_kernel(graph), Winograd)
    (expected,) = plain.forward([x])
    np.testing.assert_allclose(together, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())
    (alone,) = graph.forward([x[:1]])
    assert isinstance(_kernel(graph), CompactWinograd)
    np.testing.assert_array_equal(alone, together[:1])


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_threads_share_the_filters(tmp_path: Path, threads: int) -> None:
    graph = _graph(tmp_path, 256, threads)
    x = numbers(1, 256, 7, 7)
    (out,) = graph.forward([x])
    kernel = _kernel(graph)
    assert isinstance(kernel, CompactWinograd)
    assert kernel.chunks == kernel.filter_parts == threads
    (alone,) = _graph(tmp_path, 256).forward([x])
    np.testing.assert_array_equal(out, alone)


def test_large_filters_are_not_kept_transformed(tmp_path: Path) -> None:
    """Transformed for tiles of 4x4 they take four times the model's memory, however many images there are."""
    graph = _graph(tmp_path, 256)
    for images in (1, 16):
        graph.forward([numbers(images, 256, 7, 7)])
        assert isinstance(kernel := _kernel(graph), CompactWinograd)
        assert kernel.packed_sizes[0] <= 4 / 3 * 256 * 256 * 9
