"""What `kuiper export` takes from people, in each form it comes in; needs PyTorch and the exporter: `make recipes`."""

# mypy: disallow-subclassing-any=False

import subprocess
import sys
import warnings
from pathlib import Path
from zipfile import ZipFile

import pytest

from service.config.model_config import load_model_config
from service.export import ExportError, ExportReport, export

NETS = '''
import torch


class Small(torch.nn.Module):
    """Takes sizes apart, as many networks do."""

    def __init__(self, classes=5):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8, classes)

    def forward(self, image):
        y = self.norm(self.conv(image)).relu()
        n, c, h, w = y.shape
        y = y.view(n, c, h * w).transpose(1, 2).reshape(n * h * w, c)
        return {"scores": self.head(y).view(n, h * w, -1).mean(1), "features": y.reshape(n, -1)[:, :4]}


class Sized(Small):
    def __init__(self, classes):
        super().__init__(classes)


def seven():
    return Sized(7)


def raises():
    raise KeyError("no weights")


def number():
    return 1
'''


def agrees(report: ExportReport, shapes: int = 3) -> bool:
    """Return whether a model agrees with its source, on as many shapes."""
    return len(report.agreements) == shapes and all(each.agrees for each in report.agreements)


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    path = tmp_path / "nets.py"
    path.write_text(NETS)
    return path


