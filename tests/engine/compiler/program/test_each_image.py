"""Batches of any size by the kernels of one image: which programs serve them, and their results."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph, TensorSpec, TraceLevel
from engine.compiler.emit.jit import general
from engine.compiler.emit.target import Target, host_target
from engine.compiler.memory.weights import PackedStore
from engine.compiler.program import each_image
from engine.compiler.program.dynamic_program import DynamicProgram, MisfitError, dynamic_program
from engine.compiler.program.execution import NativeRun
from engine.compiler.program.program import Program
from engine.compiler.program.verifier import verify
from engine.compiler.selection import Selector
from engine.dtypes import Array
from engine.model.build_clock import UNLIMITED
from engine.model.ports import Port
from engine.run.plan import MAX_RUN_BYTES
from tests.engine.compiler.harness import every_target
from tests.engine.compiler.plans import weights_of
from tests.engine.compiler.program.test_background import settle
from tests.engine.models import make_graph

FLOAT = np.dtype(np.float32)
CONVOLUTION = (
    "bias=True dilation=(1,1) groups={groups} in_channels={taken} kernel_size=({k},{k}) out_channels={given} "
    "padding=({p},{p}) padding_mode=zeros stride=({s},{s}) @bias=({given})f32 @weight=({given},{each},{k},{k})f32"
)


def convolution(
    name: str, x: str, y: str, taken: int, given: int, k: int = 3, s: int = 1, groups: int = 1
) -> str:
    settings = CONVOLUTION.format(
        taken=taken, given=given, k=k, p=k // 2, s=s, groups=groups, each=taken // groups
    )
    return f"nn.Conv2d {name} 1 1 {x} {y} {settings}"


NETWORK = "\n".join(
    (
        "pnnx.Input in 0 1 x #x=(?,3,20,18)f32",
        convolution("c1", "x", "a", 3, 24, s=2),
        "nn.ReLU r1 1 1 a b",
        convolution("c2", "b", "c", 24, 24, groups=24),
        convolution("c3", "c", "d", 24, 24),
        "pnnx.Expression sum 2 1 b d e expr=add(@0,@1)",
        "nn.MaxPool2d p 1 1 e f ceil_mode=False dilation=(1,1) kernel_size=(2,2) padding=(0,0) "
        "return_indices=False stride=(2,2)",
        "nn.Upsample u 1 1 f g align_corners=None mode=nearest scale_factor=(2.0,2.0) size=None",
        convolution("c4", "f", "f2", 24, 5, k=1),
        convolution("c5", "g", "h", 24, 5, k=1),
        "torch.cat cat 2 1 h h i dim=1",
        "nn.AdaptiveAvgPool2d m 1 1 i j output_size=(1,1)",
        "torch.flatten fl 1 1 j k end_dim=-1 start_dim=1",
        "nn.Linear l 1 1 k y bias=False in_features=10 out_features=7 @weight=(7,10)f32",
        "pnnx.Output out 1 0 y",
        "pnnx.Output out2 1 0 f2",
    )
)


def pictures(count: int) -> Array:
    return np.random.default_rng(count).standard_normal((count, 3, 20, 18)).astype(np.float32)


def specs(count: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec((count, 3, 20, 18), FLOAT),)


@pytest.fixture
def graph(tmp_path: Path) -> RuntimeGraph:
    return make_graph(tmp_path, NETWORK, weights_of(NETWORK), backend="native")


def names(ports: Sequence[Port]) -> list[str]:
    return [port.operand for port in ports]


def make(graph: RuntimeGraph, target: Target, threads: int) -> DynamicProgram:
    selector = Selector(target, threads, PackedStore(), is_dynamic=True)
    plans = [graph.plan(specs(count)) for count in (3, 5)]
    return dynamic_program(plans, names(graph.outputs), selector, UNLIMITED)


def outputs(program: Program, x: Array, leaving: Sequence[str]) -> list[Array]:
    """Run a program on pictures."""
    return NativeRun(program, None, False, MAX_RUN_BYTES).execute({"x": x}, leaving)


@every_target
@pytest.mark.parametrize("threads", [1, 2])
def test_each_operator_agrees_with_its_numpy_layer_at_every_batch(
    graph: RuntimeGraph, target: Target, threads: int
) -> None:
    program = make(graph, target, threads)
    for count in (2, 3, 7, 33):
        verdict = verify(
            program.at(graph.plan(specs(count))), specs(count), names(graph.inputs), names(graph.outputs)
        )
        assert verdict.is_checked
        assert verdict.refusal is None


def test_all_batches_share_the_kernels(graph: RuntimeGraph) -> None:
    program = make(graph, host_target(), 1)
    few, many = (program.at(graph.plan(specs(count))) for count in (2, 40))
    assert {general(call.kernel) for call in few.calls} == {general(call.kernel) for call in many.calls}
    assert {id(array) for array in few.constants} == {id(array) for array in many.constants}


def test_a_batch_of_too_many_images_has_a_program_of_its_own(
    graph: RuntimeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make(graph, host_target(), 1)
    monkeypatch.setattr(each_image, "MAX_IMAGES", 8)
    program.at(graph.plan(specs(8)))
    with pytest.raises(MisfitError):
        program.at(graph.plan(specs(9)))


def backends(graph: RuntimeGraph, x: Array) -> set[str]:
    trace = graph.run([x], trace=TraceLevel.ON, waits=False).trace
    assert trace is not None
    return {layer.backend for layer in trace.layers if layer.type == "nn.Conv2d"}


def test_new_batches_run_in_kernels_at_once(
    graph: RuntimeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "engine.compiler.program.hotness.PAYBACK_FACTOR", 0.0
    )  # no batch is worth its own program
    plain = make_graph(tmp_path, NETWORK, weights_of(NETWORK), backend="numpy")
    graph.prepare(specs(1))
    settle()
    for count in (4, 2, 9, 33, 5):
        assert backends(graph, pictures(count)) == {"native"}
        given = graph.run([pictures(count)], waits=False).outputs
        for one, other in zip(given, plain.run([pictures(count)]).outputs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    settle()
    assert graph.verification.refused_count == 0
    assert not graph.is_compiled(specs(4))


def test_a_batch_that_comes_often_is_compiled(graph: RuntimeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.compiler.program.hotness.PAYBACK_FACTOR", float("inf"))
    graph.prepare(specs(1))
    settle()
    assert backends(graph, pictures(4)) == {"native"}
    assert not graph.is_compiled(specs(4))
    graph.run([pictures(4)], waits=False)
    settle()
    assert graph.is_compiled(specs(4))


def test_threads_change_no_bit(graph: RuntimeGraph) -> None:
    one, three = (make(graph, host_target(), threads) for threads in (1, 3))
    for count in (2, 5, 12):
        plan, x = graph.plan(specs(count)), pictures(count)
        single, shared = (outputs(made.at(plan), x, names(graph.outputs)) for made in (one, three))
        for a, b in zip(single, shared, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_batch_in_float32_is_compiled_where_nothing_would_be_rounded(
    graph: RuntimeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Selector, "rounds", lambda *_: False)
    test_a_batch_that_comes_often_is_compiled(graph, monkeypatch)
