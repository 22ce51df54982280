"""Whole networks against what PyTorch computed, on the shapes of the file and on others."""

import numpy as np
import pytest

from engine import TensorSpec, TraceLevel
from engine.spec import spec_of
from tests.golden.network_data import NAMES, arrays, open_network


@pytest.mark.parametrize("run", ["file", "other"])
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", NAMES)
def test_network_matches_pytorch(name: str, backend: str, run: str) -> None:
    graph = open_network(name, backend)
    inputs = arrays(name, run, "in")
    outputs = graph.forward(inputs)
    expected = arrays(name, run, "out")
    assert len(outputs) == len(expected)
    for output, wanted in zip(outputs, expected, strict=True):
        assert (output.shape, output.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
    plan = graph.plan([TensorSpec(array.shape, array.dtype) for array in inputs])
    assert [plan.specs[port.operand] for port in graph.outputs] == [spec_of(output) for output in outputs]


@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_change_results(name: str) -> None:
    inputs = arrays(name, "file", "in")
    alone = open_network(name, "native").forward(inputs)
    for threads in (2, 3):
        for output, wanted in zip(open_network(name, "native", threads).forward(inputs), alone, strict=True):
            np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_do_almost_all_of_a_network(name: str) -> None:
    trace = open_network(name, "native").run(arrays(name, "file", "in"), trace=TraceLevel.ON).trace
    assert trace is not None
    left = [layer.type for layer in trace.layers if layer.backend == "numpy"]
    assert set(left) <= {
        "pnnx.Input",
        "pnnx.Output",
        "pnnx.Expression",
        "prim::TupleConstruct",
    }


def test_detect_head_decodes_other_image_sizes() -> None:
    """The kept module computes what the same network does when its head is exported operator by operator."""
    raw, whole = open_network("yolov5_raw"), open_network("yolov5_moduleop")
    image = np.random.default_rng(0).random((2, 3, 96, 32), np.float32)
    boxes = whole.forward([image])[0]
    heads = raw.forward([image])
    assert boxes.shape[1] == sum(np.prod(head.shape[1:4]) for head in heads)
    scores = np.concatenate([head.reshape(2, -1, head.shape[-1]) for head in heads], axis=1)[..., 4:]
    np.testing.assert_allclose(boxes[..., 4:], 1 / (1 + np.exp(-scores)), rtol=1e-4, atol=1e-6)
    first = 1 / (1 + np.exp(-heads[0][..., :2]))
    rows, columns = heads[0].shape[2:4]
    y, x = np.mgrid[:rows, :columns]
    centres = (2 * first + np.stack([x, y], -1) - 0.5) * 8
    np.testing.assert_allclose(
        boxes[:, : 3 * rows * columns, :2], centres.reshape(2, -1, 2), rtol=1e-4, atol=1e-4
    )
