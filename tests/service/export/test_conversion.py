"""An export from end to end, with a stand-in for PyTorch and one for the exporter."""

import os
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from engine import Array, RuntimeGraph
from engine.model.model_folder import find_files
from service.export import ExportError, export
from service.export.opening import open_source, source_name
from tests.service.export.stand_in import BIAS, WEIGHT, LinearSource, make_exporter, names_in, write_files

Prepare = Callable[..., Path]


@pytest.fixture
def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepare:
    """Returns a function that puts the stand-ins in place and returns where models go."""
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()

    def put(script: str = "write()", source: LinearSource | None = None, **files: object) -> Path:
        write_files(tools, **files)  # type: ignore[arg-type]
        exporter = make_exporter(tools, script)
        monkeypatch.setattr("service.export.exporter.find_exporter", lambda: exporter)
        monkeypatch.setattr("service.export.conversion.open_source", lambda _: source or LinearSource())
        return tmp_path / "models"

    return put


def left(models: Path) -> list[str]:
    """Return what lies in the folders that an export uses."""
    folders = [folder for folder in (models, models.parent / "temporary") if folder.exists()]
    return sorted(name for folder in folders for name in names_in(folder))


def test_a_model_is_written_that_runs(prepare: Prepare) -> None:
    models = prepare()
    report = export("net.pt", models / "net", inputs=["?,4"])
    assert left(models) == ["net"]
    assert report.files == ("model.toml", "net.pnnx.bin", "net.pnnx.param")
    assert [agreement.shapes for agreement in report.agreements] == [((1, 4),), ((5, 4),), ((3, 4),)]
    assert all(agreement.agrees for agreement in report.agreements)
    assert [(agreement.matched, agreement.tensors) for agreement in report.agreements] == [(1, 1)] * 3
    assert tomllib.loads((models / "net" / "model.toml").read_text())["warm_up"] == {"shapes": [[1, 4]]}
    files = find_files(models / "net")
    graph = RuntimeGraph(files.param, files.bin)
    graph.build()
    x = np.array([[1, 2, 3, 4]], np.float32)
    np.testing.assert_allclose(graph.forward([x])[0], x @ WEIGHT.T + BIAS, rtol=1e-6)


def test_the_exporter_gets_shapes_and_types(prepare: Prepare, tmp_path: Path) -> None:
    models = prepare("write(); (files / 'arguments').write_text(' '.join(sys.argv[1:]))")
    export("net.pt", models / "net", inputs=["?,4"])
    reported = (tmp_path / "tools" / "arguments").read_text()
    assert reported == "model.pt inputshape=[1,4]f32 inputshape2=[2,4]f32"


def test_labels_make_a_classification(prepare: Prepare, tmp_path: Path) -> None:
    models = prepare()
    (tmp_path / "names.txt").write_text("red\ngreen\nblue\n")
    report = export("net.pt", models / "net", inputs=["1,4"], labels=str(tmp_path / "names.txt"))
    assert report.task == "classification"
    config = tomllib.loads((models / "net" / "model.toml").read_text())
    assert config["classification"] == {"softmax": True}  # the outputs are no probabilities
    assert (models / "net" / "labels.txt").read_text().split() == ["red", "green", "blue"]


def test_a_wrong_number_of_labels_is_reported_and_nothing_written(prepare: Prepare, tmp_path: Path) -> None:
    models = prepare()
    (tmp_path / "names.txt").write_text("red\ngreen\n")
    with pytest.raises(ExportError, match="labels: there are 2; expected 3"):
        export("net.pt", models / "net", inputs=["1,4"], labels=str(tmp_path / "names.txt"))
    assert left(models) == []


def test_a_model_that_is_there_is_kept_without_force(prepare: Prepare) -> None:
    models = prepare()
    (models / "net").mkdir(parents=True)
    (models / "net" / "old.txt").write_text("mine")
    with pytest.raises(ExportError, match="exists; --force replaces it"):
        export("net.pt", models / "net", inputs=["1,4"])
    assert (models / "net" / "old.txt").read_text() == "mine"
    export("net.pt", models / "net", inputs=["1,4"], force=True)
    assert names_in(models / "net") == ["model.toml", "net.pnnx.bin", "net.pnnx.param"]
    assert left(models) == ["net"]


