"""Pictures of any number and size by kernels with runtime dimensions: which programs serve them, and their results."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph, TensorSpec, TraceLevel
from engine.compiler.emit.jit import general
from engine.compiler.emit.target import Target, host_target
from engine.compiler.memory.weights import PackedStore
from engine.compiler.program.dynamic_program import DynamicProgram, MisfitError, dynamic_program
from engine.compiler.program.verifier import verify
from engine.compiler.selection import Selector
from engine.dtypes import Array
from engine.model.build_clock import UNLIMITED
from engine.model.ports import Port
from tests.engine.compiler.harness import every_target
from tests.engine.compiler.plans import weights_of
from tests.engine.compiler.program.test_background import settle
from tests.engine.compiler.program.test_each_image import convolution
from tests.engine.models import make_graph
from tests.golden.network_data import DATA, arrays
from tests.sanitizer.run import CheckedRun

NETWORK = "\n".join(
    (
        "pnnx.Input in 0 1 x #x=(?,3,?,?)f32",
        convolution("c1", "x", "a", 3, 24, s=2),
        "nn.ReLU r1 1 1 a b",
        convolution("c2", "b", "c", 24, 24, groups=24),
        convolution("c3", "c", "d", 24, 24),
        "pnnx.Expression sum 2 1 b d e expr=add(@0,@1)",
        "nn.SiLU s1 1 1 e e1",
        convolution("c4", "e1", "e2", 24, 40),
        "nn.MaxPool2d p 1 1 e2 f ceil_mode=False dilation=(1,1) kernel_size=(3,3) padding=(1,1) "
        "return_indices=False stride=(2,2)",
        "nn.AvgPool2d q 1 1 e2 f1 ceil_mode=False count_include_pad=False divisor_override=None kernel_size=(3,3) "
        "padding=(1,1) stride=(2,2)",
        "pnnx.Expression sum2 2 1 f f1 f2 expr=add(@0,@1)",
        "nn.Upsample u 1 1 f2 g align_corners=None mode=nearest scale_factor=(2.0,2.0) size=None",
        "nn.Upsample v 1 1 f2 h align_corners=False mode=bilinear scale_factor=(2.0,2.0) size=None",
        "nn.ConvTranspose2d t 1 1 f2 i bias=True dilation=(1,1) groups=1 in_channels=40 kernel_size=(2,2) "
        "out_channels=6 output_padding=(0,0) padding=(0,0) stride=(2,2) @bias=(6)f32 @weight=(40,6,2,2)f32",
        "torch.cat cat 3 1 g h i j dim=1",
        convolution("c5", "j", "k", 86, 5, k=1),
        "nn.AdaptiveAvgPool2d m 1 1 j l output_size=(1,1)",
        "torch.flatten fl 1 1 l n end_dim=-1 start_dim=1",
        "nn.Linear o 1 1 n y bias=False in_features=86 out_features=7 @weight=(7,86)f32",
        "pnnx.Output out 1 0 y",
        "pnnx.Output out2 1 0 k",
    )
)
SIZES = ((2, 28, 36), (3, 64, 20), (5, 20, 44), (2, 132, 100))
TOLERANCE = 1e-4


def picture(count: int, rows: int, columns: int) -> Array:
    return np.random.default_rng(rows).standard_normal((count, 3, rows, columns)).astype(np.float32)


def specs(count: int, rows: int, columns: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec((count, 3, rows, columns), np.dtype(np.float32)),)


@pytest.fixture
def graph(tmp_path: Path) -> RuntimeGraph:
    return make_graph(tmp_path, NETWORK, weights_of(NETWORK), backend="native")


def names(ports: Sequence[Port]) -> list[str]:
    return [port.operand for port in ports]


def make(graph: RuntimeGraph, target: Target, threads: int) -> DynamicProgram:
    selector = Selector(target, threads, PackedStore(), is_dynamic=True, has_dynamic_images=True)
    plans = [graph.plan(specs(*size)) for size in ((3, 96, 160), (5, 224, 288))]
    return dynamic_program(plans, names(graph.outputs), selector, UNLIMITED)


@every_target
@pytest.mark.parametrize("threads", [1, 2])
def test_each_operator_agrees_with_its_numpy_layer_at_every_size(
    graph: RuntimeGraph, target: Target, threads: int
) -> None:
    program = make(graph, target, threads)
    for size in SIZES:
        made = program.at(graph.plan(specs(*size)))
        verdict = verify(made, specs(*size), names(graph.inputs), names(graph.outputs))
        assert verdict.is_checked
        assert verdict.refusal is None


@every_target
def test_kernels_keep_to_what_their_calls_give_them(graph: RuntimeGraph, target: Target) -> None:
    program = make(graph, target, 2)
    for size in ((2, 28, 36), (3, 64, 20)):
        made = program.at(graph.plan(specs(*size)))
        given = CheckedRun(made, target).execute({"x": picture(*size)}, names(graph.outputs))
        plain = graph.run([picture(*size)]).outputs
        for one, other in zip(given, plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE)


def test_all_sizes_share_the_kernels(graph: RuntimeGraph) -> None:
    program = make(graph, host_target(), 1)
    small, large = (program.at(graph.plan(specs(*size))) for size in ((2, 28, 36), (9, 160, 132)))
    assert {general(call.kernel) for call in small.calls} == {general(call.kernel) for call in large.calls}


def test_an_axis_of_one_element_needs_a_program_of_its_own(graph: RuntimeGraph) -> None:
    program = make(graph, host_target(), 1)
    with pytest.raises(MisfitError):
        program.at(graph.plan(specs(2, 4, 4)))


def backends(graph: RuntimeGraph, x: Array) -> set[str]:
    trace = graph.run([x], trace=TraceLevel.ON, waits=False).trace
    assert trace is not None
    return {layer.backend for layer in trace.layers if layer.type == "nn.Conv2d"}


@pytest.mark.parametrize("threads", [1, 2])
def test_new_sizes_run_in_kernels_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr("engine.compiler.program.hotness.PAYBACK_FACTOR", 0.0)  # none has its own program
    graph = make_graph(tmp_path, NETWORK, weights_of(NETWORK), backend="native", threads=threads)
    plain = make_graph(tmp_path, NETWORK, weights_of(NETWORK), backend="numpy")
    graph.prepare(specs(1, 64, 64))
    settle()
    for size in ((1, 32, 32), (1, 100, 36), *SIZES, (33, 24, 28)):
        assert backends(graph, picture(*size)) == {"native"}
        given = graph.run([picture(*size)], waits=False).outputs
        for one, other in zip(given, plain.run([picture(*size)]).outputs, strict=True):
            np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE)
    settle()
    assert graph.verification.refused_count == 0
    assert not graph.is_compiled(specs(1, 100, 36))


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet18", "shufflenet_v2", "unet", "unet_bilinear"])
def test_networks_at_sizes_of_their_own_agree_with_pytorch(name: str) -> None:
    param = DATA / name / f"{name}.pnnx.param"
    graph = RuntimeGraph(param, backend="native")
    graph.build()
    inputs, outputs = arrays(name, "other", "in"), arrays(name, "other", "out")
    graph.prepare([TensorSpec(array.shape, array.dtype) for array in arrays(name, "file", "in")])
    settle()
    result = graph.run(inputs, trace=TraceLevel.ON, waits=False)
    assert result.trace is not None
    assert "native" in {layer.backend for layer in result.trace.layers}
    for one, other in zip(result.outputs, outputs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * abs(other).max())
