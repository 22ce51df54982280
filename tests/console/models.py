"""Models that the console has to show whatever they are: hostile names, and many operators."""

from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from tests.service.models import add_model

MARKUP = "<img/src=x/onerror=alert(1)>"
"""A name that is an element, if it is ever taken for HTML. Names of operators have no spaces."""
LABEL = "<img src=x onerror=alert(1)>"

HOSTILE = f"""
pnnx.Input    pnnx_input_0  0 1 0 #0=(1,1,1,10)f32
torch.flatten {MARKUP}      1 1 0 {MARKUP} end_dim=-1 start_dim=1 $input=0 #0=(1,1,1,10)f32 #{MARKUP}=(1,10)f32
nn.Softmax    m{MARKUP}.x   1 1 {MARKUP} 2 dim=1 #{MARKUP}=(1,10)f32 #2=(1,10)f32
pnnx.Output   pnnx_output_0 1 0 2 #2=(1,10)f32
"""
_CONFIG = f"""
task = "classification"
description = "{LABEL}"
labels = ["{LABEL}", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
[image]
colour = "gray"
"""


def add_hostile_model(root: Path) -> Path:
    """Write a model whose operators, operands and labels are markup; returns its folder."""
    return add_model(root, "hostile", HOSTILE, _CONFIG)


def add_large_model(root: Path, name: str, count: int) -> Path:
    """Write a model of residual blocks, each three operators and a sum; returns its folder.

    Args:
        root: the folder of models.
        name: name of the model.
        count: operators, about.
    """
    shape = "(1,8)f32"
    lines = [f"pnnx.Input pnnx_input_0 0 1 0 #0={shape}"]
    last = 0
    for block in range((count - 2) // 4):
        start = 1 + 4 * block
        module = f"layers.{block // 20}.{block % 20}"
        for step, source in enumerate((last, start, start + 1)):
            lines.append(
                f"nn.ReLU {module}.act{step} 1 1 {source} {start + step} #{source}={shape} #{start + step}={shape}"
            )
        lines.append(
            f"pnnx.Expression pnnx_expr_{block} 2 1 {start + 2} {last} {start + 3} expr=add(@0,@1) "
            f"#{start + 2}={shape} #{last}={shape} #{start + 3}={shape}"
        )
        last = start + 3
    lines.append(f"pnnx.Output pnnx_output_0 1 0 {last} #{last}={shape}")
    return add_model(root, name, "\n".join(lines) + "\n")


def add_embedding_model(root: Path, name: str, rows: int) -> Path:
    """Write a model that looks ids up in a table of a few rows, row i being 4i to 4i + 3; returns its folder.

    Args:
        root: the folder of models.
        name: name of the model.
        rows: rows of the table.
    """
    table = f"embedding_dim=4 num_embeddings={rows} padding_idx=None sparse=False @weight=({rows},4)f32"
    lines = f"""
pnnx.Input   pnnx_input_0  0 1 0 #0=(1,64)i64
nn.Embedding table         1 1 0 1 {table} #0=(1,64)i64 #1=(1,64,4)f32
pnnx.Output  pnnx_output_0 1 0 1 #1=(1,64,4)f32
"""
    folder = add_model(root, name, lines)
    weights = np.arange(rows * 4, dtype="<f4").tobytes()
    with ZipFile(next(folder.glob("*.bin")), "w", ZIP_STORED) as archive:
        archive.writestr(ZipInfo("table.weight"), weights)
    return folder
