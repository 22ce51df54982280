import logging
import os
from pathlib import Path

import pytest

from service.config.settings import Settings
from service.errors import ServiceError
from service.repository.repository import ModelRepository, RepositoryError, load_repository
from tests.service.models import DIGIT, MISMATCH, UNKNOWN_LAYER, VECTOR, add_model, add_models


def refused(models: ModelRepository, name: str | None) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        models.find(name)
    return caught.value


def test_every_model_is_loaded(models: Path) -> None:
    loaded = load_repository(Settings(models=models))
    assert loaded.names == ["digit", "pair", "vector"]
    assert len(loaded) == 3
    assert [model.name for model in loaded] == loaded.names
    assert loaded.find("pair").name == "pair"
    assert [entry.reason for entry in loaded.entries] == ["", "", ""]


def test_unknown_name_lists_what_there_is(models: Path) -> None:
    error = refused(load_repository(Settings(models=models)), "digits")
    assert (error.status, error.code) == (404, "model_not_found")
    assert error.details == {"model": "digits", "models": ["digit", "pair", "vector"], "nearest": ["digit"]}


def test_name_is_required_only_among_several(models: Path) -> None:
    error = refused(load_repository(Settings(models=models)), None)
    assert (error.status, error.code) == (422, "model_required")
    assert error.details == {"models": ["digit", "pair", "vector"]}
    assert load_repository(Settings(models=models / "pair")).find(None).name == "pair"


def test_only_model_is_called_as_the_settings_say(tmp_path: Path) -> None:
    folder = add_model(tmp_path, "mnt", VECTOR)
    for models in (folder, tmp_path):
        loaded = load_repository(Settings(models=models, model_name="cats.v1"))
        assert loaded.names == ["cats.v1"]
        assert loaded.find("cats.v1") is loaded.find(None)
    assert refused(loaded, "mnt").code == "model_not_found"
    with pytest.raises(RepositoryError, match="'a/b' is not a model name; expected letters"):
        load_repository(Settings(models=folder, model_name="a/b"))


def test_name_is_for_a_single_model(models: Path) -> None:
    with pytest.raises(RepositoryError, match=r"model_name is for a single model; .* holds 3"):
        load_repository(Settings(models=models, model_name="cats"))


def test_broken_model_keeps_the_rest_from_being_served(tmp_path: Path) -> None:
    add_models(tmp_path)
    add_model(tmp_path, "unknown", UNKNOWN_LAYER)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RepositoryError) as caught:
        load_repository(Settings(models=tmp_path))
    first, second, hint = str(caught.value).splitlines()
    assert first == "model empty is broken: expected one .param and one .bin file, found none and none"
    assert second.startswith("model unknown is broken: 1 unsupported operator: nn.RELU relu")
    assert "--skip-broken" in hint


def test_broken_model_can_be_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    add_model(tmp_path, "vector", VECTOR)
    folder = add_model(tmp_path, "cut", DIGIT)
    (folder / "model.param").write_text("7767517\n3 2\n")
    with caplog.at_level(logging.WARNING):
        loaded = load_repository(Settings(models=tmp_path, skip_broken=True))
    assert loaded.names == ["vector"]
    reason = loaded.entry("cut").reason
    assert reason.startswith("cut/model.param")
    assert str(tmp_path) not in reason
    assert [record.message for record in caplog.records] == ["model skipped"]
    error = refused(loaded, "cut")
    assert (error.status, error.code) == (503, "model_broken")
    assert error.details["reason"] == reason


def test_nothing_left_to_serve_is_an_error(tmp_path: Path) -> None:
    add_model(tmp_path, "unknown", UNKNOWN_LAYER)
    with pytest.raises(RepositoryError, match="(?s)model unknown is broken: .*no model is left to be served"):
        load_repository(Settings(models=tmp_path, skip_broken=True))


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="there is no folder"):
        load_repository(Settings(models=tmp_path / "nowhere"))


@pytest.mark.parametrize("warm_up", [True, False])
def test_model_that_does_not_run_on_its_declared_shapes_is_broken(tmp_path: Path, warm_up: bool) -> None:
    add_model(tmp_path, "mismatch", MISMATCH)
    with pytest.raises(RepositoryError, match="model mismatch is broken: pnnx.Expression sum"):
        load_repository(Settings(models=tmp_path, warm_up=warm_up))


def test_fault_of_the_server_is_logged_with_its_traceback(
    models: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("service.repository.model_loader.load_version", fail)
    with pytest.raises(RepositoryError, match="model digit is broken: ZeroDivisionError: oops"):
        load_repository(Settings(models=models))
    assert caplog.records[0].exc_info is not None


def test_names_that_are_no_text_can_be_sent_to_clients(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add_model(tmp_path, "vector", VECTOR)
    strange = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    strange.mkdir()
    files = tmp_path / "two"
    files.mkdir()
    for name in (b"/\xe9.param", b"/\xea.param"):
        Path(os.fsdecode(os.fsencode(files) + name)).touch()
    (tmp_path / "stray.pt").touch()
    loaded = load_repository(Settings(models=tmp_path, skip_broken=True, model_control="explicit"))
    assert [entry.name for entry in loaded.entries] == ["caf\\xe9", "two", "vector"]
    assert "found \\xe9.param, \\xea.param and none" in loaded.entry("two").reason
    for line in loaded.index():
        f"{line.name} {line.reason}".encode()  # raises where a name is no text
    assert caplog.records[0].getMessage().startswith("stray.pt in the folder of models is not served")


def test_pipe_in_the_place_of_a_configuration_breaks_its_model_alone(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    os.mkfifo(add_model(tmp_path, "pipe", VECTOR) / "model.toml")
    loaded = load_repository(Settings(models=tmp_path, skip_broken=True))
    assert loaded.names == ["vector"]
    assert loaded.entry("pipe").reason.startswith("pipe/model.toml: cannot be read: it is a pipe")
