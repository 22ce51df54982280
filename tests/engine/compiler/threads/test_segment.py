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


@pytest.mark.parametrize("chunks", [0, -1])
def test_steps_without_work_are_refused(chunks: int) -> None:
    with pytest.raises(ValueError, match="at least one chunk"):
        Segment([NativeStep(compiled(Gate()), 0, 1), NativeStep(compiled(Gate()), 0, chunks)])
