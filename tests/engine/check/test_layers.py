"""`kuiper check --layers` and `--backend`: they look at the program that serves, and find the operator at fault."""

from pathlib import Path

import numpy as np
import pytest

from engine.check import compare_layers
from engine.compiler.graph import EpilogueNode, Linear
from engine.compiler.selection import RULES, Selector
from engine.dtypes import Array
from engine.errors import InputError
from engine.graph import RuntimeGraph
from service.commands.dispatch import run_command
from tests.engine.models import make_graph, write_model

LINES = """
    pnnx.Input in 0 1 a #a=(2,3)f32
    nn.Linear head.first 1 1 a b bias=True in_features=3 out_features=3 @weight=(3,3)f32 @bias=(3)f32
    F.relu act 1 1 b c $input=b
    nn.Linear head.second 1 1 c d bias=True in_features=3 out_features=3 @weight=(3,3)f32 @bias=(3)f32
    nn.Softmax soft 1 1 d e dim=1
    torch.chunk parts 1 2 e f g chunks=2 dim=0 $input=e
    pnnx.Output out 1 0 f
    pnnx.Output out1 1 0 g
"""
X = np.array([[1, -2, 3], [0.5, 4, -1]], np.float32)
FIRST, SECOND = (np.random.default_rng(seed).standard_normal((3, 3)).astype(np.float32) for seed in (0, 1))
BIASES = np.array([[0.1, 0.2, 0.3], [-0.5, 0.25, 1]], np.float32)
WEIGHTS = {
    "head.first.weight": FIRST,
    "head.first.bias": BIASES[0],
    "head.second.weight": SECOND,
    "head.second.bias": BIASES[1],
}


def reference() -> dict[str, Array]:
    b = X @ FIRST.T + BIASES[0]
    c = np.maximum(b, 0)
    d = c @ SECOND.T + BIASES[1]
    e = np.exp(d) / np.exp(d).sum(axis=1, keepdims=True)
    return {"a": X, "b": b, "c": c, "d": d, "e": e, "f": e[:1], "g": e[1:]}


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(write_model(tmp_path, LINES, WEIGHTS))


@pytest.fixture
def wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of the second linear layer reads its bias in another order."""
    rule = RULES[Linear]

    def select_wrong(selector: Selector, node: Linear) -> None:
        if node.bias is not None and np.array_equal(node.bias, BIASES[1]):
            node.bias = node.bias[::-1].copy()
        rule(selector, node)

    monkeypatch.setitem(RULES, Linear, select_wrong)


def save(folder: Path, **arrays: Array) -> str:
    path = folder / "reference.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]  # numpy's own parameters come before
    return str(path)


def operators(**arrays: Array) -> dict[str, Array]:
    """A reference by names of operators, as PyTorch's hooks give it."""
    names = {"b": "head.first", "c": "act", "d": "head.second", "e": "soft", "f": "parts.0", "g": "parts.1"}
    return {names.get(name, name): array for name, array in arrays.items()}


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("spell", [dict, operators])
def test_agreement(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: str, spell: type
) -> None:
    path = save(tmp_path, **spell(**reference()))
    assert run_command(["check", model, "--backend", backend, "--layers", path]) == 0
    printed = capsys.readouterr().out
    count = {"native": 6, "numpy": 7}[backend]  # act is fused into head.first, whose own operand is nowhere
    assert f"layers  {count} operands agree with the reference ({count} computed by {backend})" in printed
    fused = "fused  nn.Linear head.first: compared at the end of the group, F.relu act, operand 'c'"
    assert (fused in printed) == (backend == "native")


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_reference_that_differs(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: str
) -> None:
    arrays = reference()
    arrays |= {name: arrays[name] + 0.5 for name in "bcdefg"}
    assert run_command(["check", model, "--backend", backend, "--layers", save(tmp_path, **arrays)]) == 1
    printed = capsys.readouterr().out
    place = {"native": "F.relu act, operand 'c'", "numpy": "nn.Linear head.first, operand 'b'"}[backend]
    assert f"first divergence  {place}: differs by up to 0.5 (computed by {backend}" in printed
    assert "(1 operands before it agree)" in printed
    assert ("or one that its kernel computes besides: nn.Linear head.first" in printed) == (
        backend == "native"
    )


