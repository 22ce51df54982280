"""Programs for inputs of all lengths: which models have them, and how many of them a graph keeps."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph, TraceLevel
from engine.compiler.program import dynamic_programs
from tests.engine.compiler.plans import weights_of
from tests.engine.compiler.program.test_background import settle
from tests.engine.models import make_graph

TOLERANCE = 1e-5


def both(folder: Path, text: str) -> tuple[RuntimeGraph, RuntimeGraph]:
    """Return a model's graph, and that of its reference layers."""
    compiled, plain = (
        make_graph(folder, text, weights_of(text), backend=name) for name in ("native", "numpy")
    )
    return compiled, plain


ROWS = "pnnx.Input in 0 1 x #x=(1,?,6)f32"
LINEAR = "nn.Linear l 1 1 x y bias=False in_features=6 out_features=6 @weight=(6,6)f32"
END = "pnnx.Output out 1 0 y"
REFUSED = {
    "a kernel of its own for each length": (
        ROWS,
        "nn.LSTM l 1 1 x y batch_first=True bidirectional=False bias=False hidden_size=6 input_size=6 num_layers=1 "
        "proj_size=0 outputs=output @weight_hh_l0=(24,6)f32 @weight_ih_l0=(24,6)f32",
        END,
    ),
    "a number that follows from the length": (
        ROWS,
        "pnnx.Expression size 1 1 x n expr=size(@0,1)",
        "pnnx.Expression scale 2 1 x n y expr=div(@0,@1)",
        END,
    ),
}


@pytest.mark.parametrize("lines", REFUSED.values(), ids=REFUSED.keys())
def test_models_without_an_open_program_are_compiled_for_each_length(
    lines: Sequence[str], tmp_path: Path
) -> None:
    text = "\n".join(lines)
    graph, plain = both(tmp_path, text)
    for length in (3, 20, 21, 50, 20):
        x = np.random.default_rng(length).standard_normal((1, length, 6)).astype(np.float32)
        np.testing.assert_allclose(graph.run([x]).outputs[0], plain.run([x]).outputs[0], atol=TOLERANCE)
    assert graph.verification.refused_count == 0
    assert graph.compilation.compiled == 4


def test_one_row_and_several_have_dynamic_programs_of_their_own(tmp_path: Path) -> None:
    text = "\n".join(("pnnx.Input in 0 1 x #x=(?,?,6)f32", LINEAR, END))
    graph, plain = both(tmp_path, text)
    for rows in (1, 3, 2):
        for length in (9, 12, 40, 41):
            x = np.random.default_rng(length).standard_normal((rows, length, 6)).astype(np.float32)
            np.testing.assert_allclose(graph.run([x]).outputs[0], plain.run([x]).outputs[0], atol=TOLERANCE)
    assert graph.compilation.compiled == 4


def test_more_families_than_there_are_places_are_not_compiled_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamic_programs, "MAX_DYNAMIC", 1)
    text = "\n".join(("pnnx.Input in 0 1 x #x=(?,?,6)f32", LINEAR, END))
    graph, plain = both(tmp_path, text)

    def serve(lengths: Sequence[int], numbers: Sequence[int]) -> None:
        for length in lengths:
            for rows in numbers:
                x = np.random.default_rng(length).standard_normal((rows, length, 6)).astype(np.float32)
                outputs = graph.run([x], waits=False).outputs
                np.testing.assert_allclose(outputs[0], plain.run([x]).outputs[0], atol=TOLERANCE)
                settle()

    serve(range(20, 32), (1, 2, 3, 4))  # no shape comes twice
    assert graph.compilation.compiled == 1
    serve(range(100, 700), (1,))  # by then the others were not used for long
    assert graph.compilation.compiled > 1
    trace = graph.run([np.zeros((1, 699, 6), np.float32)], waits=False, trace=TraceLevel.ON).trace
    assert trace is not None
    assert "native" in {layer.backend for layer in trace.layers}


@pytest.mark.parametrize(
    ("declared", "has_one"),
    [
        ("(1,?,6)", True),
        ("(?,?,6)", True),
        ("(?,4,6)", False),
        ("(1,4,6)", False),
    ],
)
def test_only_lengths_that_the_file_leaves_open_vary(declared: str, has_one: bool, tmp_path: Path) -> None:
    text = "\n".join((f"pnnx.Input in 0 1 x #x={declared}f32", LINEAR, END))
    graph, _ = both(tmp_path, text)
    draw = partial(np.full, fill_value=0.5, dtype=np.float32)
    for length in (3, 20, 21, 50):
        graph.run([draw((1, length, 6))])
    assert graph.compilation.compiled == (2 if has_one else 4)
