"""Make the golden files of networks that `kuiper export` repairs: what it writes, and what PyTorch computes.

    python -m tests.golden.exported.make [NAME …]        (needs torch and pnnx; run from the root of the tree)

Writes to tests/golden/exported/data, for each network: `<name>.param`, `<name>.bin`, and `<name>.npz` with inputs and
outputs of each run, `<run>/in_0`, `<run>/out_0`, ….
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from service.export import export
from tests.golden.exported.networks import NETWORKS, __getattr__

DATA = Path(__file__).parent / "data"
_Shapes = list[list[tuple[int, ...]]]
_SHAPES: dict[str, _Shapes] = {
    "strided": [[(1, 4001)], [(1, 9761)]],
    "shifted": [[(1, 12, 16)], [(2, 5, 16)], [(3, 40, 16)]],
    "square_attention": [[(1, 16, 16)]],
    "square_weights": [[(1, 16, 16)]],
    "masked": [[(1, 12), (1, 12)]],
    "masked_dynamic": [[(1, 12), (1, 12)], [(3, 5), (3, 5)], [(2, 31), (2, 31)]],
}
_USUAL: _Shapes = [[(1, 4, 16)], [(3, 4, 16)]]


def make(name: str) -> None:
    """Export a network and run it in PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        export(f"tests.golden.exported.networks:{name}", Path(folder) / name, inputs=NETWORKS[name][1])
        for suffix in ("param", "bin"):
            shutil.copyfile(Path(folder) / name / f"{name}.pnnx.{suffix}", DATA / f"{name}.{suffix}")
    module = __getattr__(name)()
    arrays: dict[str, Any] = {}
    for run, shapes in enumerate(_SHAPES.get(name, _USUAL)):
        inputs = _inputs(name, shapes)
        with torch.no_grad():
            outputs = module(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        arrays |= {f"{run}/in_{place}": tensor.numpy() for place, tensor in enumerate(inputs)}
        arrays |= {f"{run}/out_{place}": tensor.numpy() for place, tensor in enumerate(outputs)}
    np.savez_compressed(DATA / f"{name}.npz", **arrays)


def _inputs(name: str, shapes: list[tuple[int, ...]]) -> list[torch.Tensor]:
    if not name.startswith("masked"):
        return [torch.randn(*shape) for shape in shapes]
    mask = torch.ones(shapes[1], dtype=torch.int64)
    mask[:, -shapes[1][1] // 3 :] = 0
    mask[1:, :2] = 0
    return [torch.randint(0, 50, shapes[0]), mask]


if __name__ == "__main__":
    torch.manual_seed(1)
    DATA.mkdir(exist_ok=True)
    for each in sys.argv[1:] or NETWORKS:
        make(each)
