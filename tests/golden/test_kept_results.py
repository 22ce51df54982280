"""Results that the exporter drops: what a file does not show is refused or said, never guessed in silence."""

from pathlib import Path

import numpy as np
import pytest

from engine import BuildError, LayerError, RuntimeGraph
from engine.dtypes import Array
from tests.cases import check_each
from tests.golden.case import LayerCase
from tests.golden.cases import families
from tests.golden.data import load

STATED = {
    (family, case.id): case
    for family, cases in families().items()
    for case in cases
    if case.outputs is not None
}


def open_case(
    folder: Path, family: str, case: LayerCase, outputs: str | None
) -> tuple[RuntimeGraph, list[Array], list[Array]]:
    """Open a case's graph, its `outputs=` replaced; return it with inputs and PyTorch's outputs."""
    golden = load(family, case.id, len(case.runs))
    text = golden.param.decode()
    assert f" outputs={case.outputs}" in text
    text = text.replace(f" outputs={case.outputs}", f" outputs={outputs}" if outputs else "")
    (folder / "case.param").write_text(text)
    (folder / "case.bin").write_bytes(golden.bin)
    return RuntimeGraph(folder / "case.param"), *golden.runs[0]


def differ(outputs: list[Array], wanted: list[Array]) -> bool:
    return any(not np.allclose(one, two, atol=1e-5) for one, two in zip(outputs, wanted, strict=True))


def test_file_that_does_not_show_is_refused_or_warned_of(tmp_path: Path) -> None:
    def check(name: tuple[str, str]) -> None:
        family, case = name[0], STATED[name]
        folder = tmp_path / case.id
        folder.mkdir()
        graph, inputs, wanted = open_case(folder, family, case, None)
        refusal = None
        try:
            graph.build()
        except BuildError as error:
            refusal = str(error)
        if refusal is not None:
            assert case.type in refusal
            assert "outputs=" in refusal
            return
        if graph.warnings:
            assert graph.warnings[0].startswith(case.type)
            assert "outputs=" in graph.warnings[0]
        else:
            assert not differ(graph.forward(inputs), wanted)

    check_each(STATED, check)


def case_called(name: str) -> LayerCase:
    return next(case for case in families()["recurrent"] if case.id == name)


@pytest.mark.parametrize(
    "name",
    [
        "nn.LSTM-h_n_c_n_length1_batch2_layers1",
        "nn.LSTM-output_c_n_length1_batch2_layers1",
        "nn.GRU-h_n_length2_batch2_layers2",
        "nn.LSTM-h_n_c_n_output_length1_batch0_layers1",
    ],
)
def test_graph_of_several_meanings_is_not_built(tmp_path: Path, name: str) -> None:
    graph, *_ = open_case(tmp_path, "recurrent", case_called(name), None)
    with pytest.raises(BuildError, match=r"layer: its outputs '1'.* may be .* or .*; expected outputs="):
        graph.build()


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_one_state_is_taken_for_the_hidden_one_with_a_warning(tmp_path: Path, backend: str) -> None:
    graph, inputs, wanted = open_case(
        tmp_path, "recurrent", case_called("nn.LSTM-h_n_length5_batch2_layers1"), None
    )
    graph = RuntimeGraph(graph.param_path, backend=backend)
    graph.build()
    assert not differ(graph.forward(inputs), wanted)
    assert "taken for h_n, and not for c_n" in graph.warnings[0]


@pytest.mark.parametrize(
    "name",
    [
        "nn.LSTM-c_n_length5_batch2_layers1",
        "nn.LSTM-output_c_n_length5_batch2_layers1",
        "nn.LSTM-c_n_length1_batch2_layers1",
    ],
)
def test_a_cell_state_alone_is_warned_of_and_can_be_told(tmp_path: Path, name: str) -> None:
    graph, *_ = open_case(tmp_path, "recurrent", case_called(name), None)
    graph.build()
    assert "c_n, which shapes alone do not determine; write outputs=" in graph.warnings[0]


def test_two_states_are_taken_in_pytorchs_order_with_a_warning(tmp_path: Path) -> None:
    case = case_called("nn.LSTM-h_n_c_n_length5_batch2_layers1")
    graph, inputs, wanted = open_case(tmp_path, "recurrent", case, None)
    graph.build()
    assert not differ(graph.forward(inputs), wanted)
    assert "taken for h_n,c_n" in graph.warnings[0]


@pytest.mark.parametrize(
    "name", ["nn.LSTM-decoder", "nn.LSTM-decoder_of_one_step", "nn.LSTM-chain_of_one_step"]
)
def test_states_that_another_layer_starts_from_are_shown_by_it(tmp_path: Path, name: str) -> None:
    case = case_called(name)
    golden = load("recurrent", case.id, 1)
    (tmp_path / "case.param").write_bytes(golden.param)
    (tmp_path / "case.bin").write_bytes(golden.bin)
    graph = RuntimeGraph(tmp_path / "case.param")
    graph.build()
    assert not differ(graph.forward(golden.runs[0][0]), golden.runs[0][1])
    assert [warning for warning in graph.warnings if "first" in warning]


@pytest.mark.parametrize("kind", ["GRU", "RNN"])
@pytest.mark.parametrize("outputs", ["output", "h_n"])
def test_results_that_are_the_same_after_one_step_are_not_after_more(
    tmp_path: Path, kind: str, outputs: str
) -> None:
    case = case_called(f"nn.{kind}-{outputs}_length1_batch2_layers1")
    graph, inputs, wanted = open_case(tmp_path, "recurrent", case, None)
    graph.build()
    assert not differ(graph.forward(inputs), wanted)
    assert f"nn.{kind} layer" in graph.warnings[0]
    longer = np.concatenate([inputs[0], inputs[0]])
    with pytest.raises(
        LayerError, match="may be output or h_n, which are the same at the declared shapes only"
    ):
        graph.forward([longer])
    reported, *_ = open_case(tmp_path, "recurrent", case, outputs)
    reported.build()
    assert reported.warnings == ()
    assert reported.forward([longer])[0].shape == ((2, 2, 4) if outputs == "output" else (1, 2, 4))


@pytest.mark.parametrize(
    ("outputs", "problem"),
    [
        ("h", "is 'h'; expected 1 of output, h_n, c_n"),
        ("h_n,c_n", "names 2 results; expected 1 of"),
        ("output", r"operand '1' cannot be output: the file declares \(1,2,4\)f32"),
        ("3", "is 3; expected 1 of"),
    ],
)
def test_wrong_statement_is_refused(tmp_path: Path, outputs: str, problem: str) -> None:
    graph, *_ = open_case(tmp_path, "recurrent", case_called("nn.LSTM-c_n_length5_batch2_layers1"), outputs)
    with pytest.raises(BuildError, match=f"nn.LSTM layer, parameter 'outputs'.*{problem}"):
        graph.build()
