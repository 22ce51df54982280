"""Inputs of ONNX files: which sizes are dynamic."""

import pytest

from service.export.onnx_source import input_of


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [
        ((1, 3, 224, 224), (1, 3, 224, 224)),
        ((0, 3, 1, 2), (1, 3, 1, 2)),
        ((0, 3, 0, 0), (1, 3, 224, 224)),
        ((1, 0), (1, 16)),
        ((1,), (1,)),
    ],
)
def test_dynamic_sizes_are_those_that_the_file_does_not_state(
    sizes: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    found = input_of(sizes, "f32", "x")
    assert found.shape == shape
    assert found.is_dynamic == tuple(size == 0 for size in sizes)
