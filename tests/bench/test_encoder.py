"""The encoder that the benchmark of lengths runs takes sentences of any length, and kernels run it."""

from pathlib import Path

import numpy as np

from engine import RuntimeGraph, TraceLevel
from tests.bench.encoder import WORDS, write_encoder


def test_any_length_runs_on_both_backends(tmp_path: Path) -> None:
    param = write_encoder(tmp_path, 1, 32)
    plain, native = (RuntimeGraph(param, backend=backend) for backend in ("numpy", "native"))
    plain.build()
    native.build()
    outputs = []
    for length in (7, 12):
        sentence = np.random.default_rng(length).integers(0, WORDS, (1, length))
        result = native.run([sentence], trace=TraceLevel.ON)
        assert result.trace is not None
        assert "native" in {layer.backend for layer in result.trace.layers}
        wanted = plain.forward([sentence])[0]
        np.testing.assert_allclose(result.outputs[0], wanted, rtol=1e-4, atol=1e-5)
        outputs.append(wanted)
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-3
