"""A program that gives anything else than the reference layers is not used, and the reason is reported."""

import logging
import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from engine import BuildError, RuntimeGraph, TensorSpec, TraceLevel
from engine.compiler.emit.emitter import Emitter
from engine.compiler.kernels.elementwise import Elementwise
from engine.compiler.kernels.winograd import Winograd
from engine.compiler.program import observation, verifier
from engine.compiler.program.trial import TrialInputs, trial_inputs
from engine.compiler.selection import Selector
from engine.compiler.selection import convolution as selection
from engine.dtypes import Array
from tests.engine.compiler.plans import batch_norm, conv, linear, weights_of
from tests.engine.models import write_model

X = np.random.default_rng(1).standard_normal((2, 3, 9, 10)).astype(np.float32)
LINES = (
    "pnnx.Input in 0 1 x #x=(2,3,9,10)f32",
    conv("first", "x", "a"),
    "nn.ReLU relu 1 1 a b",
    "nn.MaxPool2d pool 1 1 b c ceil_mode=False dilation=(1,1) kernel_size=(2,2) padding=(0,0) "
    "return_indices=False stride=(2,2)",
    "torch.cumprod sums 1 1 c d dim=1 $input=c",
    "pnnx.Expression more 1 1 d e expr=mul(@0,1.5)",
    "pnnx.Output out 1 0 e",
)


def open_graph(
    folder: Path, *lines: str, weights: dict[str, Array] | None = None, **options: object
) -> RuntimeGraph:
    text = "\n".join(lines)
    param = write_model(folder, text, weights or weights_of(text))
    graph = RuntimeGraph(param, backend="native", **options)  # type: ignore[arg-type]
    graph.build()
    return graph


def numpy_outputs(graph: RuntimeGraph, *inputs: Array) -> list[Array]:
    plain = RuntimeGraph(graph.param_path, backend="numpy")
    plain.build()
    return plain.forward(list(inputs))


def backends(graph: RuntimeGraph, *inputs: Array, waits: bool = True) -> set[str]:
    trace = graph.run(list(inputs), trace=TraceLevel.ON, waits=waits).trace
    assert trace is not None
    return {layer.backend for layer in trace.layers}


def test_a_right_program_is_checked_once_and_used(tmp_path: Path) -> None:
    graph = open_graph(tmp_path, *LINES)
    for _ in range(2):
        assert "native" in backends(graph, X)
    assert (graph.verification.checked, graph.verification.refused) == (1, ())
    graph.forward([X[:1]])
    assert graph.verification.checked == 2


def test_verification_can_be_left_out(tmp_path: Path) -> None:
    graph = open_graph(tmp_path, *LINES, verify="off")
    assert "native" in backends(graph, X)
    assert graph.verification.checked == 0


def test_an_unknown_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="verify: 'never' is unknown; expected one of load, always, off"):
        open_graph(tmp_path, *LINES, verify="never")


def shifted_bias(self: Winograd, weight: Array, bias: Array | None) -> tuple[Array, Array]:
    packed, starts = PACK(self, weight, bias)
    starts[1] += 0.05  # one filter of four
    return packed, starts


PACK = Winograd.pack
EMIT = Elementwise.emit


def all_but_the_last_lane(self: Elementwise, e: Emitter) -> None:
    """Leave the last result where it was: what lies there is left over from another tensor."""
    shorter = Elementwise(
        (self.shape[0] - 1,), self.operands, self.out, self.expression, self.transposed_axis
    )
    EMIT(shorter, e)


@pytest.mark.plants_a_mistake
def test_a_wrong_convolution_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Selector, "choose", lambda *_: "winograd")
    monkeypatch.setattr(Winograd, "pack", shifted_bias)
    graph = open_graph(tmp_path, *LINES)
    with caplog.at_level(logging.WARNING):
        assert backends(graph, X) == {"numpy"}
    np.testing.assert_array_equal(graph.forward([X])[0], numpy_outputs(graph, X)[0])
    (refusal,) = graph.verification.refused
    assert (refusal.operator, refusal.type, refusal.fused) == ("relu", "nn.ReLU", ("first",))
    assert refusal.inputs == (TensorSpec((2, 3, 9, 10), np.dtype(np.float32)),)
    assert refusal.difference is not None
    assert 0.001 < refusal.difference < 0.1
    assert "nn.ReLU relu: differs from the reference" in caplog.text
    assert "first" in caplog.text


