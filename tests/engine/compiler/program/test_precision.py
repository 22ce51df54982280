"""Programs that round the operands of products to bfloat16: what they give, and what is said of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Precision, RuntimeGraph, TraceLevel
from engine.compiler.contraction.arithmetic import BF16, FilterPacking
from engine.compiler.contraction.bf16_matmul import Bf16MatrixProduct
from engine.compiler.emit.emitter import Emitter
from engine.compiler.program import loss
from engine.compiler.selection import Selector
from engine.dtypes import Array
from tests.differential.rounding import always_rounding
from tests.engine.models import make_graph
from tests.golden.network_data import DATA, NAMES, arrays

LINES = """
pnnx.Input in 0 1 x #x=(2,20,9,11)f32
nn.Conv2d conv 1 1 x a bias=True dilation=(1,1) groups=1 in_channels=20 kernel_size=(3,3) out_channels=24 \
padding=(1,1) padding_mode=zeros stride=(2,1) @weight=(24,20,3,3)f32 @bias=(24)f32
nn.BatchNorm2d norm 1 1 a b affine=False eps=1e-5 num_features=24 @running_mean=(24)f32 @running_var=(24)f32
nn.ReLU relu 1 1 b c
nn.Linear linear 1 1 c d bias=True in_features=11 out_features=40 @weight=(40,11)f32 @bias=(40)f32
F.softmax softmax 1 1 d e dim=3
pnnx.Output out 1 0 e
""".replace("\\\n", "").strip()


def weights() -> dict[str, Array]:
    random = np.random.default_rng(0)
    shapes = {
        "conv.weight": (24, 20, 3, 3),
        "conv.bias": (24,),
        "norm.running_mean": (24,),
        "linear.weight": (40, 11),
        "linear.bias": (40,),
    }
    made = {name: random.standard_normal(shape).astype(np.float32) * 0.1 for name, shape in shapes.items()}
    return made | {"norm.running_var": random.random(24, np.float32) + np.float32(0.5)}


X = np.random.default_rng(1).standard_normal((2, 20, 9, 11)).astype(np.float32)


@pytest.fixture
def always_rounds() -> Iterator[None]:
    """Round all that can be, whatever this processor takes for it."""
    with always_rounding():
        yield


def opened(folder: Path, **options: Any) -> RuntimeGraph:
    return make_graph(folder, LINES, weights(), backend="native", **options)


@pytest.mark.usefixtures("always_rounds")
def test_precision_of_each_layer_is_reported(tmp_path: Path) -> None:
    graph = opened(tmp_path, precision="bf16")
    trace = graph.run([X], trace=TraceLevel.ON).trace
    assert trace is not None
    assert graph.verification.checked == 1
    assert not graph.verification.refused
    reported = {layer.name: layer.precision for layer in trace.layers}
    rounded = ["conv", "norm", "relu", "linear"]  # what is fused with a product is done in its kernel
    assert reported == {name: "bf16" if name in rounded else "f32" for name in graph.precisions}
    assert graph.precisions == {name: Precision(word) for name, word in reported.items()}


@pytest.mark.usefixtures("always_rounds")
def test_results_are_near_and_the_same_for_all_threads(tmp_path: Path) -> None:
    exact = opened(tmp_path).forward([X])[0]
    alone = opened(tmp_path, precision="bf16").forward([X])[0]
    assert 1e-6 < np.abs(alone - exact).max() < 0.01
    for threads in (2, 3):
        np.testing.assert_array_equal(
            opened(tmp_path, precision="bf16", threads=threads).forward([X])[0], alone
        )


@pytest.mark.usefixtures("always_rounds")
def test_weights_take_half_of_the_memory(tmp_path: Path) -> None:
    sizes = []
    for precision in ("f32", "bf16"):
        graph = opened(tmp_path, precision=precision)
        graph.forward([X])
        known = graph._executor._programs._known  # type: ignore[union-attr]
        (program,) = known.values()
        arguments = [
            call.arguments[1] for call in program.calls if "Convolution" in type(call.kernel).__name__
        ]
        sizes.append(sum(view.size for view in arguments))
    assert sizes[1] < 0.75 * sizes[0]  # with what fills up vectors of filters


@pytest.mark.plants_a_mistake
@pytest.mark.usefixtures("always_rounds")
def test_a_wrong_kernel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One weight of a filter in the place of another makes a difference that verification sees."""
    pack = FilterPacking.pack

    def swapped(self: FilterPacking, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        wrong = weight.copy()
        wrong[3, :2] = weight[3, 1::-1]
        return pack(self, wrong if self.arithmetic == BF16 else weight, bias)

    monkeypatch.setattr(FilterPacking, "pack", swapped)
    graph = opened(tmp_path, precision="bf16")
    graph.forward([X])
    (refusal,) = graph.verification.refused
    assert (refusal.operator, refusal.fused) == ("relu", ("conv", "norm"))
    assert set(graph.precisions.values()) == {Precision.F32}


@pytest.mark.usefixtures("always_rounds")
@pytest.mark.parametrize("name", [name for name in NAMES if "legacy" not in name])
def test_networks_are_near_pytorch(name: str) -> None:
    """Each operand has a relative error of 2^-9 at most; untrained networks pass on what adds up of it."""
    param = DATA / name / f"{name}.pnnx.param"
    for run in ("file", "other"):
        graph = RuntimeGraph(param, backend="native", precision="bf16")
        graph.build()
        outputs = graph.forward(arrays(name, run, "in"))
        assert not graph.verification.refused
        for output, wanted in zip(outputs, arrays(name, run, "out"), strict=True):
            if wanted.dtype.kind == "f":
                assert np.linalg.norm(output - wanted) < 0.25 * np.linalg.norm(wanted) + 1e-6


def test_layers_that_gain_nothing_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Selector, "rounds", lambda *_: False)
    graph = opened(tmp_path, precision="bf16")
    np.testing.assert_allclose(graph.forward([X])[0], opened(tmp_path).forward([X])[0], atol=1e-6)
    assert set(graph.precisions.values()) == {Precision.F32}


