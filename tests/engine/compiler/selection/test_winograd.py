"""Which tile convolutions of 3 x 3 are made of: the fewer pixels, the more the bytes of transformed weights count."""

from pathlib import Path

import pytest

from engine.compiler.emit.target import host_target
from engine.compiler.kernels.winograd import Winograd
from tests.engine.compiler.plans import compiled

_CONV = (
    "nn.Conv2d c 1 1 x y bias=False dilation=(1,1) groups=1 in_channels={0} kernel_size=(3,3) "
    "out_channels={0} padding=(1,1) padding_mode=zeros stride=(1,1) @weight=({0},{0},3,3)f32"
)


@pytest.mark.skipif(host_target().lanes != 16, reason="what is fastest depends on the width of vectors")
@pytest.mark.parametrize(
    ("images", "channels", "size", "outputs"),
    [(1, 64, 7, 2), (8, 64, 7, 4), (1, 128, 28, 4), (1, 512, 7, 0)],
)
def test_tile(tmp_path: Path, images: int, channels: int, size: int, outputs: int) -> None:
    """A few tiles of a small layer, many of it, a large layer, and one with more weights than pixels."""
    lines = (
        f"pnnx.Input in 0 1 x #x=({images},{channels},{size},{size})f32",
        _CONV.format(channels),
        "pnnx.Output out 1 0 y",
    )
    kernels = [call.kernel for call in compiled(tmp_path, *lines).calls]
    found = [kernel.outputs for kernel in kernels if isinstance(kernel, Winograd)]
    assert found == ([outputs] if outputs else [])
