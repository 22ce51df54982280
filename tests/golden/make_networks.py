"""Make the golden files of whole networks: exported graphs, and what PyTorch computes with them.

    python -m tests.golden.make_networks [NAME …]        (needs torch and pnnx; run from the root of the tree)

Writes one folder per network to tests/golden/networks/data: `<name>.pnnx.param`, `<name>.pnnx.bin`, and
`io.npz` with the inputs and outputs of each run, `<run>/in_0`, `<run>/out_0`, `<run>/out_1` …. The run `file`
has the shapes that stand in the file; `other` has another batch size, and another image size where the graph
allows it.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from tests.golden.networks import build, export

DATA = Path(__file__).parent / "networks" / "data"

Shape = tuple[int, ...]


class Golden(NamedTuple):
    """One golden network: where it comes from, and the two shapes that it runs on."""

    name: str
    network: str
    options: dict[str, Any]
    shape: Shape = (1, 3, 64, 64)
    other: Shape = (2, 3, 96, 64)
    moduleop: str | None = None


YOLO = {"width": 1 / 64, "divisor": 2, "classes": 3, "size": (64, 64)}
FIXED = (2, 3, 64, 64)  # grids and position embeddings are made for one image size
GOLDENS = (
    Golden("resnet18", "resnet18", {"width": 5, "classes": 10}),
    Golden("mobilenet_v2", "mobilenet_v2", {"width": 0.1, "divisor": 4, "features": 48, "classes": 10}),
    Golden("unet", "unet", {"base": 3, "depth": 3}),
    Golden("unet_bilinear", "unet", {"base": 2, "depth": 2, "classes": 3, "bilinear": True}),
    Golden("yolov5", "yolov5", YOLO, other=FIXED),
    Golden("yolov5_moduleop", "yolov5", YOLO, other=FIXED, moduleop="models.yolo.Detect"),
    Golden("yolov5_raw", "yolov5", {**YOLO, "raw": True}),
    Golden("proposal_net", "proposal_net", {}, shape=(1, 3, 25, 30), other=(3, 3, 41, 24)),
    Golden(
        "efficientnet_lite",
        "efficientnet_lite",
        {"width": 0.1, "divisor": 3, "features": 33, "classes": 10},
    ),
    Golden("shufflenet_v2", "shufflenet_v2", {"channels": (6, 10, 20, 36, 40), "classes": 10}),
    Golden("sequence_net", "sequence_net", {}, shape=(1, 3, 40), other=(3, 3, 40)),
    Golden("cell_net", "cell_net", {}, shape=(1, 3, 6), other=(5, 3, 6)),
    Golden(
        "vit",
        "vit",
        {"size": 32, "patch": 8, "features": 24, "depth": 2, "heads": 3, "classes": 10},
        shape=(1, 3, 32, 32),
        other=(3, 3, 32, 32),
    ),
)


def main() -> None:
    """Make the golden networks named on the command line again, or all."""
    torch.set_num_threads(1)
    names = sys.argv[1:]
    for golden in GOLDENS:
        if names and golden.name not in names:
            continue
        folder = DATA / golden.name
        shutil.rmtree(folder, ignore_errors=True)
        make(golden, folder)
    if not names:
        make_legacy(DATA / "yolov5_moduleop", DATA / "yolov5_moduleop_legacy")
    total = sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file())
    print(f"{total / 1e6:.2f} MB in {DATA}")


def make(golden: Golden, folder: Path) -> None:
    """Export one network and record its runs."""
    torch.manual_seed(0)
    module = build(golden.network, **golden.options)
    other = (2, *golden.shape[1:]) if golden.other[2:] == golden.shape[2:] else (2, 3, 128, 96)
    param, binary = export(
        module, [golden.shape], folder, name=golden.name, other_shapes=[other], moduleop=golden.moduleop
    )
    rng = np.random.default_rng(1)
    arrays: dict[str, np.ndarray] = {}
    for run, shape in (("file", golden.shape), ("other", golden.other)):
        arrays |= record(module, run, rng.integers(0, 16, shape).astype(np.float32) / 15)
    np.savez_compressed(folder / "io.npz", **arrays)  # type: ignore[arg-type]
    kinds = sorted({line.split()[0] for line in param.read_text().splitlines()[2:]})
    print(f"{golden.name}: {binary.stat().st_size} bytes; {', '.join(kinds)}")


def record(module: nn.Module, run: str, image: np.ndarray) -> dict[str, np.ndarray]:
    """What `module` makes of `image`, by the names used in io.npz."""
    with torch.no_grad():
        response = module(torch.from_numpy(image))
    outputs = [response] if isinstance(response, torch.Tensor) else response
    arrays = {f"{run}/out_{index}": output.numpy() for index, output in enumerate(outputs)}
    return {f"{run}/in_0": image, **arrays}


def make_legacy(source: Path, folder: Path) -> None:
    """Rewrite a `moduleop` export the way early releases wrote it.

    They numbered the constants of Detect from the last to the first and without a leading zero (`pnnx_0` is
    the anchor grid of stage 2, `pnnx_5` the strides, `pnnx_6` the grid of stage 0), and wrote classic zip
    records. The runs are those of `source`.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = {f"pnnx_{index:02}": f"pnnx_{6 - index}" for index in range(7)}
    text = (source / f"{source.name}.pnnx.param").read_text()
    for new, old in names.items():
        text = text.replace(f"@{new}=", f"@{old}=")
    (folder / f"{folder.name}.pnnx.param").write_text(text)
    with (
        zipfile.ZipFile(source / f"{source.name}.pnnx.bin") as current,
        zipfile.ZipFile(folder / f"{folder.name}.pnnx.bin", "w", zipfile.ZIP_STORED) as legacy,
    ):
        for name in current.namelist():
            operator, _, key = name.rpartition(".")
            entry = zipfile.ZipInfo(f"{operator}.{names.get(key, key)}")
            legacy.writestr(entry, current.read(name))


if __name__ == "__main__":
    main()