@pytest.mark.plants_a_mistake
@pytest.mark.parametrize("function", ["log", "sqrt", "acos"])
def test_a_wrong_convolution_is_found_behind_what_takes_no_negative_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setattr(Selector, "choose", lambda *_: "winograd")
    monkeypatch.setattr(Winograd, "pack", shifted_bias)
    expression = f"pnnx.Expression e 1 1 x p expr={function}(@0)"
    lines = ("pnnx.Input in 0 1 x #x=(2,3,9,10)f32", expression, conv("c", "p", "y"), "pnnx.Output out 1 0 y")
    graph = open_graph(tmp_path, *lines)
    graph.forward([np.full_like(X, 0.5)])
    (refusal,) = graph.verification.refused
    assert refusal.operator == "c"


def test_results_that_are_never_finite_are_compared_twice_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def draw(specs: Mapping[str, TensorSpec]) -> Iterator[TrialInputs]:
        for trial in trial_inputs(specs):
            drawn.append(trial)
            yield trial

    monkeypatch.setattr(verifier, "trial_inputs", draw)
    lines = (
        "pnnx.Input in 0 1 x #x=(2,3,9,10)f32",
        "pnnx.Expression e 1 1 x y expr=log(sub(@0,100.0))",
        "pnnx.Output out 1 0 y",
    )
    graph = open_graph(tmp_path, *lines)
    assert "native" in backends(graph, X)
    assert len(drawn) == 2


@pytest.mark.plants_a_mistake
def test_memory_that_nobody_wrote_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Elementwise, "emit", all_but_the_last_lane)
    lines = (
        "pnnx.Input in 0 1 x #x=(2,4)f32",
        "F.silu act 1 1 x a $input=x",
        linear("project", "a", "b"),
        "pnnx.Output out 1 0 b",
    )
    graph = open_graph(tmp_path, *lines)
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    assert backends(graph, x) == {"numpy"}
    (refusal,) = graph.verification.refused
    assert refusal.operator == "act"
    assert "not finite" in refusal.reason


@pytest.mark.plants_a_mistake
@pytest.mark.parametrize("error", [ValueError, IndexError, KeyError, ZeroDivisionError, RuntimeError])
def test_a_compiler_that_fails_leaves_the_model_to_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object) -> int:
        raise error("planted")

    monkeypatch.setattr(Selector, "choose", fail)
    graph = open_graph(tmp_path, *LINES)
    assert backends(graph, X) == {"numpy"}
    (refusal,) = graph.verification.refused
    assert refusal.operator is None
    assert "planted" in refusal.reason


@pytest.mark.plants_a_mistake
def test_a_verification_that_fails_leaves_the_model_to_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> verifier.Verdict:
        raise IndexError("planted")

    monkeypatch.setattr("engine.compiler.program.checker.verify", fail)
    graph = open_graph(tmp_path, *LINES)
    assert backends(graph, X) == {"numpy"}
    (refusal,) = graph.verification.refused
    assert refusal.reason == "verification failed: IndexError: planted"


@pytest.mark.plants_a_mistake
def test_a_program_that_was_not_compared_to_its_end_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observation.RunObserver, "look", lambda *_: None)
    graph = open_graph(tmp_path, *LINES)
    assert backends(graph, X) == {"numpy"}
    (refusal,) = graph.verification.refused
    assert "was not compared" in refusal.reason


@pytest.mark.plants_a_mistake
def test_only_the_latest_refusals_are_kept_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise ValueError("planted")

    monkeypatch.setattr("engine.compiler.program.checker.REFUSALS_KEPT", 2)
    monkeypatch.setattr(Selector, "choose", fail)
    graph = open_graph(tmp_path, *LINES)
    for batch in (1, 2, 3):
        graph.prepare([TensorSpec((batch, 3, 9, 10), np.dtype(np.float32))])
    assert [refusal.inputs[0].shape[0] for refusal in graph.verification.refused] == [2, 3]
    assert graph.verification.refused_count == 3


