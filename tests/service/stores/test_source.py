"""What brings the models that the settings name, with the libraries that there are."""

import subprocess
import sys
from pathlib import Path

import pytest

from service.config.setting_file import SettingsError
from service.config.settings import Settings, load_settings
from service.errors import ServiceError
from service.repository.repository import load_repository
from service.stores.file_pool import FilePool
from service.stores.source import open_source
from service.stores.store_source import StoreSource
from tests.service.stores.buckets import MAX_BYTES, URL, Bucket, put_scale
from tests.service.stores.folders import scale_of, write_scale


def test_a_folder_as_obstore_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_CACHE", str(tmp_path / "c"))
    write_scale(tmp_path / "models" / "m" / "1", 4)
    flags = {
        "models": f"file://{tmp_path}/models",
        "poll_seconds": "0.001",
    }
    settings = load_settings(flags | {"backend": "numpy"})
    source = open_source(settings)
    repository = load_repository(settings, source=source)
    assert scale_of(repository.find("m")) == 4
    assert repository.find("m").graph.param_path.is_relative_to(tmp_path / "c")
    source.close()


def test_a_place_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_CACHE", str(tmp_path / "c"))
    write_scale(tmp_path / "a" / "m", 4)
    write_scale(tmp_path / "a?b #50% c" / "m", 5)
    flags = {"models": f"file://{tmp_path}/a%3Fb%20%2350%25%20c"}
    settings = load_settings(flags | {"backend": "numpy", "poll_seconds": "0.001"})
    source = open_source(settings)
    assert scale_of(load_repository(settings, source=source).find("m")) == 5
    source.close()


@pytest.mark.parametrize(
    ("url", "library"), [("s3://bucket/x", "obstore"), ("hf://org/x", "huggingface_hub")]
)
def test_the_extra_is_named_where_it_is_missing(
    url: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("object_store", "hugging_face"):
        monkeypatch.delitem(sys.modules, f"service.stores.{name}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        SettingsError, match=r"models: \w+:// needs an extra .*: pip install -e \'\.\[cloud\]\'"
    ):
        open_source(load_settings({"models": url}))


def test_a_cache_that_others_may_write_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store").chmod(0o777)
    monkeypatch.setenv("KUIPER_CACHE", str(tmp_path))
    with pytest.raises(SettingsError, match="KUIPER_CACHE: .* others may write to it"):
        open_source(load_settings({"models": "s3://bucket/x"}))


def test_servers_of_folders_import_no_library_of_stores() -> None:
    code = (
        "import sys; from service.app import create_app; from service.config.settings import Settings; "
        "create_app(Settings()); print({'obstore', 'huggingface_hub', 'service.stores.store_source'} "
        "& sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_loads_that_clients_ask_for_look_at_the_store(tmp_path: Path) -> None:
    bucket = Bucket()
    put_scale(bucket, tmp_path, "m/1", 1)
    settings = Settings(models=URL, model_control="explicit", backend="numpy", poll_seconds=0.001)
    source = StoreSource(bucket, URL, FilePool(tmp_path / "c", MAX_BYTES), None)
    repository = load_repository(settings, source=source)
    put_scale(bucket, tmp_path, "m/2", 2)
    put_scale(bucket, tmp_path, "n", 3)
    repository.load("m")
    repository.load("n")
    assert [scale_of(model) for model in repository] == [1, 2, 3]
    bucket.is_gone = True
    with pytest.raises(ServiceError) as caught:
        repository.load("n")
    assert (caught.value.status, caught.value.code) == (503, "store_unavailable")
    bucket.is_gone = False
    bucket.delete("n/")
    with pytest.raises(ServiceError) as caught:
        repository.load("n")
    assert caught.value.code == "model_not_found"
    assert scale_of(repository.find("n")) == 3
