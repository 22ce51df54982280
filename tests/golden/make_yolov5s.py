"""Make the golden data of the YOLOv5s of the KuiperInfer course: its graph, and what PyTorch computes.

    python -m tests.golden.make_yolov5s        (needs torch and pnnx; run from the root of the tree)

Writes tests/golden/yolov5s: `yolov5s.pnnx.param`, with `models.yolo.Detect` as one operator, and `io.npz`, some rows of
the boxes that PyTorch computes at 640x640. The weights, 29 MB, are drawn again by `yolov5s.draw` where they are needed.
"""

import tempfile
from itertools import pairwise
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from tests.golden.networks import build, export
from tests.golden.yolov5s import FOLDER, SIDE, STEP, draw, image, write_weights


def main() -> None:
    """Make both files."""
    torch.set_num_threads(1)
    module = build("yolov5", width=0.5, size=(SIDE, SIDE))
    fuse(module)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(draw(name, tuple(parameter.shape))))
        boxes = module(torch.from_numpy(image())).numpy()
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        shapes = [(1, 3, SIDE, SIDE)]
        param, binary = export(module, shapes, scratch, name="yolov5s", moduleop="models.yolo.Detect")
        (FOLDER / param.name).write_text(Path(param).read_text())
        write_weights(param, Path(scratch) / "written.bin")
        compare(binary, Path(scratch) / "written.bin")
    np.savez_compressed(FOLDER / "io.npz", shape=np.array(boxes.shape), rows=boxes[0, ::STEP])
    print(boxes.shape, boxes[..., 4:].min(), boxes[..., 4:].max(), boxes[..., 4:].std())


def compare(exported: Path, written: Path) -> None:
    """Check that the weights which are drawn again are those that the exporter wrote."""
    with ZipFile(exported) as first, ZipFile(written) as second:
        if set(first.namelist()) != set(second.namelist()):
            raise SystemExit(f"{set(first.namelist()) ^ set(second.namelist())}")
        for name in first.namelist():
            wanted, found = (np.frombuffer(archive.read(name), "<f4") for archive in (first, second))
            if not np.array_equal(wanted, found):
                raise SystemExit(f"{name} differs by {np.abs(wanted - found).max()}")


def fuse(module: nn.Module) -> None:
    """Put batch norms into the convolutions before them, as the exporter does."""
    for child in module.children():
        fuse(child)
    names = list(module._modules)
    for first, second in pairwise(names):
        convolution, norm = module._modules[first], module._modules[second]
        if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
            module._modules[first] = fuse_conv_bn_eval(convolution, norm)
            module._modules[second] = nn.Identity()


if __name__ == "__main__":
    main()