@pytest.mark.plants_a_mistake
def test_a_rule_that_forgets_the_padding_leaves_the_model_to_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "_padded", lambda _, work: work.x)
    monkeypatch.setattr(Selector, "choose", lambda *_: "direct")
    graph = open_graph(tmp_path, *LINES)
    assert backends(graph, X) == {"numpy"}
    assert "RegionError" in graph.verification.refused[0].reason


ILL_CONDITIONED = [
    ("pnnx.Expression e 1 1 a y expr=floor(mul(@0,1000.0))", "results jump"),
    ("pnnx.Expression e 1 1 a y expr=div(1.0,@0)", "poles"),
    ("pnnx.Expression e 1 1 a y expr=mul(sub(add(@0,30000.0),30000.0),1000.0)", "digits are lost"),
]


@pytest.mark.parametrize(("line", "why"), ILL_CONDITIONED, ids=[why for _, why in ILL_CONDITIONED])
def test_rounding_refuses_no_program(tmp_path: Path, line: str, why: str) -> None:
    lines = ("pnnx.Input in 0 1 x #x=(2,3,90,100)f32", conv("first", "x", "a"), line, "pnnx.Output out 1 0 y")
    graph = open_graph(tmp_path, *lines)
    graph.prepare([TensorSpec((2, 3, 90, 100), np.dtype(np.float32))])
    assert graph.verification.checked == 1
    assert not graph.verification.refused, why


def test_normalization_with_a_large_mean_refuses_no_program(tmp_path: Path) -> None:
    lines = (
        "pnnx.Input in 0 1 x #x=(2,3,30,20)f32",
        conv("first", "x", "a"),
        batch_norm("norm", "a", "y"),
        "pnnx.Output out 1 0 y",
    )
    weights = weights_of("\n".join(lines))
    weights["norm.running_mean"] += 3000
    weights["norm.running_var"] *= 1e-4
    graph = open_graph(tmp_path, *lines, weights=weights)
    graph.prepare([TensorSpec((2, 3, 30, 20), np.dtype(np.float32))])
    assert graph.verification.checked == 1
    assert not graph.verification.refused


def test_identifiers_are_drawn_from_what_tables_have(tmp_path: Path) -> None:
    lines = (
        "pnnx.Input in 0 1 x #x=(2,5)i64",
        "nn.Embedding table 1 1 x a embedding_dim=4 num_embeddings=2 padding_idx=None sparse=False @weight=(2,4)f32",
        linear("project", "a", "y"),
        "pnnx.Output out 1 0 y",
    )
    graph = open_graph(tmp_path, *lines)
    graph.forward([np.ones((2, 5), np.int64)])
    assert (graph.verification.checked, graph.verification.unchecked) == (1, 0)


def test_a_model_that_runs_on_no_trial_input_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier, "trial_inputs", lambda _: iter(()))
    graph = open_graph(tmp_path, *LINES)
    assert "native" in backends(graph, X)
    assert (graph.verification.checked, graph.verification.unchecked) == (0, 1)


def test_verification_keeps_no_more_tensors_than_it_compares(tmp_path: Path) -> None:
    """The memory of a chain of layers, half of which never leave the registers of another's kernel, does not add up."""
    layers = 16
    lines = ["pnnx.Input in 0 1 x0 #x0=(2048,64)f32"]
    for i in range(layers):
        lines.append(
            f"nn.Linear l{i} 1 1 x{i} h{i} bias=True in_features=64 out_features=64 @bias=(64)f32 @weight=(64,64)f32"
        )
        lines.append(f"F.gelu g{i} 1 1 h{i} x{i + 1} $input=h{i}")
    graph = open_graph(tmp_path, *lines, f"pnnx.Output out 1 0 x{layers}")
    tensor = TensorSpec((2048, 64), np.dtype(np.float32))
    tracemalloc.start()
    try:
        assert graph.prepare([tensor]) is not None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert graph.verification.checked == 1
    assert peak < layers * tensor.nbytes