@pytest.mark.usefixtures("always_rounds")
@pytest.mark.parametrize(
    ("tolerance", "is_faster", "wanted"), [(0.0, True, "f32"), (0.5, True, "bf16"), (0.5, False, "f32")]
)
def test_auto_takes_what_is_faster_and_loses_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tolerance: float, is_faster: bool, wanted: str
) -> None:
    monkeypatch.setattr(loss, "_is_faster", lambda *_: is_faster)
    graph = opened(tmp_path, precision="auto", tolerance=tolerance)
    graph.forward([X])
    assert graph.precisions["conv"] is Precision(wanted)
    assert not graph.verification.refused


@pytest.mark.parametrize("name", ["vit", "resnet18", "sequence_net"])
def test_what_is_rounded_does_not_depend_on_the_batch(name: str) -> None:
    graph = RuntimeGraph(DATA / name / f"{name}.pnnx.param", backend="native", precision="bf16")
    graph.build()
    reported = []
    inputs = [array[:1] for array in arrays(name, "file", "in")]
    for rows in (1, 8):
        graph.forward([np.repeat(array, rows, axis=0) for array in inputs])
        reported.append(dict(graph.precisions))
    assert reported[0] == reported[1]


def test_loss_is_relative_to_what_is_exact() -> None:
    exact = [np.array([3.0, 4.0], np.float32), np.array([1, 2])]
    assert loss.loss([np.array([3.0, 4.5], np.float32), np.array([1, 2])], exact) == pytest.approx(0.1)
    assert loss.loss([exact[0], np.array([1, 3])], exact) == np.inf
    assert loss.loss([np.array([3.0, np.nan], np.float32), exact[1]], exact) == np.inf
    assert loss.loss([np.zeros(2)], [np.zeros(2)]) == 0


@pytest.mark.usefixtures("always_rounds")
@pytest.mark.parametrize("options", ["is_causal=False", "is_causal=True"])
@pytest.mark.parametrize("expression", ["", "add(@0,@1)", "tanh(sub(@1,@0))"])
def test_attention_is_verified_as_a_whole(tmp_path: Path, options: str, expression: str) -> None:
    """Its layer rounds scores and weights elsewhere than its kernels, and so does what these do after it: the two
    agree in about two digits.
    """
    random = np.random.default_rng(2)
    q, k, v = (random.standard_normal((2, 19, 24)).astype(np.float32) for _ in range(3))
    inputs = [f"pnnx.Input in{name} 0 1 {name} #{name}=(2,19,24)f32" for name in "qkv"]
    line = f"F.scaled_dot_product_attention a 3 1 q k v y {options} $query=q $key=k $value=v"
    after = [f"pnnx.Expression b 2 1 y q z expr={expression}"] if expression else []
    text = "\n".join([*inputs, line, *after, f"pnnx.Output out 1 0 {'z' if after else 'y'}"])
    exact = make_graph(tmp_path, text, backend="native").forward([q, k, v])[0]
    graph = make_graph(tmp_path, text, backend="native", precision="bf16", threads=2)
    np.testing.assert_allclose(graph.forward([q, k, v])[0], exact, atol=0.03)
    assert graph.precisions["a"] is Precision.BF16
    assert not graph.verification.refused
    assert graph.verification.checked == 1


def sharp_attention(folder: Path, after: str, threads: int = 1) -> RuntimeGraph:
    """Return a model whose scores are large: what rounding moves them by changes weights by more than its own part."""
    inputs = [f"pnnx.Input in{name} 0 1 {name} #{name}=(2,19,24)f32" for name in "qkv"]
    scaled = "pnnx.Expression e 1 1 q p expr=mul(@0,16)"
    line = "F.scaled_dot_product_attention a 3 1 p k v y is_causal=False $query=p $key=k $value=v"
    last = [f"F.{after} b 1 1 y z"] if after else []
    text = "\n".join([*inputs, scaled, line, *last, f"pnnx.Output out 1 0 {'z' if after else 'y'}"])
    return make_graph(folder, text, backend="native", precision="bf16", threads=threads)


SHARP = [np.random.default_rng(place).standard_normal((2, 19, 24)).astype(np.float32) for place in range(3)]


@pytest.mark.usefixtures("always_rounds")
@pytest.mark.parametrize("after", ["", "gelu", "silu"])
def test_attention_that_hangs_on_rounding_is_not_refused(tmp_path: Path, after: str) -> None:
    graph = sharp_attention(tmp_path, after, threads=2)
    graph.forward(SHARP)
    assert graph.verification.checked == 1
    assert not graph.verification.refused


BF16_EMIT = Bf16MatrixProduct.emit


def without_the_last_step(self: Bf16MatrixProduct, e: Emitter) -> None:
    """Leave out the last product of each sum."""
    BF16_EMIT(replace(self, shape=replace(self.shape, depth=self.shape.depth - 1)), e)


@pytest.mark.plants_a_mistake
@pytest.mark.usefixtures("always_rounds")
@pytest.mark.parametrize("after", ["", "gelu", "silu"])
def test_attention_that_hangs_on_rounding_is_refused_where_it_is_wrong(
    tmp_path: Path, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bf16MatrixProduct, "emit", without_the_last_step)
    graph = sharp_attention(tmp_path, after)
    graph.forward(SHARP)
    assert graph.verification.refused_count == 1
