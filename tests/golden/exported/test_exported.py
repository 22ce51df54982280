"""Networks that `kuiper export` repairs, against what PyTorch computed, at the shapes of the export and at others."""

from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.param")))
def test_what_the_export_repairs_matches_pytorch(name: str, backend: str) -> None:
    graph = RuntimeGraph(DATA / f"{name}.param", DATA / f"{name}.bin", backend=backend)
    graph.build()
    with np.load(DATA / f"{name}.npz") as arrays:
        runs = sorted({key.partition("/")[0] for key in arrays})
        for run in runs:
            inputs, wanted = (
                [arrays[key] for key in sorted(arrays) if key.startswith(f"{run}/{side}")]
                for side in ("in", "out")
            )
            outputs = graph.forward(inputs)
            assert len(outputs) == len(wanted)
            for output, expected in zip(outputs, wanted, strict=True):
                assert (output.shape, output.dtype) == (expected.shape, expected.dtype)
                np.testing.assert_allclose(output, expected, rtol=1e-5, atol=3e-6 * np.abs(expected).max())
