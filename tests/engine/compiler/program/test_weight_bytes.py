"""How much memory packed weights take in each precision."""

from pathlib import Path

import numpy as np

from engine import Activation, Quantization, RuntimeGraph, TensorScale
from engine.dtypes import Array
from engine.spec import TensorSpec
from tests.differential.rounding import always_rounding
from tests.engine.models import write_model

LINES = """
pnnx.Input in 0 1 x #x=(1,256,14,14)f32
nn.Conv2d one 1 1 x a in_channels=256 out_channels=512 kernel_size=(1,1) stride=(1,1) padding=(0,0) dilation=(1,1) \
groups=1 bias=True padding_mode=zeros @weight=(512,256,1,1)f32 @bias=(512)f32 #x=(1,256,14,14)f32 #a=(1,512,14,14)f32
nn.Conv2d two 1 1 a b in_channels=512 out_channels=128 kernel_size=(3,3) stride=(2,2) padding=(1,1) dilation=(1,1) \
groups=1 bias=True padding_mode=zeros @weight=(128,512,3,3)f32 @bias=(128)f32 #a=(1,512,14,14)f32 #b=(1,128,7,7)f32
torch.flatten flat 1 1 b c start_dim=1 end_dim=-1 $input=b #b=(1,128,7,7)f32 #c=(1,6272)f32
nn.Linear fc 1 1 c y in_features=6272 out_features=64 bias=True @weight=(64,6272)f32 @bias=(64)f32 \
#c=(1,6272)f32 #y=(1,64)f32
pnnx.Output out 1 0 y
"""
SHAPES = {
    "one.weight": (512, 256, 1, 1),
    "one.bias": (512,),
    "two.weight": (128, 512, 3, 3),
    "two.bias": (128,),
    "fc.weight": (64, 6272),
    "fc.bias": (64,),
}
INPUT = TensorSpec((1, 256, 14, 14), np.dtype(np.float32))


def constant_bytes(graph: RuntimeGraph) -> int:
    graph.build()
    footprint = graph.prepare([INPUT])
    assert footprint is not None
    return footprint.constant_bytes


def test_bfloat16_takes_half_and_int8_a_quarter_of_float32(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weights: dict[str, Array] = {
        name: random.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()
    }
    param = write_model(tmp_path, LINES, weights)
    scales = {name: TensorScale(0.1, 128) for name in ("x", "a", "c")}
    quantization = Quantization(dict.fromkeys(("one", "two", "fc"), Activation.STATIC), scales)
    plain = constant_bytes(RuntimeGraph(param, backend="native"))
    with always_rounding():
        halves = constant_bytes(RuntimeGraph(param, backend="native", precision="bf16"))
    quarters = constant_bytes(RuntimeGraph(param, backend="native", quantization=quantization))
    assert plain >= sum(array.nbytes for array in weights.values())
    assert halves <= 0.51 * plain
    assert quarters <= 0.26 * plain
