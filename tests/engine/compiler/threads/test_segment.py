"""What a segment takes."""

import pytest

from engine.compiler.threads.segment import NativeStep, Segment
from tests.engine.compiler.tiny import Gate, Work, compiled


def test_a_segment_knows_its_length_and_whether_threads_can_share_it() -> None:
    assert len(Work([1, 1, 1]).segment) == 3
    assert not Work([1, 1, 1]).segment.is_wide
    assert Work([1, 2, 1]).segment.is_wide


def test_a_segment_has_steps() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Segment([])


@pytest.mark.parametrize(("offset", "chunks"), [(0, 0), (0, -1), (0, 2**31), (-1, 1)])
def test_numbers_that_make_no_sense_are_refused(offset: int, chunks: int) -> None:
    with pytest.raises(ValueError, match="step 1: .* expected"):
        Segment([NativeStep(compiled(Gate()), 0, 1), NativeStep(compiled(Gate()), offset, chunks)])