def test_a_class_and_a_function_of_a_file(nets: Path, tmp_path: Path) -> None:
    for name, classes in (("Small", 5), ("seven", 7)):
        report = export(f"{nets}:{name}", tmp_path / name, inputs=["?,3,16,16"])
        assert agrees(report)
        assert f"({classes})f32" in (tmp_path / name / f"{name}.pnnx.param").read_text()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Sized", "needs classes: write a function without required arguments"),
        ("Smal", r"has no 'Smal' \(it has Small, Sized\); expected a torch.nn.Module"),
        ("raises", r"raised KeyError: 'no weights' \(.*nets.py:\d+ in raises\)"),
        ("number", "returned a int; expected a torch.nn.Module"),
        ("__doc__", "is a NoneType; expected"),
    ],
)
def test_what_makes_no_module_is_reported(nets: Path, tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(ExportError, match=problem):
        export(f"{nets}:{name}", tmp_path / "net", inputs=["?,3,16,16"])
    assert not (tmp_path / "net").exists()


def save_program(nets: Path, path: Path, dynamic: str) -> None:
    """Write a program in another process, as people do, and as PyTorch warns of its own parts."""
    code = f"""
import torch
from nets import Small
names = {{axis: torch.export.Dim.AUTO for axis in {dynamic}}}
torch.manual_seed(0)
program = torch.export.export(Small().eval(), (torch.rand(2, 3, 8, 12),), dynamic_shapes={{"image": names}})
torch.export.save(program, {str(path)!r})
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=nets.parent, check=True)


def test_a_program_shows_its_inputs(nets: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    save_program(nets, tmp_path / "net.pt2", "(0, 2, 3)")
    report = export(tmp_path / "net.pt2", tmp_path / "net")
    assert agrees(report)
    assert [each.shapes[0][:2] for each in report.agreements] == [(1, 3), (5, 3), (3, 3)]
    assert report.agreements[0].shapes[0][2:] == (8, 12)
    assert report.agreements[1].shapes[0][2:] != (8, 12)
    param = (tmp_path / "net" / "net.pnnx.param").read_text()
    assert "=(?,3,?,?)f32" in param
    assert [str(each.message) for each in recwarn.list] == []


def test_inputs_of_a_program_may_have_names_and_be_nested(tmp_path: Path) -> None:
    import torch

    class Words(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(20, 4)

        def forward(self, ids: torch.Tensor, more: dict[str, torch.Tensor]) -> torch.Tensor:
            rows, length = ids.shape
            return (self.words(ids) * more["weights"].unsqueeze(-1)).reshape(rows, length * 4)[:, :4]

    dynamic = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    arguments = {"ids": torch.zeros(2, 6, dtype=torch.long), "more": {"weights": torch.rand(2, 6)}}
    shapes = {"ids": dynamic, "more": {"weights": dynamic}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch's parts about one another
        program = torch.export.export(Words().eval(), (), arguments, dynamic_shapes=shapes)
        torch.export.save(program, tmp_path / "net.pt2")
    report = export(tmp_path / "net.pt2", tmp_path / "net")
    assert agrees(report)
    assert report.notes == ()
    assert [each.shapes for each in report.agreements][:1] == [((1, 6), (1, 6))]


def test_fixed_sizes_of_a_program_stay(nets: Path, tmp_path: Path) -> None:
    save_program(nets, tmp_path / "net.pt2", "()")
    report = export(tmp_path / "net.pt2", tmp_path / "net")
    assert agrees(report, 2)
    with pytest.raises(
        ExportError, match=r"does not run on \(1, 3, 8, 12\): Guard failed: image.size\(\)\[0\] == 2"
    ):
        export(tmp_path / "net.pt2", tmp_path / "other", inputs=["?,3,8,12"])


def test_a_file_that_is_no_program_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "net.pt2").write_bytes(b"PK nothing")
    with pytest.raises(ExportError, match="net.pt2 is not a program of torch.export: .*torch.export.save"):
        export(tmp_path / "net.pt2", tmp_path / "net")
    with ZipFile(tmp_path / "net.pt2", "w") as archive:
        archive.writestr("other", b"")
    with pytest.raises(
        ExportError, match="is not a program of .*file in archive is not in a subdirectory: other"
    ):
        export(tmp_path / "net.pt2", tmp_path / "net")
    assert not caplog.records  # of which PyTorch logs a traceback


def test_types_that_are_not_given(tmp_path: Path) -> None:
    import torch

    class Words(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(20, 4)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.words(input_ids).mean(1)

    class Other(Words):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.words(x).mean(1)

    for net in (Words(), Other()):
        name = type(net).__name__
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated
            traced = torch.jit.trace(net.eval(), torch.zeros(1, 3, dtype=torch.long))
        traced.save(tmp_path / f"{name}.pt")
    assert agrees(export(tmp_path / "Words.pt", tmp_path / "words", inputs=["?,8?"]))
    with pytest.raises(
        ExportError, match="does not run on .*whole numbers is given with its type, as --input 1,16:i64"
    ):
        export(tmp_path / "Other.pt", tmp_path / "other", inputs=["?,8?"])


def test_ultralytics_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ultralytics = pytest.importorskip("ultralytics", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)  # where it writes to
    net = ultralytics.YOLO("yolo11n.yaml")
    net.model.names = {0: "cat", 1: "dog"} | {place: str(place) for place in range(2, 80)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, about TorchScript
        file = Path(net.export(format="torchscript", imgsz=(64, 96), verbose=False))
    report = export(file, tmp_path / "yolo")
    assert report.task == "detection"
    assert [each.shapes for each in report.agreements] == [((rows, 3, 64, 96),) for rows in (1, 3, 5)]
    config = load_model_config(tmp_path / "yolo")
    assert config.labels is not None
    assert config.labels[:3] == ("cat", "dog", "2")
    assert config.image is not None
    assert (config.image.size, config.image.resize, config.image.pad) == ((64, 96), "fit", 114)


def test_names_and_folders_of_timm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timm = pytest.importorskip("timm", exc_type=ImportError)
    with pytest.raises(ExportError, match=r"has no model 'resnet999' \(it has .*resne"):
        export("timm:resnet999", tmp_path / "net")
    create = timm.create_model
    monkeypatch.setattr("timm.create_model", lambda name, **_: create(name))  # its weights are on the net
    report = export("timm:mobilenetv3_small_050.lamb_in1k", tmp_path / "net")
    assert agrees(report)
    assert report.task == "classification"
    config = load_model_config(tmp_path / "net")
    assert config.labels is not None
    assert config.image is not None
    assert (len(config.labels), config.labels[1]) == (1000, "goldfish")
    assert (config.image.size, config.image.resize, config.image.shorter_side) == ((224, 224), "crop", 256)
    assert config.image.resample == "bicubic"
    monkeypatch.setattr("timm.create_model", create)
    model = create("mobilenetv3_small_050", num_classes=3)
    timm.models.save_for_hf(model, str(tmp_path / "mine"), model_config={"label_names": ["a", "b", "c"]})
    report = export(tmp_path / "mine", tmp_path / "own")
    assert agrees(report)
    assert load_model_config(tmp_path / "own").labels == ("a", "b", "c")


def test_weights_of_timm_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("timm", exc_type=ImportError)

    def fails(*_: object, **__: object) -> None:
        raise OSError("no such host")

    monkeypatch.setattr("timm.create_model", fails)
    with pytest.raises(ExportError, match="the weights are not available: no such host.*save_for_hf"):
        export("timm:resnet18.a1_in1k", tmp_path / "net")
