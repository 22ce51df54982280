"""The families of random graphs know every operator that the compiler does, or golden cases do."""

from engine.compiler.lowering import RULES
from tests.differential.generator import random_case
from tests.golden.cases import families

IN_NETWORKS = {"models.yolo.Detect"}
"""Operators that whole networks of the golden data have."""
UNDRAWN = {
    *("F.conv3d", "nn.Conv3d", "F.fold", "nn.Fold", "F.unfold", "nn.Unfold", "F.embedding", "nn.Embedding"),
    *(
        "Tensor.expand_as",
        "Tensor.reshape_as",
        "Tensor.type_as",
        "Tensor.view_as",
        "Tensor.repeat",
        "torch.tile",
    ),
    *("Tensor.index", "Tensor.masked_fill", "torch.gather", "torch.index_select", "torch.where"),
    *("torch.repeat_interleave", "torch.addmm", "torch.baddbmm", "torch.einsum"),
    *("torch.arange", "torch.argmax", "torch.argmin"),
    *("torch.eq", "torch.ge", "torch.gt", "torch.le", "torch.lt", "torch.ne"),
    *(f"torch.bitwise_{name}" for name in ("and", "not", "or", "xor")),
    *(f"torch.logical_{name}" for name in ("and", "not", "or", "xor")),
}
"""Types that random graphs do not draw yet, many as they take integers; golden cases of both backends have them."""


def test_every_operator_that_is_compiled_is_drawn() -> None:
    drawn = {line.type for index in range(2500) for line in random_case(0, index).operators}
    raw = {
        name for name in RULES if "::" in name
    }  # the exporter's leftovers have cases among the golden data
    missing = sorted(RULES.keys() - drawn - raw - UNDRAWN - IN_NETWORKS)
    assert not missing, f"no family of tests/differential/families/ draws {', '.join(missing)}"


def test_golden_cases_have_what_is_not_drawn() -> None:
    golden = {case.type for cases in families().values() for case in cases}
    names = {name: {name, f"aten::{name.rpartition('.')[2]}"} for name in UNDRAWN}
    assert not [name for name, spellings in names.items() if golden.isdisjoint(spellings)]
