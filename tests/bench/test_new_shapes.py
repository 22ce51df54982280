"""What the benchmark of new shapes sends, and what it makes of times."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.bench.new_shapes import MODELS, SHAPES, Round, ratio_of, row


@pytest.mark.parametrize("name", list(MODELS))
def test_each_new_shape_is_another_one(tmp_path: Path, name: str) -> None:
    model = MODELS[name](tmp_path, "bf16")
    shapes = [np.shape(json.loads(body)["inputs"][0]["data"]) for body in (model.steady, *model.new)]
    assert len(set(shapes)) == len(shapes) == SHAPES + 1
    assert all(before < after for before, after in pairwise(shapes))
    assert (model.folder / "model.toml").read_text().startswith('precision = "bf16"')


def test_the_ratio_is_the_median_of_rounds() -> None:
    rounds = [Round(0.01, 0.02, 0.01, 1.0), Round(0.01, 0.05, 0.01, 2.0), Round(0.02, 0.02, 0.01, 3.0)]
    assert ratio_of(rounds) == pytest.approx(2.0)
    assert (
        row("digits", "f32", rounds) == "| digits | f32 | 10.0 | 20.0 | 2.00 | 1.00 to 5.00 | 10.0 | 2.00 |"
    )
