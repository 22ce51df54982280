"""The page on operators of one's own: its examples run, and do what it says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import RuntimeGraph, registry
from engine.dtypes import Array
from tests.docs.markdown import blocks
from tests.engine.models import write_model

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "own-operator.md"
EXAMPLES = [block.text for block in blocks(PAGE) if block.language == "python" and not block.marks]


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Array]:
    """The page's model, with weights; what the examples register is taken back."""
    (text,) = [block.text for block in blocks(PAGE) if block.language == "text"]
    draw = np.random.default_rng(1).standard_normal
    shapes = {"conv.bias": (4,), "conv.weight": (4, 3, 3, 3), "gate.weight": (4,)}
    weights = {name: draw(shape, np.float32) for name, shape in shapes.items()}
    write_model(tmp_path, text.split("\n", 2)[2], weights, "gated.pnnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_layers", dict(registry._layers))
    return weights


def test_examples_run_one_after_the_other(
    model: dict[str, Array], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    for example in EXAMPLES:
        exec(compile(example, "own-operator.md", "exec", dont_inherit=True), names)
    shown = capsys.readouterr().out
    assert shown.startswith("1 unsupported operator: gates.Gate gate")
    assert "gate gates.Gate numpy" in shown

    ones = 1 / (1 + np.exp(-np.arange(4, dtype=np.float32)))
    np.testing.assert_allclose(names["y"][0, :, 1, 1], ones, rtol=1e-6)

    x = names["x"]
    inner = captured(x)
    gated = inner * (1 / (1 + np.exp(-inner * model["gate.weight"].reshape(-1, 1, 1))))
    np.testing.assert_allclose(names["output"], np.maximum(gated, 0), rtol=1e-4, atol=1e-5)
    leaking = np.where(gated < 0, gated * np.float32(0.01), gated)
    np.testing.assert_allclose(names["leaking"], leaking, rtol=1e-4, atol=1e-5)

    other = RuntimeGraph("other.pnnx.param")
    other.build()
    squashed = np.tanh(inner)
    wanted = squashed / (1 + np.exp(-squashed * model["gate.weight"].reshape(-1, 1, 1)))
    np.testing.assert_allclose(other(x)[0], wanted, rtol=1e-4, atol=1e-5)


def captured(x: Array) -> Array:
    graph = RuntimeGraph("gated.pnnx.param", backend="numpy")
    graph.build()
    value = graph.run(x, capture=["1"]).captured["1"]
    assert isinstance(value, np.ndarray)
    return value


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_layer_of_the_page_runs_on_every_backend(backend: str) -> None:
    for example in EXAMPLES[1:2]:
        exec(compile(example, "own-operator.md", "exec", dont_inherit=True), {})
    graph = RuntimeGraph("gated.pnnx.param", backend=backend)
    graph.build()
    x = np.random.default_rng(2).standard_normal((1, 3, 8, 8), np.float32)
    (output,) = graph(x)
    plain = RuntimeGraph("gated.pnnx.param", backend="numpy")
    plain.build()
    np.testing.assert_allclose(output, plain(x)[0], rtol=1e-4, atol=1e-5)
    assert (output != 0).any()
