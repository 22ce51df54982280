"""Every tensor of a random graph can be looked at while the program that serves runs, and looking changes nothing."""

from pathlib import Path

import numpy as np
import pytest

from engine import KuiperError
from tests.differential.comparison import opened
from tests.differential.generator import random_case

SEED = 777
CASES = 16
SHARE = 1e-3
"""Of the largest element; a tensor that is read too early or too late holds something else altogether."""


@pytest.mark.parametrize("index", range(CASES))
def test_what_is_seen_is_what_numpy_computes(tmp_path: Path, index: int) -> None:
    case = random_case(SEED, index)
    plain, native = opened(case, tmp_path, "numpy"), opened(case, tmp_path, "native", threads=2)
    names = list(plain.operands)
    for run in range(len(case.runs)):
        inputs = case.arrays(run)
        try:
            wanted = plain.run(inputs, capture=names).captured
        except KuiperError:
            continue  # the layers do not take these shapes: no program either
        observed = native.run(inputs, capture=names)
        for output, served in zip(observed.outputs, native.forward(inputs), strict=True):
            np.testing.assert_array_equal(output, served)
        for name, value in wanted.items():
            seen, there = np.asarray(observed.captured[name]), np.asarray(value)
            assert (seen.shape, seen.dtype) == (there.shape, there.dtype)
            if there.dtype.kind in "fiub":
                largest = np.abs(there[np.isfinite(there)].astype(np.float64)).max(initial=1e-3)
                np.testing.assert_allclose(seen, there, rtol=SHARE, atol=SHARE * largest, err_msg=name)
