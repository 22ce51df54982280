"""Many rows run in parts, in bfloat16 and int8: each gets what PyTorch gives it, as near as the precision allows."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine import Array, RuntimeGraph, StopSignal, TraceLevel
from engine.quantization.sidecar import write_sidecar
from service.repository.loaded_model import LoadedModel
from service.repository.rows import run_rows
from service.repository.version_loader import LoadOptions, load_version
from tests.differential.rounding import always_rounding
from tests.golden.digits import ROWS, pictures, probabilities
from tests.golden.rounded_networks import calibrated, distance

DIGITS = Path(__file__).parents[3] / "models" / "digits"
PICTURES, WANTED = pictures()[1:], probabilities()[1:]
"""Without the first one, which two classes share: there rounding decides alone."""
LOSSES = {"bf16": 2.0**-7, "int8": 2.0**-5}
"""Share of the outputs that a layer may lose, in Euclidean norms."""


@pytest.fixture(scope="module", params=LOSSES)
def digits(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadedModel]:
    folder = tmp_path_factory.mktemp("models") / "digits"
    shutil.copytree(DIGITS, folder)
    if request.param == "int8":
        param, archive = folder / "digits.pnnx.param", folder / "digits.pnnx.bin"
        plain = RuntimeGraph(param, backend="numpy")
        plain.build()
        write_sidecar(calibrated(plain, [PICTURES]), param, archive)
    with always_rounding():
        yield load_version("digits", folder, LoadOptions(backend="native", precision=request.param))


def run(model: LoadedModel, rows: Array) -> tuple[Array, tuple[int, ...], int]:
    """Return the outputs, the rows of each part, and how many layers multiply rounded operands."""
    inputs = {model.graph.inputs[0].operand: rows}
    result = run_rows(model, inputs, len(rows), trace=TraceLevel.ON, stop=StopSignal(None))
    assert result.trace is not None
    layers = [layer for layer in result.trace.layers if layer.multiply_adds]
    assert all(layer.backend == "native" for layer in layers)
    rounded = sum(layer.precision == model.graph.precision.value for layer in layers)
    return result.outputs[0], result.trace.pieces, rounded


@pytest.mark.parametrize("rows", [1, 3, 9, 11, 21, ROWS - 1])
def test_rows_in_parts_are_what_pytorch_gives_but_for_what_rounding_loses(
    digits: LoadedModel, rows: int
) -> None:
    outputs, pieces, layers = run(digits, PICTURES[:rows])
    assert len(pieces) > 1 or rows <= 8
    assert layers >= 2
    most = LOSSES[digits.graph.precision.value] * layers**0.5
    assert distance([outputs], [WANTED[:rows]]) <= most
    assert np.isfinite(outputs).all()


def test_no_row_depends_on_those_of_its_part(digits: LoadedModel) -> None:
    others = PICTURES[:11].copy()
    others[[0, 3, 10]] = 100 * others[[5, 6, 7]]
    kept = [row for row in range(11) if row not in (0, 3, 10)]
    (outputs, pieces, _), (changed, again, _) = run(digits, PICTURES[:11]), run(digits, others)
    assert pieces == again
    assert len(pieces) > 1
    assert changed[kept].tobytes() == outputs[kept].tobytes()
    assert changed[0].tobytes() != outputs[0].tobytes()
