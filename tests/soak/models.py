"""The models of the soak test."""

from pathlib import Path

from tests.service.models import PAIR, VECTOR, add_model, add_versions
from tests.service.server.process import ROOT

WIDE = """
pnnx.Input  in   0 1 0 #0=(?,65536)f32
nn.ReLU     relu 1 1 0 1 #0=(?,65536)f32 #1=(?,65536)f32
pnnx.Output out  1 0 1 #1=(?,65536)f32
"""
"""Large responses, to leave in the middle of."""

SIGMOID = VECTOR.replace("nn.ReLU    ", "nn.Sigmoid")

SLOW = """
pnnx.Input      in   0 1 0 #0=(1,3)f32
test.Nap        one  1 1 0 1
test.Nap        two  1 1 1 2
pnnx.Expression half 1 1 2 3 expr=mul(@0,0.5)
pnnx.Output     out  1 0 3
"""

ROWS = (1, 2, 3, 4)
"""Rows that a request for `vector` or `twin` may bring."""
VECTOR_BATCHES = (2, 8)
"""Maximum rows of a batch of `vector`, of which one holds at a time; the last one from the start."""

LOOKUP = """
pnnx.Input         index 0 1 i #i=(4)i64
pnnx.Input         table 0 1 t #t=(5,2)f32
torch.index_select pick  2 1 t i s dim=0 $input=t $index=i
pnnx.Output        out   1 0 s
"""
"""Fails in the run where an index is outside of the table."""

ONE_VERSION = ("digits", "vector", "pair", "wide", "slow", "lookup")
RECONCILED = (*((name, "1") for name in ONE_VERSION), ("twin", "1"), ("twin", "2"))
"""Models whose counters must add up; `guest` is left out, whose counters vanish whenever it is unloaded."""


def write_models(root: Path) -> Path:
    """Write all models to `root`; returns it."""
    (root / "digits").symlink_to(ROOT / "models/digits")
    batching = f"[batching]\nmax_batch_size = {VECTOR_BATCHES[-1]}\nmax_queue_delay_ms = 2.0\n"
    add_model(root, "vector", VECTOR, batching)
    add_model(root, "pair", PAIR)
    add_versions(root, "twin", {"1": VECTOR, "2": SIGMOID})
    add_model(root, "wide", WIDE)
    add_model(root, "slow", SLOW, "[scheduling]\nworkers = 1\nqueue_size = 4\ndefault_priority = 2\n")
    add_model(root, "lookup", LOOKUP)
    add_model(root, "guest", VECTOR)
    return root
