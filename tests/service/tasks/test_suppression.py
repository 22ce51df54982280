from pathlib import Path

import numpy as np
import pytest

from service.tasks.suppression import suppress

GOLDEN = Path(__file__).parents[2] / "golden" / "detection.npz"


@pytest.mark.parametrize("most", [1000, 3])
@pytest.mark.parametrize("kind", ["each", "all"])
@pytest.mark.parametrize("name", ["few", "many", "one", "none"])
def test_boxes_that_pytorch_keeps(name: str, kind: str, most: int) -> None:
    with np.load(GOLDEN) as golden:
        boxes, scores, classes, kept = (
            golden[f"nms/{name}/{key}"] for key in ("boxes", "scores", "classes", kind)
        )
    found = suppress(boxes, scores, classes if kind == "each" else None, 0.45, most)
    np.testing.assert_array_equal(found, kept[:most])


def test_as_many_clusters_as_boxes_of_a_large_picture() -> None:
    """25,200 boxes about 50 places: one remains for each, the most probable."""
    rng = np.random.default_rng(0)
    places = np.stack(np.meshgrid(np.arange(10), np.arange(5)), -1).reshape(-1, 2) * 60.0
    which = rng.integers(0, 50, 25_200)
    boxes = np.concatenate([places, places + 50], axis=1)[which] + rng.random((25_200, 4))
    scores = rng.permutation(25_200).astype(np.float32)
    kept = suppress(boxes.astype(np.float32), scores, None, 0.5, 300)
    best = sorted(int(np.flatnonzero(which == place)[scores[which == place].argmax()]) for place in range(50))
    assert sorted(kept.tolist()) == best
    assert scores[kept].tolist() == sorted(scores[kept].tolist(), reverse=True)


def test_boxes_without_area_do_not_drop_each_other() -> None:
    assert suppress(np.zeros((3, 4), np.float32), np.ones(3, np.float32), None, 0.5, 10).tolist() == [0, 1, 2]
