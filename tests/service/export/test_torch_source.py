"""Modules of PyTorch as sources: what becomes of their weights meanwhile."""

from pathlib import Path

import numpy as np
import pytest

from service.export.torch_source import ModuleSource


def test_weights_rest_in_a_file_until_they_are_needed(tmp_path: Path) -> None:
    """Also those that two layers share; small ones stay, and a trace has the same."""
    torch = pytest.importorskip("torch")
    first, second = torch.nn.Linear(2048, 2048), torch.nn.Linear(2048, 2048)
    second.weight = first.weight
    source = ModuleSource("two layers", torch.nn.Sequential(first, second, torch.nn.Linear(2048, 3)).eval())
    x = [np.random.default_rng(0).standard_normal((1, 2048)).astype(np.float32)]
    source.save(tmp_path, x)
    wanted, tensors = source.run(x)[0], source.results(x)
    source.rest(tmp_path)
    source.rest(tmp_path)
    assert first.weight.untyped_storage().nbytes() == 0
    assert (tmp_path / "weights").stat().st_size == 4 * 2048 * 2048
    for ours, before in zip(source.results(x), tensors, strict=True):
        np.testing.assert_array_equal(ours.array, before.array)
    np.testing.assert_array_equal(source.run(x)[0], wanted)
    source.rest(tmp_path)
    np.testing.assert_array_equal(source.weight("0.weight"), second.weight.detach().numpy())
