"""Bodies without a JSON part: which input they are, of which shape."""

import pytest

from engine import Port
from service.config.model_config import ModelConfig
from service.errors import ServiceError
from service.v2.raw import raw_input


def shape_of(
    declared: tuple[int | None, ...] | None, size: int, dynamic_batch: bool = False
) -> tuple[int, ...]:
    port = Port("in", "0", declared, "f32")
    tensor, data = raw_input(memoryview(bytes(size)), [port], ModelConfig(), dynamic_batch)
    assert (tensor.name, tensor.datatype, tensor.binary_size) == ("0", "FP32", size)
    assert len(data) == size
    return tensor.shape


@pytest.mark.parametrize(
    ("declared", "size", "dynamic_batch", "shape"),
    [
        ((2, 3), 24, False, (2, 3)),
        ((None, 3), 12, False, (1, 3)),
        ((4, 3), 12, True, (1, 3)),
        ((None, None), 20, False, (1, 5)),
        ((3, None), 24, False, (3, 2)),
        ((None,), 20, False, (5,)),
        ((0, None), 0, False, (0, 0)),
        (None, 8, False, (2,)),
    ],
)
def test_dynamic_dimensions_follow_from_the_size(
    declared: tuple[int | None, ...] | None, size: int, dynamic_batch: bool, shape: tuple[int, ...]
) -> None:
    assert shape_of(declared, size, dynamic_batch) == shape


def test_two_dynamic_dimensions_behind_the_batch_cannot_be_inferred() -> None:
    with pytest.raises(ServiceError, match="describe it in JSON"):
        shape_of((None, 3, None, None), 24)
