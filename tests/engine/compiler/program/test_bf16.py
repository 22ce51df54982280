"""Images that programs store in bfloat16: which they are, and that outputs are as if they were float32."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from engine import RuntimeGraph
from engine.compiler.contraction import epilogue
from engine.compiler.emit.bfloat16 import pair_up
from engine.compiler.passes import bf16
from engine.compiler.program import assembler
from engine.dtypes import Array
from tests.differential.rounding import always_rounding
from tests.engine.models import make_graph

CONV = (
    "nn.Conv2d {0} 1 1 {1} {2} bias=True dilation=(1,1) groups=1 in_channels={3} kernel_size=(3,3) out_channels={4} "
    "padding=(1,1) padding_mode=zeros stride=(1,1) @weight=({4},{3},3,3)f32 @bias=({4})f32"
)
UP = (
    "nn.ConvTranspose2d up 1 1 f g bias=True dilation=(1,1) groups=1 in_channels=20 kernel_size=(2,2) "
    "out_channels=6 output_padding=(0,0) padding=(0,0) stride=(2,2) @weight=(20,6,2,2)f32 @bias=(6)f32"
)
LINES = "\n".join(
    (
        "pnnx.Input in 0 1 x #x=(2,5,8,12)f32",
        CONV.format("first", "x", "a", 5, 18),
        "nn.ReLU relu 1 1 a b",
        "nn.MaxPool2d pool 1 1 b c ceil_mode=False dilation=(1,1) kernel_size=(2,2) padding=(0,0) "
        "return_indices=False stride=(2,2)",
        CONV.format("second", "c", "d", 18, 20),
        CONV.format("third", "d", "e", 20, 20),
        "pnnx.Expression sum 2 1 d e f expr=add(@0,@1)",
        UP,
        "torch.cat cat 2 1 g b h dim=1",
        CONV.format("last", "h", "y", 24, 3),
        "pnnx.Output out 1 0 y",
    )
)
SHAPES = {
    "first.weight": (18, 5, 3, 3),
    "first.bias": (18,),
    "second.weight": (20, 18, 3, 3),
    "second.bias": (20,),
    "third.weight": (20, 20, 3, 3),
    "third.bias": (20,),
    "up.weight": (20, 6, 2, 2),
    "up.bias": (6,),
    "last.weight": (3, 24, 3, 3),
    "last.bias": (3,),
}
X = np.random.default_rng(1).standard_normal((2, 5, 8, 12)).astype(np.float32)


@pytest.fixture(autouse=True)
def always_rounds() -> Iterator[None]:
    """Round all that can be, whatever this processor takes for it."""
    with always_rounding():
        yield


def opened(folder: Path, threads: int = 1, verify: str = "load") -> RuntimeGraph:
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal(shape).astype(np.float32) * 0.1 for name, shape in SHAPES.items()}
    return make_graph(
        folder, LINES, weights, backend="native", precision="bf16", threads=threads, verify=verify
    )


def in_pairs(graph: RuntimeGraph) -> set[str]:
    """Return the operands that are stored in bf16."""
    (program,) = graph._executor._programs._known.values()  # type: ignore[union-attr]
    names = {slot: name for name, slot in program.plan.slots.items()}
    return {names[slot] for slot, place in program.observables.by_slot.items() if place.is_bf16}


def output_of(graph: RuntimeGraph) -> Array:
    return np.asarray(graph.forward([X])[0], np.float32)


def test_what_all_readers_round_is_stored_in_pairs(tmp_path: Path) -> None:
    """Not d, which is added to something, nor y, which leaves."""
    graph = opened(tmp_path)
    graph.forward([X])
    assert not graph.verification.refused
    assert graph.verification.checked == 1
    assert in_pairs(graph) == {"b", "c", "f", "g", "h"}


def test_outputs_are_those_of_float32_to_the_bit(tmp_path: Path) -> None:
    with patch.object(assembler, "keep_bf16", lambda *_: None):
        wanted = output_of(opened(tmp_path))
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(output_of(opened(tmp_path, threads)), wanted)


def captured_by(graph: RuntimeGraph, names: list[str]) -> dict[str, Array]:
    captured = graph.run([X], capture=names).captured
    return {name: np.ascontiguousarray(np.asarray(captured[name], np.float32)) for name in names}


def test_captured_numbers_are_those_that_are_stored(tmp_path: Path) -> None:
    names = ["b", "c", "d", "f", "g", "h"]
    captured = captured_by(opened(tmp_path), names)
    with patch.object(assembler, "keep_bf16", lambda *_: None):
        exact = captured_by(opened(tmp_path), names)
    for name in names:
        assert captured[name].shape == exact[name].shape
        if name == "d":
            np.testing.assert_array_equal(captured[name], exact[name])
            continue
        assert not (captured[name].view(np.uint32) & 0xFFFF).any()
        np.testing.assert_allclose(captured[name], exact[name], rtol=2.0**-8, atol=0)


@pytest.mark.plants_a_mistake
def test_pairs_in_the_wrong_order_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epilogue, "pair_up", lambda e, first, second: pair_up(e, second, first))
    graph = opened(tmp_path)
    graph.forward([X])
    assert [refusal.operator for refusal in graph.verification.refused] == ["relu"]


@pytest.mark.plants_a_mistake
def test_pairs_that_are_added_to_something_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No kernel reads them so, even where nothing is verified."""
    monkeypatch.setattr(bf16, "_may_stay", lambda tensor, marked, *_: True)
    graph = opened(tmp_path, verify="off")
    graph.forward([X])
    (refusal,) = graph.verification.refused
    assert "an epilogue of (2, 20, 4, 6) reads (2, 10, 4, 6)" in refusal.reason