def test_a_model_that_differs_is_not_written(prepare: Prepare) -> None:
    models = prepare(bias=BIAS + 1)
    with pytest.raises(ExportError) as caught:
        export("net.pt", models / "net", inputs=["1,4"])
    assert (
        "output 1 of the exported model differs from that of numpy on (1,4): it is off by up to 1, rounding"
        in str(caught.value)
    )
    assert "the first tensor without a match in numpy is that of nn.Linear head" in str(caught.value)
    assert left(models) == []


def test_an_operator_that_is_left_is_reported_with_its_line(prepare: Prepare) -> None:
    models = prepare(kind="aten::unheard_of")
    with pytest.raises(ExportError, match=r"left aten::unheard_of once, from net.py:7 in forward") as caught:
        export("net.pt", models / "net", inputs=["1,4"])
    assert "docs/guides/own-operator.md" in str(caught.value)
    assert left(models) == []


def test_files_of_an_exporter_that_crashes_later_are_used(prepare: Prepare) -> None:
    models = prepare("write(); os.kill(os.getpid(), 11)")
    report = export("net.pt", models / "net", inputs=["1,4"])
    assert any("ended with signal SIGSEGV after it had written the files" in note for note in report.notes)


def test_an_exporter_is_ended_when_its_files_are_written(prepare: Prepare) -> None:
    """What it writes for ncnn is not waited for."""
    models = prepare("write(); print('############# pass_ncnn', flush=True); time.sleep(600)")
    report = export("net.pt", models / "net", inputs=["1,4"], seconds=300)
    assert all(agreement.agrees for agreement in report.agreements)
    assert not any("exporter" in note for note in report.notes)


def test_an_exporter_that_fails_is_quoted(prepare: Prepare) -> None:
    models = prepare(
        "print('pass_level0'); print('net.py(12): forward'); print('RuntimeError: no such shape'); sys.exit(3)"
    )
    with pytest.raises(
        ExportError, match=r"exit code 3: RuntimeError: no such shape. It had come to net.py:12 in"
    ):
        export("net.pt", models / "net", inputs=["1,4"])
    assert left(models) == []


def test_an_exporter_that_does_not_end_is_ended_with_its_children(prepare: Prepare, tmp_path: Path) -> None:
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    # both processes hold the pipe open for as long as they live
    models = prepare(
        f"held = open({str(pipe)!r}, 'w'); held.write('x'); held.flush(); os.fork(); time.sleep(600)"
    )
    begun = b""
    for seconds in (1, 10, 100):  # on a busy machine, the exporter may not have begun before its time is up
        with pytest.raises(ExportError, match=f"still running after {seconds} s and was ended; --time-limit"):
            export("net.pt", models / "net", inputs=["1,4"], seconds=seconds)
        if begun := os.read(reader, 2):
            break
    assert begun == b"x"
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # waits for the last of them to end
    os.close(reader)
    assert left(models) == []


def test_a_size_that_cannot_be_open_is_named(prepare: Prepare) -> None:
    models = prepare()
    with pytest.raises(ExportError, match=r"size 1 cannot be open: .* 4 features are expected.*, as 4$"):
        export("net.pt", models / "net", inputs=["?,4?"])
    assert left(models) == []


def test_a_batch_that_cannot_be_open_is_named(prepare: Prepare) -> None:
    models = prepare(source=LinearSource(most=1))
    with pytest.raises(ExportError, match="size 0 cannot be open"):
        export("net.pt", models / "net", inputs=["?,4"])


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ({"preset": "imagnet"}, "there is no preset 'imagnet'; expected imagenet"),
        ({"task": "guessing"}, "there is no task 'guessing'; expected"),
        ({"labels": "/nowhere.txt"}, "--labels /nowhere.txt cannot be read"),
        ({"tokenizer": "/nowhere.json"}, "there is no file /nowhere.json"),
        ({"inputs": ["1,x"]}, "'x' is not a size"),
    ],
)
def test_wishes_are_checked_first(prepare: Prepare, wish: dict[str, object], problem: str) -> None:
    models = prepare("raise SystemExit('the exporter runs')")
    with pytest.raises(ExportError, match=problem):
        export("net.pt", models / "net", **{"inputs": ["1,4"], **wish})  # type: ignore[arg-type]
    assert left(models) == []


