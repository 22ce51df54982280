import json

import numpy as np
import pytest

from service.tasks.run_lengths import decode_counts, encode_counts, encode_mask, find_runs, sample_counts
from tests.service.tasks.masks import GOLDEN, draw_masks

MASKS = draw_masks()


@pytest.mark.parametrize("name", MASKS)
def test_as_the_tools_of_coco(name: str) -> None:
    expected, mask = json.loads(GOLDEN.read_text())[name], MASKS[name]
    assert encode_mask(mask) == {"size": mask.shape, "counts": expected["counts"]}
    runs = find_runs(mask)
    assert runs.area(1) == expected["area"]
    assert list(runs.box(1)) == expected["box"]
    np.testing.assert_array_equal(decode_counts(expected["counts"], mask.shape), mask)
    rows, columns = np.arange(0, mask.shape[0], 3), np.arange(1, mask.shape[1], 2)
    sampled = sample_counts(expected["counts"], mask.shape[0], rows, columns)
    np.testing.assert_array_equal(sampled, mask[::3, 1::2])


def test_an_empty_mask() -> None:
    runs = find_runs(np.zeros((3, 4), bool))
    assert runs.counts(1).tolist() == [12]
    assert not decode_counts(encode_counts(runs.counts(1)), (3, 4)).any()


def test_classes_share_runs() -> None:
    values = np.array([[2, 2, 0], [2, 7, 0]])
    runs = find_runs(values)
    for value in (0, 2, 7):
        mask = values == value
        assert encode_counts(runs.counts(value)) == encode_mask(mask)["counts"]
        assert runs.area(value) == mask.sum()
