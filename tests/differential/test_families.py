"""The families of random graphs know every operator that the compiler does."""

from engine.compiler.lowering import RULES
from tests.differential.generator import random_case


def test_every_operator_that_is_compiled_is_drawn() -> None:
    drawn = {line.type for index in range(2500) for line in random_case(0, index).operators}
    raw = {
        name for name in RULES if "::" in name
    }  # the exporter's leftovers have cases among the golden data
    missing = sorted(RULES.keys() - drawn - raw)
    assert not missing, f"no family of tests/differential/families/ draws {', '.join(missing)}"
