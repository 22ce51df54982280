"""Small models for clients of the protocol."""

from pathlib import Path

from tests.service.models import add_model, add_models, add_pipeline
from tests.service.server.blocking import BLOCKING, FAULT
from tests.service.server.process import ROOT

SAME = """
pnnx.Input    pnnx_input_0  0 1 in #in=(?,2){dtype}
torch.flatten flat          1 1 in out end_dim=-1 start_dim=1 #in=(?,2){dtype} #out=(?,2){dtype}
pnnx.Output   pnnx_output_0 1 0 out #out=(?,2){dtype}
"""
"""Returns its input."""

UNDECLARED = """
pnnx.Input    pnnx_input_0  0 1 in
torch.flatten flat          1 1 in out end_dim=-1 start_dim=1
pnnx.Output   pnnx_output_0 1 0 out
"""
"""Returns its input, of any type and rank from 2."""

TWICE = """
pnnx.Input  pnnx_input_0  0 1 in #in=(1,2)f32
nn.ReLU     relu          1 1 in out #in=(1,2)f32 #out=(1,2)f32
pnnx.Output pnnx_output_0 2 0 in out #in=(1,2)f32 #out=(1,2)f32
"""
"""Returns its input and max(input, 0) by one operator."""

DTYPES = ("f16", "f32", "f64", "bf16", "i8", "i16", "i32", "i64", "u8", "bool", "c64", "c128")

TRIPLED = """
pnnx.Input      pnnx_input_0  0 1 in #in=(?,2)f32
pnnx.Expression triple        1 1 in out expr=mul(@0,3) #in=(?,2)f32 #out=(?,2)f32
pnnx.Output     pnnx_output_0 1 0 out #out=(?,2)f32
"""

TWO_LOOKS = """
task = "pipeline"
[[pipeline.steps]]
name = "first"
model = "digits"
[[pipeline.steps]]
name = "again"
model = "digits"
"""
"""Each step takes the request's picture."""


def add_v2_models(root: Path) -> Path:
    """Write the models to `root`; returns it."""
    add_models(root)
    for dtype in DTYPES:
        add_model(root, f"same_{dtype}", SAME.format(dtype=dtype))
    add_model(root, "undeclared", UNDECLARED)
    add_model(root, "twice", TWICE)
    add_model(root, "blocking", BLOCKING)
    add_model(root, "fault", FAULT)
    add_model(root, "reloaded", SAME.format(dtype="f32"))
    (root / "versioned").mkdir()
    add_model(root / "versioned", "1", SAME.format(dtype="f32"))
    add_model(root / "versioned", "3", TRIPLED)
    (root / "versioned" / "model.toml").write_text('versions = "all"\n')
    (root / "digits").symlink_to(ROOT / "models/digits")
    add_pipeline(root, "two_looks", TWO_LOOKS)
    return root
