from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from service.commands.dispatch import run_command
from tests.engine.models import make_graph, write_model

LINES = """
    pnnx.Input in 0 1 a #a=(?,3)f32
    pnnx.Attribute w 0 1 k @data=(3)f32 #k=(3)f32
    pnnx.Expression scale 2 1 a k b expr=mul(@0,@1) #b=(?,3)f32
    pnnx.Expression shift 1 1 b c expr=add(@0,1) #c=(?,3)f32
    pnnx.Output out 1 0 c
"""
W = np.array([1, 2, 3], np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def main(arguments: Sequence[str]) -> int:
    return run_command(["check", *arguments])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path, LINES, {"w.data": W})


def save(path: Path, **arrays: object) -> str:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return str(path)


def test_report(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(model), "--shape", "1,3"]) == 0
    printed = capsys.readouterr().out
    assert "5 operators" in printed
    assert "    2  pnnx.Expression" in printed
    assert "input   in  a: (?,3)f32" in printed
    assert "output  out  c: (?,3)f32" in printed
    assert "parameters      3 in 12 bytes" in printed
    assert "multiply-adds   0" in printed
    assert "input shapes    a: (1,3)f32, as given" in printed
    assert "intermediates   36 bytes at the most" in printed  # input, weight and product, three floats each


def test_shape_option_counts_for_other_shapes(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(model.parent), "--shape", "10,3"]) == 0
    assert f"intermediates   {120 + 12 + 120} bytes" in capsys.readouterr().out
    assert main([str(model), "--shape", "10,4"]) == 1
    assert "cannot run      pnnx.Expression scale" in capsys.readouterr().out
    assert main([str(model), "--shape", "1,3", "--shape", "1,3"]) == 1
    assert "2 shapes; expected one for each of 1 inputs" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1,x", "1;3", "-1,3", "1,,3", "?,3", "1.5"])
def test_text_that_is_no_shape(model: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main([str(model), f"--shape={text}"]) == 2
    assert f"kuiper: {text!r}: is not a shape; expected" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "much"])
def test_text_that_is_no_tolerance(model: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main([str(model), f"--tolerance={text}"]) == 2
    assert "tolerance" in capsys.readouterr().err


def test_dynamic_dimensions_are_asked_for(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(model)]) == 2
    printed = capsys.readouterr().out
    assert "5 operators" in printed
    assert (
        "not checked     whether it runs: the model has dynamic dimensions (a: (?,3)f32); give --shape"
        in printed
    )
    assert "input shapes" not in printed
    assert "intermediates   unknown" in printed


def test_shapes_that_the_file_contradicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = """
        pnnx.Input in 0 1 a #a=(2,4)f32
        F.relu before 1 1 a b $input=a
        nn.Linear fault 1 1 b c bias=False in_features=3 out_features=2 @weight=(2,3)f32
        F.relu after 1 1 c d $input=c
        pnnx.Output out 1 0 d"""
    model = write_model(tmp_path, lines, {"fault.weight": np.ones((2, 3), np.float32)})
    assert main([str(model)]) == 1
    assert "cannot run      nn.Linear fault, operand 'b'" in capsys.readouterr().out


def test_unsupported_operators_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_model(tmp_path, "pnnx.Input in 0 1 a\nacme.Magic m 1 1 a b\npnnx.Output out 1 0 b")
    assert main([str(model)]) == 1
    assert "unsupported     acme.Magic m" in capsys.readouterr().out


def test_broken_model_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "no.param")]) == 1
    assert "no.param: is not a model" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 1
    assert f"{tmp_path}: expected one .param and one .bin file, found none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("param", "binary"), [("m.param", "m.pnnx.bin"), ("m.pnnx.param", "m.bin"), ("a.param", "b.bin")]
)
def test_folder_is_the_model_that_a_server_takes(tmp_path: Path, param: str, binary: str) -> None:
    made = write_model(tmp_path, LINES, {"w.data": W})
    made.with_suffix(".bin").rename(tmp_path / binary)
    made.rename(tmp_path / param)
    (tmp_path / "m.ncnn.param").touch()
    assert main([str(tmp_path), "--shape", "1,3"]) == 0
    assert main([str(tmp_path / param), "--shape", "1,3"]) == (0 if param != "a.param" else 1)


def test_highest_version_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version, name in (("9", "magic"), ("10", "relu")):
        kind = "nn.ReLU" if name == "relu" else "acme.Magic"
        lines = f"pnnx.Input in 0 1 a #a=(2)f32\n{kind} {name} 1 1 a b\npnnx.Output out 1 0 b"
        (tmp_path / "m" / version).mkdir(parents=True)
        write_model(tmp_path / "m" / version, lines)
    assert main([str(tmp_path / "m")]) == 0
    assert main([str(tmp_path)]) == 1
    assert "found none and none; it is a folder of models: m" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["in_0", "a", "in"])
def test_against_outputs(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    inputs = save(tmp_path / "in.npz", **{name: X})
    good = save(tmp_path / "good.npz", out_0=X * W + 1)
    assert main([str(model), "--against", inputs, good]) == 0
    assert "output  c  agrees" in capsys.readouterr().out
    bad = save(tmp_path / "bad.npz", out_0=X * W + 1.5)
    assert main([str(model), "--against", inputs, bad]) == 1
    assert "output  c  " in capsys.readouterr().out


def test_missing_outputs_are_a_difference(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = save(tmp_path / "in.npz", in_0=X)
    more = save(tmp_path / "more.npz", out_0=X * W + 1, out_1=X)
    assert main([str(model), "--against", inputs, more]) == 1
    assert "1 outputs, the reference has 2" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"text"])
def test_archives_that_are_none_are_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    broken = tmp_path / "broken.npz"
    broken.write_bytes(content)
    assert main([str(model), "--against", str(broken), str(broken)]) == 1
    assert capsys.readouterr().err.rstrip().endswith("; expected an .npy or .npz")


def test_one_array_needs_no_archive(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", X)
    assert main([str(model), "--against", str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]) == 1
    assert "differs" in capsys.readouterr().out
    np.save(tmp_path / "y.npy", X * W + 1)
    assert main([str(model), "--against", str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]) == 0


def test_peak_counts_what_is_alive(tmp_path: Path) -> None:
    chain = "\n".join(f"pnnx.Expression e{i} 1 1 v{i} v{i + 1} expr=neg(@0)" for i in range(5))
    lines = f"pnnx.Input in 0 1 v0 #v0=(8)f32\n{chain}\npnnx.Output out 1 0 v5"
    plan = make_graph(tmp_path, lines).declared_plan()
    assert plan is not None
    assert plan.peak_bytes == 64
