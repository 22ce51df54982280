"""Networks with weights of four bits against PyTorch in float32, and against numpy with the same weights."""

from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph, TraceLevel, pnnx
from engine.dtypes import Array
from engine.quantization.int4 import rounded_to_int4
from tests.golden.encoder import golden_outputs, sentence, write_golden_encoder
from tests.golden.network_data import DATA, arrays
from tests.golden.rounded_networks import INPUTS, NOT_FINITE, ORDINARY, distance, sampled

MAX_ERROR = 2.0**-3
"""Share of the outputs that rounding all weights may cost these networks."""
LENGTHS = (1, 2, 7, 31, 64, 130)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_golden_encoder(tmp_path_factory.mktemp("encoder"))


def opened(param: Path, backend: str = "native", threads: int = 1) -> RuntimeGraph:
    graph = RuntimeGraph(param, precision="int4", backend=backend, threads=threads, verify="always")
    graph.build()
    return graph


def layers_of(graph: RuntimeGraph, inputs: list[Array]) -> int:
    trace = graph.run(inputs, trace=TraceLevel.ON).trace
    assert trace is not None
    return sum(layer.precision == "int4" and layer.multiply_adds > 0 for layer in trace.layers)


def test_encoder(encoder: Path) -> None:
    """At lengths that its file leaves open, by programs for one length and for all."""
    graph, plain = opened(encoder), opened(encoder, "numpy")
    assert layers_of(graph, [sentence(7)]) == layers_of(plain, [sentence(7)]) == 13
    for length in LENGTHS:
        (output,), (reference,) = graph([sentence(length)]), plain([sentence(length)])
        np.testing.assert_allclose(output, reference, rtol=1e-4, atol=1e-5 * np.abs(reference).max())
        assert distance([output], [golden_outputs()[length - 1][None]]) <= MAX_ERROR
    assert graph.verification.checked
    assert not graph.verification.refused


def test_encoder_with_weights_rounded_in_its_file(encoder: Path, tmp_path: Path) -> None:
    """It computes in float32 what the precision `int4` computes of the weights that are not rounded."""
    model = pnnx.read(encoder, encoder.with_suffix(".bin"))
    for operator in model.operators:
        if operator.type == "nn.Linear":
            weight = rounded_to_int4(operator.attrs["weight"].array())
            operator.attrs["weight"] = pnnx.Attribute.from_array(weight)
    pnnx.write(model, tmp_path / "rounded.param", tmp_path / "rounded.bin")
    plain = RuntimeGraph(tmp_path / "rounded.param")
    plain.build()
    graph = opened(encoder)
    for length in LENGTHS:
        (output,), (expected,) = graph([sentence(length)]), plain([sentence(length)])
        np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_threads_do_not_change_a_bit(encoder: Path) -> None:
    graphs = [opened(encoder, threads=threads) for threads in (1, 2, 3)]
    for length in (1, 33, 130):
        one, *others = (graph([sentence(length)])[0] for graph in graphs)
        assert all(other.tobytes() == one.tobytes() for other in others)


def test_exported_network() -> None:
    """A vision transformer as the exporter wrote it: two of its linear layers have a multiple of 32 features."""
    graph = opened(DATA / "vit" / "vit.pnnx.param")
    plain = opened(DATA / "vit" / "vit.pnnx.param", "numpy")
    with np.load(DATA / "vit" / "rounded.npz") as archive:
        wanted = {kind: archive[f"{kind}/out_0"] for kind in INPUTS}
    for kind, change in INPUTS.items():
        inputs = [change(array) for array in arrays("vit", "file", "in")]
        (output,), (reference,) = graph(inputs), plain(inputs)
        finite = np.isfinite(wanted[kind])
        if kind in ORDINARY:
            np.testing.assert_allclose(output, reference, rtol=1e-4, atol=1e-5 * np.abs(reference).max())
            assert distance([sampled(output)], [wanted[kind]]) <= MAX_ERROR
        if kind in NOT_FINITE:
            assert not np.isfinite(sampled(output))[~finite].any()
        else:
            assert np.isfinite(sampled(output))[finite].all()
    assert layers_of(graph, arrays("vit", "file", "in")) == 2
    assert not graph.verification.refused
