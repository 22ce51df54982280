"""Small models without weights, one folder each."""

from collections.abc import Mapping
from pathlib import Path

from tests.engine.models import write_model

VECTOR = """
pnnx.Input  pnnx_input_0  0 1 0 #0=(?,3)f32
nn.ReLU     relu          1 1 0 1 #0=(?,3)f32 #1=(?,3)f32
pnnx.Output pnnx_output_0 1 0 1 #1=(?,3)f32
"""
"""Returns max(x, 0)."""

PAIR = """
pnnx.Input      left   0 1 a #a=(2)f32
pnnx.Input      right  0 1 b #b=(2)f32
pnnx.Expression sum    2 1 a b s expr=add(@0,@1) #s=(2)f32
nn.ReLU         relu   1 1 s t #t=(2)f32
pnnx.Output     first  1 0 s
pnnx.Output     second 1 0 t
"""
"""Returns a + b and max(a + b, 0)."""

DIGIT = """
pnnx.Input    pnnx_input_0  0 1 0 #0=(1,1,1,10)f32
torch.flatten flat          1 1 0 1 end_dim=-1 start_dim=1 $input=0 #0=(1,1,1,10)f32 #1=(1,10)f32
nn.Softmax    soft          1 1 1 2 dim=1 #1=(1,10)f32 #2=(1,10)f32
pnnx.Output   pnnx_output_0 1 0 2 #2=(1,10)f32
"""
"""Reads a picture of ten pixels in a row: its class is the place of the brightest."""

DIGIT_CONFIG = """
task = "classification"
description = "Finds the brightest pixel."
labels = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"]
[image]
colour = "gray"
[classification]
top_k = 3
"""

UNKNOWN_LAYER = """
pnnx.Input  pnnx_input_0  0 1 0 #0=(1,3)f32
nn.RELU     relu          1 1 0 1
pnnx.Output pnnx_output_0 1 0 1
"""

MISMATCH = """
pnnx.Input      pnnx_input_0  0 1 0 #0=(2,3)f32
pnnx.Input      pnnx_input_1  0 1 1 #1=(2,2)f32
pnnx.Expression sum           2 1 0 1 2 expr=add(@0,@1)
pnnx.Output     pnnx_output_0 1 0 2
"""
"""Builds, but does not run on the very shapes that it declares."""


def add_model(root: Path, name: str, lines: str, config: str | None = None) -> Path:
    """Write a model to a folder of its own under `root`; returns the folder."""
    folder = root / name
    folder.mkdir(parents=True)
    write_model(folder, lines)
    if config is not None:
        (folder / "model.toml").write_text(config)
    return folder


def add_pipeline(root: Path, name: str, config: str) -> None:
    """Write a pipeline, a folder with nothing but a `model.toml`, under `root`."""
    (root / name).mkdir(parents=True)
    (root / name / "model.toml").write_text(config)


def add_models(root: Path) -> Path:
    """Write the sound models to `root`; returns it."""
    add_model(root, "vector", VECTOR)
    add_model(root, "pair", PAIR)
    add_model(root, "digit", DIGIT, DIGIT_CONFIG)
    return root


def add_versions(root: Path, name: str, versions: Mapping[str, str]) -> Path:
    """Write a model of several versions to `root`, from version -> lines; returns the model's folder."""
    for version, lines in versions.items():
        add_model(root / name, version, lines)
    return root / name
