"""Models that cannot run as their files declare are not served, warmed up or not."""

from pathlib import Path

import pytest

from engine import KuiperError
from service.config.model_config import ModelConfigError
from service.repository.version_loader import LoadOptions, load_version
from tests.engine.models import write_model

ODD = "pnnx.Input in 0 1 a #a={shape}f32\nTensor.reshape odd 1 1 a b shape=(7,-1) $input=a\npnnx.Output out 1 0 b"


@pytest.mark.parametrize("warm", [True, False])
def test_model_that_does_not_run_on_its_declared_shapes_is_refused(tmp_path: Path, warm: bool) -> None:
    write_model(tmp_path, ODD.format(shape="(2,3)"))
    with pytest.raises(KuiperError, match="Tensor.reshape odd"):
        load_version("m", tmp_path, LoadOptions(warm_up=warm))


@pytest.mark.parametrize("warm", [True, False])
def test_sizes_that_nothing_shows_prove_nothing(tmp_path: Path, warm: bool) -> None:
    write_model(tmp_path, ODD.format(shape="(?,3)"))
    assert load_version("m", tmp_path, LoadOptions(warm_up=warm)).warmed_up == ()


@pytest.mark.parametrize("warm", [True, False])
def test_listed_sizes_are_tried(tmp_path: Path, warm: bool) -> None:
    write_model(tmp_path, ODD.format(shape="(?,3)"))
    (tmp_path / "model.toml").write_text("[warm_up]\nshapes = [[7, 3], [8, 3]]\n")
    with pytest.raises(ModelConfigError, match=r"does not run on \[8, 3\]: Tensor.reshape odd"):
        load_version("m", tmp_path, LoadOptions(warm_up=warm))
