"""Many rows run in parts: each row gets what PyTorch gives it, and the trace shows what ran."""

from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Array, LayerError, RunResult, RunStoppedError, RunTrace, StopSignal, TraceLevel
from service.repository.loaded_model import LoadedModel
from service.repository.row_pieces import RowPieces, cut_rows
from service.repository.rows import run_rows
from service.repository.version_loader import LoadOptions, load_version
from service.repository.warm_up_shapes import input_specs
from tests.cases import check_each
from tests.golden.digits import ROWS, pictures, probabilities
from tests.service.models import add_model

DIGITS = Path(__file__).parents[3] / "models" / "digits"
PICTURES, WANTED = pictures(), probabilities()


def load() -> LoadedModel:
    return load_version("digits", DIGITS, LoadOptions(backend="native"))


@pytest.fixture(scope="module")
def digits() -> LoadedModel:
    return load()


def run(model: LoadedModel, rows: Array, level: TraceLevel = TraceLevel.ON, **more: Any) -> RunResult:
    inputs = {model.graph.inputs[0].operand: rows}
    return run_rows(model, inputs, len(rows), trace=level, **({"stop": StopSignal(None)} | more))


@pytest.fixture
def sizes(digits: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each run of the graph."""
    return sizes_of(digits, monkeypatch)


def sizes_of(digits: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    begun: list[int] = []
    graph_run = digits.graph.run

    def note(inputs: dict[str, Array], **options: Any) -> RunResult:
        begun.append(len(next(iter(inputs.values()))))
        return graph_run(inputs, **options)

    monkeypatch.setattr(digits.graph, "run", note)
    return begun


def test_every_number_of_rows_gets_what_pytorch_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = load()  # other tests have programs compiled for as many rows as they run at once
    sizes = sizes_of(digits, monkeypatch)

    def check(rows: int) -> None:
        sizes.clear()
        result = run(digits, PICTURES[:rows])
        np.testing.assert_allclose(result.outputs[0], WANTED[:rows], rtol=1e-4, atol=1e-6)
        assert result.trace is not None
        assert sum(sizes) >= rows
        if rows > 8:
            assert set(sizes) <= {1, 2, 4, 8}
            assert list(result.trace.pieces) == sizes
        else:
            assert len(sizes) <= 3

    check_each(range(1, ROWS + 1), check)


def cut(model: LoadedModel, pieces: RowPieces | None) -> LoadedModel:
    return replace(model, batching=replace(model.batching, pieces=pieces))


def test_a_part_that_lacks_rows_is_filled_up(digits: LoadedModel, sizes: list[int]) -> None:
    result = run(cut(digits, cut_rows([4], float)), PICTURES[:10])
    assert sizes == [4, 4, 4]
    np.testing.assert_allclose(result.outputs[0], WANTED[:10], rtol=1e-4, atol=1e-6)


def test_rows_run_at_once_where_a_program_for_all_is_at_hand(digits: LoadedModel, sizes: list[int]) -> None:
    digits.graph.prepare(input_specs(digits.graph.inputs, [(11, 1, 28, 28)]))
    result = run(digits, PICTURES[:11])
    assert sizes == [11]
    assert result.trace is not None
    assert result.trace.pieces == ()


@pytest.mark.parametrize(
    "pieces",
    [None, cut_rows([5], float), cut_rows([8], float, max_bytes=1 << 10)],
    ids=["rows are not proved to be independent", "parts are not compiled", "results are too large"],
)
def test_rows_are_run_at_once_elsewhere(
    digits: LoadedModel, sizes: list[int], pieces: RowPieces | None
) -> None:
    result = run(cut(digits, pieces), PICTURES[:19])
    assert sizes[-1] == 19
    np.testing.assert_allclose(result.outputs[0], WANTED[:19], rtol=1e-4, atol=1e-6)


def test_statistics_of_parts_are_those_of_all_rows(digits: LoadedModel, sizes: list[int]) -> None:
    trace = run(digits, PICTURES[:21], TraceLevel.STATISTICS).trace
    assert sizes == [8, 8, 4, 1], "a part that were filled up would count rows twice"
    assert trace is not None
    assert trace.is_observed
    at_once = run(cut(digits, None), PICTURES[:21], TraceLevel.STATISTICS).trace
    assert at_once is not None
    for layer, whole in zip(trace.layers, at_once.layers, strict=True):
        for operand, other in zip(layer.outputs, whole.outputs, strict=True):
            assert operand.statistics is not None
            assert other.statistics is not None
            assert astuple(operand.statistics) == pytest.approx(astuple(other.statistics), rel=1e-4, abs=1e-6)
    (result,) = trace.layers[-2].outputs
    assert result.statistics is not None
    wanted = WANTED[:21]
    assert result.statistics.count == wanted.size
    found = (result.statistics.minimum, result.statistics.maximum, result.statistics.mean)
    assert found == pytest.approx((wanted.min(), wanted.max(), wanted.mean()), rel=1e-3, abs=1e-6)
    assert result.statistics.std == pytest.approx(wanted.std(), rel=1e-4)


def test_captured_rows_of_parts_are_joined(digits: LoadedModel, sizes: list[int]) -> None:
    result = run(digits, PICTURES[:21], TraceLevel.OFF, capture=("31", "5"))
    assert sizes == [8, 8, 4, 1]
    assert result.trace is None
    softmax = result.captured["31"]
    assert isinstance(softmax, np.ndarray)
    np.testing.assert_allclose(softmax, WANTED[:21], rtol=1e-4, atol=1e-6)
    at_once = run(cut(digits, None), PICTURES[:21], TraceLevel.OFF, capture=("31", "5"))
    assert list(result.captured) == ["31", "5"]
    assert set(result.captured_by.values()) == {"native"}
    operand, other = result.captured["5"], at_once.captured["5"]
    assert isinstance(operand, np.ndarray)
    assert isinstance(other, np.ndarray)
    np.testing.assert_allclose(operand, other, rtol=1e-4, atol=1e-4)


SHARED = """
pnnx.Input     in    0 1 0 #0=(?,3)f32
torch.full     w     0 1 1 size=(1,3) fill_value=2.0
pnnx.Expression add  2 1 0 1 2 expr=add(@0,@1)
Tensor.reshape flat  1 1 2 3 shape=(-1)
Tensor.reshape rows  1 1 3 4 shape=(-1,3)
pnnx.Output    out   1 0 4
"""


@pytest.mark.parametrize("name", ["1", "3"])
def test_what_has_no_row_for_each_is_captured_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    add_model(tmp_path, "m", SHARED, config="[batching]\nmax_batch_size = 8\n")
    model = load_version("m", tmp_path / "m", LoadOptions(backend="native", max_batch_size=8))
    assert model.batching.max_batch_size > 1
    sizes = sizes_of(model, monkeypatch)
    rows = np.arange(63, dtype=np.float32).reshape(21, 3)
    result = run(model, rows, TraceLevel.OFF, capture=(name,))
    assert sizes == [21]
    captured = result.captured[name]
    assert isinstance(captured, np.ndarray)
    assert captured.shape == {"1": (1, 3), "3": (63,)}[name]


def test_rows_of_another_shape_than_is_proved_are_never_cut(digits: LoadedModel, sizes: list[int]) -> None:
    with pytest.raises(LayerError):
        run(digits, np.zeros((21, 1, 27, 28), np.float32))
    assert sizes == [21]


def test_a_trace_has_the_sums_of_the_parts(digits: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[RunTrace] = []
    graph_run = digits.graph.run

    def note(inputs: dict[str, Array], **options: Any) -> RunResult:
        result = graph_run(inputs, **options)
        assert result.trace is not None
        traces.append(result.trace)
        return result

    monkeypatch.setattr(digits.graph, "run", note)
    trace = run(digits, PICTURES[:37]).trace
    assert trace is not None
    assert trace.pieces == (8, 8, 8, 8, 4, 1)
    assert [layer.name for layer in trace.layers] == [layer.name for layer in traces[0].layers]
    for place, layer in enumerate(trace.layers):
        parts = [part.layers[place] for part in traces]
        assert layer.duration_us == pytest.approx(sum(part.duration_us for part in parts))
        assert layer.multiply_adds == sum(part.multiply_adds for part in parts)
        assert layer.backend == parts[0].backend
    ends = [layer.start_us + layer.duration_us for layer in trace.layers]
    assert [layer.start_us for layer in trace.layers[1:]] == pytest.approx(ends[:-1])
    assert sum(layer.share for layer in trace.layers) == pytest.approx(1)
    assert trace.total_us >= sum(part.total_us for part in traces)


def test_a_deadline_ends_the_run_between_parts(digits: LoadedModel, sizes: list[int]) -> None:
    signal = StopSignal(None)
    graph_run = digits.graph.run

    def stop_after_two(inputs: dict[str, Array], **options: Any) -> RunResult:
        if len(sizes) == 2:
            signal.stop("enough")
        return graph_run(inputs, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digits.graph, "run", stop_after_two)
        with pytest.raises(RunStoppedError, match="enough"):
            run(digits, PICTURES[:40], stop=signal)
    assert len(sizes) == 3


def test_parts_are_of_the_least_cost_and_the_largest_come_first() -> None:
    dear = cut_rows([1, 2, 4, 8], lambda size: 10.0 + size)
    assert [dear.parts(rows) for rows in (3, 5, 8, 13, 37)] == [(4,), (8,), (8,), (8, 8), (8, 8, 8, 8, 8)]
    cheap = cut_rows([1, 2, 4, 8], lambda size: 0.1 + size)
    assert [cheap.parts(rows) for rows in (3, 5, 8, 13, 37)] == [
        (2, 1),
        (4, 1),
        (8,),
        (8, 4, 1),
        (8, 8, 8, 8, 4, 1),
    ]
    for pieces in (dear, cheap):
        for rows in range(1, 100):
            parts = pieces.parts(rows)
            assert sum(parts) - parts[-1] < rows <= sum(parts)
