"""Arrays that a model is tried on, and shapes that it is tried at."""

from collections.abc import Sequence

import numpy as np
import pytest

from engine import Array
from service.export.errors import ExportError
from service.export.input_spec import parse_input
from service.export.second_shape import dynamic_specs, further_inputs, second_inputs
from service.export.trial import Trial
from tests.service.export.stand_in import LinearSource


@pytest.mark.parametrize("words", [1, 2, 3, 100, 30522, 65536])
def test_whole_numbers_cover_the_vocabulary(words: int) -> None:
    def run(arrays: Sequence[Array]) -> list[Array]:
        if arrays[0].min() < 0 or arrays[0].max() >= words:
            raise ExportError("index out of range")
        return [arrays[0].astype(np.float32)]

    spec = parse_input("1,64:i64")
    trial = Trial([spec], [spec.shape], run)
    seen = np.concatenate([trial.arrays([(1, 5000)], place)[0] for place in range(4)], axis=None)
    assert 0 <= seen.min() <= words // 100
    assert words - 1 - words // 100 <= seen.max() < words


def test_numbers_have_both_signs_unless_the_model_minds() -> None:
    spec = parse_input("2,50")
    (plain,) = Trial([spec], [spec.shape], lambda arrays: [arrays[0]]).arrays([spec.shape])
    assert plain.min() < -0.5
    assert plain.max() > 0.5
    with np.errstate(invalid="ignore"):
        (root,) = Trial([spec], [spec.shape], lambda arrays: [np.sqrt(arrays[0])]).arrays([spec.shape])
    assert root.min() >= 0


def test_masks_hide_both_ends_alternately() -> None:
    spec = parse_input("3,8:i64")
    named = type(spec)(spec.shape, spec.is_dynamic, spec.dtype, "attention_mask")
    trial = Trial([named], [named.shape], list)
    one, other = (trial.arrays([named.shape], place)[0] for place in (0, 1))
    assert one.tolist() == [[1] * 6 + [0] * 2, [0] * 2 + [1] * 6, [1] * 6 + [0] * 2]
    assert other.tolist() == one[[1, 0, 1]].tolist()


def test_a_model_that_does_not_run_is_quoted() -> None:
    def run(arrays: Sequence[Array]) -> list[Array]:
        raise ExportError(f"no: {arrays[0].shape}")

    with pytest.raises(ExportError, match=r"no: \(1, 4\)"):
        Trial([parse_input("1,4")], [(1, 4)], run)


class Lengths(LinearSource):
    """A model of sequences whose length is a multiple of `step`, of at most `longest`."""

    step, longest = 1, 10**6

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        length = arrays[0].shape[1]
        if length % self.step or length > self.longest:
            raise ExportError(f"length {length}")
        return [arrays[0]]


def shapes(text: str, source: LinearSource) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the second shapes for the exporter and those of the comparison."""
    spec = parse_input(text)
    trial = Trial([spec], [spec.shape], source.run)
    seconds = [arrays[0].shape for arrays in second_inputs(source, [spec], trial)]
    return seconds, [arrays[0].shape for arrays in further_inputs(source, [spec], trial)]


def test_a_second_length_differs_behind_any_stride() -> None:
    seconds, further = shapes("?,16000?", Lengths())
    assert seconds[0] == (2, 32000)
    smaller, larger = further
    assert smaller[1] < 16000 < 2 * 16000 < larger[1]
    assert smaller[0] != larger[0]
    for stride in (2, 3, 5, 32, 320):
        assert len({16000 // stride, smaller[1] // stride, larger[1] // stride}) == 3
    assert any(length % stride for length in (smaller[1], larger[1]) for stride in (2, 320))


def test_lengths_that_a_model_does_not_take_are_not_tried() -> None:
    class Picky(Lengths):
        step, longest = 32, 600

    seconds, further = shapes("1,512?", Picky())
    assert seconds
    assert all(length % 32 == 0 and length <= 600 for _, length in seconds)
    assert [length for _, length in further] == [480]


def test_fixed_sizes_are_compared_with_other_values() -> None:
    spec = parse_input("1,4")
    source = LinearSource()
    trial = Trial([spec], [spec.shape], source.run)
    (further,) = further_inputs(source, [spec], trial)
    assert further[0].shape == (1, 4)
    assert not np.array_equal(further[0], trial.arrays([spec.shape])[0])


def test_dimensions_that_may_vary_are_found() -> None:
    spec = parse_input("1,4")
    source = LinearSource()
    (found,) = dynamic_specs(source, [spec], Trial([spec], [spec.shape], source.run))
    assert found.is_dynamic == (True, False)
