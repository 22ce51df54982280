"""What is said of wrong values in `model.toml` and in settings files."""

from pathlib import Path

import pytest

from service.config.model_config import ModelConfigError, load_model_config
from service.config.setting_file import SettingsError
from service.config.settings import load_settings


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[image]\nsize = 224", "image.size: Input should be a list, got 224"),
        ("[image]\nsize = [1, 2, 3]", "image.size: List should have at most 2 items, not 3, got [1, 2, 3]"),
        ("[image]\nsize = [1]", "image.size.1: Item 2 of the list is required, got [1]"),
        ("image = 5", "image: Input should be a table, got 5"),
        (
            'task = "classification"\nlabels = []',
            "labels: Value should have at least 1 item after validation, not 0, got []",
        ),
        ("[image]\nstd = [1, 2]", "image: std has 2 values; expected 1 or 3 (rgb)"),
        ('[image]\nsize = ["a", 1]', "image.size.0: Input should be a valid integer, got 'a'"),
    ],
)
def test_messages_on_model_files_do_not_name_tuples(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "model.toml").write_text(text)
    with pytest.raises(ModelConfigError) as caught:
        load_model_config(tmp_path)
    path, _, said = str(caught.value).partition(", ")
    assert (path, said) == (str(tmp_path / "model.toml"), problem)


def test_messages_on_settings_files_do_not_name_tuples(tmp_path: Path) -> None:
    (tmp_path / "kuiper.toml").write_text("cors_origins = 5\n")
    with pytest.raises(SettingsError) as caught:
        load_settings({"config": tmp_path / "kuiper.toml"})
    assert str(caught.value) == "cors_origins: input should be a list, got 5"