def test_a_default_that_cannot_be_dynamic_becomes_fixed_and_is_noted(prepare: Prepare) -> None:
    models = prepare()
    report = export("net.pt", models / "net")
    assert [agreement.shapes for agreement in report.agreements] == [((1, 4),), ((5, 4),), ((3, 4),)]
    assert report.notes == ()
    models = prepare(source=LinearSource(most=1))
    report = export("net.pt", models / "net", force=True)
    assert [agreement.shapes for agreement in report.agreements] == [((1, 4),), ((1, 4),)]
    assert report.notes[0].startswith(
        "its inputs are (1,4)f32: with more dynamic dimensions, size 0 cannot be open: the model does not run on (2, 4)"
    )


class AnyWidthSource(LinearSource):
    """A linear layer that looks at four features of any number of them."""

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        return super().run([np.resize(arrays[0], (len(arrays[0]), 4))])


def test_a_fixed_size_is_exported_with_a_dynamic_batch_where_nothing_else_helps(prepare: Prepare) -> None:
    script = """
        (files / 'tried').open('a').write(sys.argv[-1] + ' ')
        write() if '2=[2,4]' in sys.argv[-1] else sys.exit(3)
    """
    models = prepare(script, source=AnyWidthSource())
    report = export("net.pt", models / "net", inputs=["1,4"])
    tried = (models.parent / "tools" / "tried").read_text().split()
    assert [one.partition("=")[0] for one in tried] == ["inputshape", "inputshape2", "inputshape2"]
    assert [agreement.shapes for agreement in report.agreements] == [((1, 4),), ((1, 4),)]
    assert report.notes[0].startswith("exported with dynamic sizes, which were fixed afterwards")


def test_the_first_of_several_problems_is_reported(prepare: Prepare) -> None:
    models = prepare("print('Error: got ' + sys.argv[-1]); sys.exit(3)")
    with pytest.raises(ExportError, match=r"Error: got inputshape2=\[2,4\]f32"):
        export("net.pt", models / "net")
    assert left(models) == []


def test_an_export_that_took_too_long_is_not_tried_again(prepare: Prepare, tmp_path: Path) -> None:
    models = prepare("(files / 'tried').open('a').write('x'); time.sleep(600)")
    with pytest.raises(ExportError, match="still running after 1 s"):
        export("net.pt", models / "net", seconds=1)
    tried = tmp_path / "tools" / "tried"
    assert not tried.exists() or tried.read_text() == "x"  # on a busy machine the exporter may not have begun


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "tests",
            "tests is a folder without config.json; expected a .pt2 or TorchScript file, an ONNX file, ",
        ),
        ("nothing", "nothing is not a file; expected a .pt2 or TorchScript file"),
        (__file__, "says not which model; add its class or function, as test_conversion.py:Class"),
        ("nothing.pt2", "there is no file nothing.pt2"),
    ],
)
def test_what_is_no_source_is_reported(source: str, problem: str) -> None:
    with pytest.raises(ExportError, match=problem):
        open_source(source)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("a/net.traced.pt", "net"),
        ("pack.age:make", "make"),
        ("a/nets.py:Small", "Small"),
        ("a/net.pt2", "net"),
    ],
)
def test_a_model_has_the_name_of_its_source(source: str, name: str) -> None:
    assert source_name(source) == name


@pytest.mark.parametrize("config", ["[", "{}", '{"architectures": []}', '{"architectures": null}'])
def test_a_folder_without_an_architecture_is_reported(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(ExportError, match='names no architecture .*; expected "architectures" with one name'):
        open_source(tmp_path)


def test_the_report_is_json_as_well(prepare: Prepare) -> None:
    models = prepare()
    report = export("net.pt", models / "net", inputs=["1,4"])
    document = report.document()
    assert document["agreements"][0]["shapes"] == [[1, 4]]
    assert document["task"] == "raw"
    lines = list(report.lines())
    assert lines[0] == "source    linear, a stand-in"
    assert lines[2].startswith("checked   (1,4): 1 output matches numpy (max relative error ")
    assert lines[-1].endswith("model.toml, net.pnnx.bin, net.pnnx.param; task raw")


@pytest.mark.parametrize("name", ["none.pt", "none.onnx"])
def test_a_missing_file_is_reported_as_such(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError, match=f"there is no file .*{name}"):
        export(str(tmp_path / name), tmp_path / "m", inputs=["1,3"])