@pytest.mark.plants_a_mistake
@pytest.mark.usefixtures("wrong_kernel")
@pytest.mark.parametrize("spell", [dict, operators])
def test_layers_finds_a_wrong_kernel(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], spell: type
) -> None:
    path = save(tmp_path, **spell(**reference()))
    assert run_command(["check", model, "--backend", "native", "--layers", path]) == 1
    printed = capsys.readouterr().out
    assert (
        "not used        the compiled program for inputs ((2,3)f32,): nn.Linear head.second: differs"
        in printed
    )
    assert "first divergence  nn.Linear head.second, operand 'd': differs" in printed
    assert run_command(["check", model, "--backend", "numpy", "--layers", path]) == 0


@pytest.mark.plants_a_mistake
@pytest.mark.usefixtures("wrong_kernel")
def test_against_finds_a_wrong_kernel(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs, arrays = tmp_path / "outputs.npz", reference()
    np.savez(outputs, out_0=arrays["f"], out_1=arrays["g"])
    command = [model, "--against", save(tmp_path, a=X), str(outputs), "--backend"]
    assert run_command(["check", *command, "native"]) == 1
    assert run_command(["check", *command, "numpy"]) == 0
    capsys.readouterr()
    assert run_command(["check", *command, "both"]) == 1
    printed = capsys.readouterr().out
    assert "output  f  differs" in printed
    assert "output  f  agrees" in printed
    assert "first difference  nn.Linear head.second, operand 'd'" in printed


@pytest.mark.plants_a_mistake
@pytest.mark.usefixtures("wrong_kernel")
def test_both_backends_find_a_wrong_kernel(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", model, "--backend", "both"]) == 1
    printed = capsys.readouterr().out
    assert "inputs  random, seed 0" in printed
    assert "first difference  nn.Linear head.second, operand 'd': differs" in printed
    assert "computed by native, compared with numpy" in printed


def test_both_backends_agree(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", model, "--backend", "both", "--threads", "2"]) == 0
    assert "backends  6 operands agree with numpy (6 computed by native)" in capsys.readouterr().out


@pytest.mark.plants_a_mistake
def test_wrong_kernel_behind_operands_that_are_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reference has only what the kernel keeps in registers: its end is compared with numpy."""
    model, path = str(write_model(tmp_path, LINES, WEIGHTS)), save(tmp_path, a=X, b=reference()["b"])
    assert run_command(["check", model, "--backend", "native", "--layers", path]) == 0
    printed = capsys.readouterr().out
    assert "fused  nn.Linear head.first, operand 'b': in a kernel's registers only" in printed
    assert (
        "layers  2 operands agree with the reference (1 computed by native, 1 computed by numpy)" in printed
    )
    assert "layers  1 ends of groups computed by native agree with numpy" in printed
    rule = RULES[Linear]

    def select_wrong(selector: Selector, node: EpilogueNode) -> None:
        if isinstance(node, Linear) and node.bias is not None:
            node.bias = node.bias + 1
        rule(selector, node)

    monkeypatch.setitem(RULES, Linear, select_wrong)
    assert run_command(["check", model, "--backend", "native", "--layers", path]) == 1
    assert "first divergence  F.relu act, operand 'c'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["a", "b", "head.frist"],
            "1 of 3 names of the reference are not in the graph: 'head.frist'; near: 'head.first'",
        ),
        (
            ["zzz"],
            "no name of the reference is in the graph: 'zzz'; expected names of operands, or of operators",
        ),
        (["a", "parts"], "'parts': the operator gives 2 operands; expected 'parts.0' or 'parts.1'"),
        (["a", "parts.2"], "1 of 2 names of the reference are not in the graph: 'parts.2'; near: 'parts.0'"),
        (["b"], "the reference lacks input 'a'; add it, or give --against INPUTS OUTPUTS"),
    ],
)
def test_names_that_are_none(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], names: list[str], message: str
) -> None:
    assert run_command(["check", model, "--layers", save(tmp_path, **dict.fromkeys(names, X))]) == 1
    assert message.split("; near", maxsplit=1)[0] in capsys.readouterr().err


def test_near_names_are_reported(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["check", model, "--layers", save(tmp_path, a=X, **{"head.frist": X})])
    assert "'head.frist'; near: 'head.first'" in capsys.readouterr().err


def test_inputs_go_by_their_operators_names(model: str, tmp_path: Path) -> None:
    assert (
        run_command(["check", model, "--layers", save(tmp_path, **{"in": X, "out": reference()["f"]})]) == 0
    )


def test_name_that_two_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """nn.Sequential calls its modules 0, 1 …, and the exporter its operands as well."""
    lines = """
        pnnx.Input in 0 1 0 #0=(1,3)f32
        F.relu 0 1 1 0 1 $input=0
        F.tanh 1 1 1 1 2 $input=1
        pnnx.Output out 1 0 2"""
    model, x = str(write_model(tmp_path, lines)), X[:1]
    given = {"in": x, "2": np.tanh(np.maximum(x, 0))}
    assert run_command(["check", model, "--layers", save(tmp_path, **given, **{"1": x})]) == 1
    expected = (
        "'1': an operand has this name, and an operator that gives '2'; expected 'operand:1' or 'operator:1'"
    )
    assert expected in capsys.readouterr().err
    meant = {"operand:1": np.maximum(x, 0), "operator:1": given["2"]}
    assert run_command(["check", model, "--layers", save(tmp_path, **given, **meant)]) == 0


def test_empty_reference(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, LINES, WEIGHTS)
    with pytest.raises(InputError, match="the reference is empty"):
        list(compare_layers(graph, [X], {}, 1e-3))


def test_small_values_are_measured_by_their_own_size(tmp_path: Path) -> None:
    graph: RuntimeGraph = make_graph(tmp_path, LINES, WEIGHTS)
    tiny = X * 1e-6
    (difference,) = (d for d in compare_layers(graph, [tiny], {"a": tiny * 1.01}, 1e-3))
    assert difference.problem is not None
    (difference,) = (d for d in compare_layers(graph, [tiny], {"a": tiny * 1.0001}, 1e-3))
    assert difference.problem is None


def test_inputs_that_a_model_takes_are_made_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An embedding of one row takes no random indices; one that takes none at all is reported."""
    lines = """
        pnnx.Input in 0 1 a #a=(5)i64
        nn.Embedding table 1 1 a b embedding_dim=2 num_embeddings=1 sparse=False @weight=(1,2)f32
        F.relu act 1 1 b c $input=b
        pnnx.Output out 1 0 c"""
    model = str(write_model(tmp_path, lines, {"table.weight": np.ones((1, 2), np.float32)}))
    assert run_command(["check", model, "--backend", "both"]) == 0
    assert "inputs  all zeros" in capsys.readouterr().out
    none = lines.replace("=1 sparse", "=0 sparse").replace("(1,2)", "(0,2)")
    model = str(write_model(tmp_path, none, {"table.weight": np.ones((0, 2), np.float32)}))
    assert run_command(["check", model, "--backend", "both"]) == 1
    assert "kuiper: --backend both: no made-up inputs run on the model" in capsys.readouterr().err


def test_tuples_are_compared_by_tolerance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What two backends give differs in last digits; a tuple's members may as well."""
    lines = LINES.replace("pnnx.Output out 1 0 f\n    pnnx.Output out1 1 0 g", "").rstrip()
    lines += "\n    prim::TupleConstruct pair 2 1 f g t\n    pnnx.Output out 1 0 t"
    model = str(write_model(tmp_path, lines, WEIGHTS))
    assert run_command(["check", model, "--backend", "both"]) == 0
    assert "backends  7 operands agree" in capsys.readouterr().out
