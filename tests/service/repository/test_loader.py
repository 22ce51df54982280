"""Versions of a model, as its folder has them."""

from pathlib import Path
from typing import Any

import pytest

from service.config.model_config import FILE_NAME
from service.config.override import ConfigOverride
from service.config.settings import Settings
from service.repository.model_entry import ModelEntry
from service.repository.model_loader import ModelLoader
from tests.service.models import DIGIT, DIGIT_CONFIG, UNKNOWN_LAYER, VECTOR, add_model, add_versions


def load(root: Path, name: str = "m", **override: Any) -> ModelEntry:
    loader = ModelLoader(Settings(models=root))
    return loader.load(name, loader.folders()[name], ConfigOverride(**override) if override else None)


def test_every_version_is_loaded_lowest_first(tmp_path: Path) -> None:
    add_versions(tmp_path, "m", {"10": VECTOR, "2": DIGIT})
    entry = load(tmp_path)
    assert [(v, model.name, model.version) for v, model in entry.versions.items()] == [
        ("2", "m", "2"),
        ("10", "m", "10"),
    ]
    assert entry.default is entry.versions["10"]
    assert entry.reason == ""


def test_flat_folder_is_version_one(tmp_path: Path) -> None:
    add_model(tmp_path, "m", VECTOR)
    assert list(load(tmp_path).versions) == ["1"]


@pytest.mark.parametrize(
    ("policy", "served"), [('"all"', ["1", "2", "3"]), ('"latest"', ["3"]), ("[3, 1]", ["1", "3"])]
)
def test_configuration_says_which_versions_are_served(tmp_path: Path, policy: str, served: list[str]) -> None:
    folder = add_versions(tmp_path, "m", dict.fromkeys("123", VECTOR))
    (folder / "model.toml").write_text(f"versions = {policy}\n")
    assert list(load(tmp_path).versions) == served
    assert list(load(tmp_path, version_policy={"specific": {"versions": [2]}}).versions) == ["2"]


def test_version_that_is_not_there_is_named(tmp_path: Path) -> None:
    folder = add_versions(tmp_path, "m", {"1": VECTOR})
    (folder / "model.toml").write_text("versions = [1, 4]\n")
    assert load(tmp_path).reason == "m/model.toml, versions: there is no version 4; there are 1"


def test_version_takes_the_models_configuration_or_its_own(tmp_path: Path) -> None:
    folder = add_versions(tmp_path, "m", {"1": DIGIT, "2": DIGIT})
    (folder / "model.toml").write_text(DIGIT_CONFIG)
    (folder / "2" / "labels.txt").write_text("\n".join("abcdefghij"))
    (folder / "2" / "model.toml").write_text('task = "classification"\nlabels = "labels.txt"\n')
    versions = load(tmp_path).versions
    assert (versions["1"].config.labels or ())[0] == "p0"
    assert versions["2"].config.labels == tuple("abcdefghij")
    assert versions["2"].config.image is None


def test_version_does_not_say_which_versions_are_served(tmp_path: Path) -> None:
    folder = add_versions(tmp_path, "m", {"1": VECTOR})
    (folder / "1" / "model.toml").write_text('versions = "latest"\n')
    assert load(tmp_path).reason == (
        "m/1/model.toml, versions: given for one version; expected it in the model.toml above"
    )


def test_broken_version_leaves_the_others(tmp_path: Path) -> None:
    folder = add_versions(tmp_path, "m", {"1": VECTOR, "2": UNKNOWN_LAYER, "3": VECTOR})
    (folder / "3" / "model.bin").write_bytes(b"no zip")
    entry = load(tmp_path)
    assert list(entry.versions) == ["1"]
    second, third = entry.reason.split("; version 3: ")
    assert second.startswith("version 2: 1 unsupported operator: nn.RELU relu")
    assert third.startswith("m/3/model.bin: ")


def test_what_is_wrong_with_the_whole_model_is_reported_once(tmp_path: Path) -> None:
    folder = add_versions(tmp_path, "m", {"1": VECTOR})
    (folder / "model.toml").write_text("versions = 3\n")
    problem = 'expected "all", "latest" or a list of version numbers from 1, got 3'
    assert load(tmp_path).unavailable == {"": f"m/model.toml, versions: {problem}"}
    add_model(tmp_path, "a b", VECTOR)
    assert "'a b' is not a model name" in load(tmp_path, "a b").reason


def test_override_stands_in_for_the_configuration(tmp_path: Path) -> None:
    folder = add_model(tmp_path, "m", VECTOR)
    (folder / "model.toml").write_text("[batching]\nmax_batch_size = 4\nmax_queue_delay_ms = 9\n")
    changes = {"preferred_batch_size": [2], "max_queue_delay_microseconds": 500}
    batching = load(tmp_path, max_batch_size=8, dynamic_batching=changes).versions["1"].config.batching
    assert (batching.max_batch_size, batching.preferred_batch_sizes, batching.max_queue_delay_ms) == (
        8,
        (2,),
        0.5,
    )
    kept = load(tmp_path, max_batch_size=0).versions["1"].config.batching
    assert (kept.max_batch_size, kept.max_queue_delay_ms) == (1, 9)


def test_override_that_does_not_go_with_the_configuration_is_reported(tmp_path: Path) -> None:
    add_model(tmp_path, "m", VECTOR)
    entry = load(tmp_path, max_batch_size=2, dynamic_batching={"preferred_batch_size": [4]})
    assert entry.reason == (
        "configuration, dynamic_batching: a preferred batch size is larger than max_batch_size = 2"
    )


def test_missing_labels_are_named_with_their_folder_but_not_where_that_is(tmp_path: Path) -> None:
    (add_model(tmp_path, "m", DIGIT) / FILE_NAME).write_text('labels = "labels.txt"\n')
    reason = load(tmp_path).reason
    assert reason.startswith("m/model.toml, labels: m/labels.txt cannot be read: No such file or directory;")
    assert str(tmp_path) not in reason


def test_reason_is_short_however_long_a_key_is(tmp_path: Path) -> None:
    (add_model(tmp_path, "m", DIGIT) / FILE_NAME).write_text(f'"{"k" * 2_000_000}" = 1\n')
    reason = load(tmp_path).reason
    assert reason.startswith("m/model.toml, kkkk")
    assert len(reason) < 5000
