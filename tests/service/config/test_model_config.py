import os
from pathlib import Path

import pytest

from service.config.model_config import (
    ImageConfig,
    ModelConfig,
    ModelConfigError,
    load_model_config,
)
from service.tasks.classification import ClassificationConfig
from tests.cases import check_each


def load(folder: Path, text: str) -> ModelConfig:
    (folder / "model.toml").write_text(text, encoding="utf-8")
    return load_model_config(folder)


def refused(folder: Path, text: str, key: str | None, *parts: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        load(folder, text)
    assert caught.value.key == key
    assert caught.value.path == folder / "model.toml"
    assert str(caught.value).startswith(str(folder / "model.toml"))
    for part in parts:
        assert part in str(caught.value)


def test_no_file_is_a_raw_model(tmp_path: Path) -> None:
    config = load_model_config(tmp_path)
    assert config == ModelConfig()
    assert (config.task, config.labels, config.image) == ("raw", None, None)


def test_every_key(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        task = "classification"
        description = "Reads digits."
        labels = ["a", "b"]
        [image]
        size = [32, 64]
        colour = "bgr"
        resize = "crop"
        crop_fraction = 0.875
        pad = 114
        resample = "bicubic"
        scale = 1
        mean = [1, 2.5, 3]
        std = 2
        [classification]
        output = "9"
        softmax = true
        top_k = 3
        """,
    )
    assert config.task_table(ClassificationConfig) == ClassificationConfig(output="9", softmax=True, top_k=3)
    assert config == ModelConfig.model_validate(
        {
            "task": "classification",
            "description": "Reads digits.",
            "labels": ("a", "b"),
            "image": ImageConfig(
                size=(32, 64),
                colour="bgr",
                resize="crop",
                crop_fraction=0.875,
                pad=114,
                resample="bicubic",
                scale=1,
                mean=(1, 2.5, 3),
                std=(2,),
            ),
            "classification": {"output": "9", "softmax": True, "top_k": 3},
        }
    )


def test_defaults_of_the_image_table(tmp_path: Path) -> None:
    config = load(tmp_path, "[image]").image
    assert config is not None
    assert (config.size, config.colour, config.resize, config.resample) == (
        None,
        "rgb",
        "stretch",
        "bilinear",
    )
    assert (config.scale, config.mean, config.std) == (1 / 255, (0,), (1,))
    assert config.channels == 3
    assert ImageConfig(colour="gray").channels == 1


def test_labels_file(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes("\ufeffzero\r\nähnlich \nthe third\n\n".encode())
    config = load(tmp_path, 'task = "classification"\nlabels = "labels.txt"')
    assert config.labels == ("zero", "ähnlich", "the third")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (None, "cannot be read"),
        (b"", "line 1 is empty"),
        (b"a\n\nb\n", "line 2 is empty"),
        (b"\xff", "cannot be read"),
    ],
)
def test_bad_labels_file(tmp_path: Path, content: bytes | None, part: str) -> None:
    if content is not None:
        (tmp_path / "labels.txt").write_bytes(content)
    refused(tmp_path, 'task = "classification"\nlabels = "labels.txt"', "labels", "labels.txt", part)


@pytest.mark.parametrize("name", ["../labels.txt", "/etc/passwd", "sub/labels.txt", "..", "", "a\\u0000b"])
def test_labels_file_lies_beside(tmp_path: Path, name: str) -> None:
    refused(tmp_path, f'task = "classification"\nlabels = "{name}"', "labels")


def test_invalid(tmp_path: Path) -> None:
    cases = [
        ("task = ", None, "cannot be read"),
        ('task = "sorting"', "task", "should be 'classification', "),
        ("task = 3", "task", "got 3"),
        (
            "colour = 3",
            "colour",
            "known keys: task, description, labels, versions, precision, tolerance, image",
        ),
        ("[image]\ncolor = 'rgb'", "image.color", "known keys: size, colour"),
        (
            "[classification]\nk = 1",
            "classification.k",
            "known keys: output, softmax, sigmoid, threshold, top_k",
        ),
        ("image = 3", "image", "got 3"),
        ("labels = ['a']", None, 'expected task = "classification"'),
        ("[classification]\ntop_k = 3", None, 'expected task = "classification"'),
        ("task = 'classification'\nlabels = []", "labels", "at least 1"),
        ("task = 'classification'\nlabels = [1]", "labels.0", "valid string"),
        ("task = 'classification'\nlabels = 3", "labels", "got 3"),
        ("task = 'classification'\nclassification.top_k = 0", "classification.top_k", "got 0"),
        ("task = 'classification'\nclassification.softmax = 1", "classification.softmax", "valid boolean"),
        ("[image]\nsize = 28", "image.size", "got 28"),
        ("[image]\nsize = [28]", "image.size.1", "required"),
        ("[image]\nsize = [28, 0]", "image.size.1", "got 0"),
        ("[image]\nsize = [28, 100000]", "image.size.1", "got 100000"),
        ("[image]\nsize = [28, '28']", "image.size.1", "got '28'"),
        ("[image]\nresize = 'squeeze'", "image.resize", "got 'squeeze'"),
        ("[image]\npad = 256", "image.pad", "got 256"),
        ("[image]\nscale = 0", "image.scale", "got 0"),
        ("[image]\nscale = nan", "image.scale", "got nan"),
        ("[image]\nmean = [inf]", "image.mean.0", "finite"),
        ("[image]\nmean = true", "image.mean.0", "got True"),
        ("[image]\nmean = [1, 2]", "image", "mean has 2 values; expected 1 or 3"),
        ("[image]\ncolour = 'gray'\nstd = [1, 2, 3]", "image", "std has 3 values; expected 1 or 1"),
        ("[image]\nstd = [1, 0, 1]", "image.std.1", "got 0"),
        ("[image]\ncrop_fraction = 1.5", "image.crop_fraction", "got 1.5"),
    ]
    check_each(cases, lambda case: refused(tmp_path, *case))


def test_all_problems_are_listed(tmp_path: Path) -> None:
    refused(tmp_path, "task = 3\n[image]\npad = -1", "task", "got 3", "image.pad", "got -1")


def test_problems_of_tables_of_tasks_are_listed_besides(tmp_path: Path) -> None:
    text = "colour = 3\n[classification]\ntop_k = 0\nk = 1"
    parts = (
        "colour",
        "classification.top_k",
        "got 0",
        "classification.k",
        "known keys: output, softmax, sigmoid, threshold, top_k",
    )
    refused(tmp_path, text, "colour", *parts)


def test_table_of_a_task_stays_when_other_keys_are_changed() -> None:
    values = {"task": "classification", "classification": {"top_k": 2}}
    changed = ModelConfig.model_validate(values).model_copy(update={"description": "Reads digits."})
    assert changed.task_table(ClassificationConfig).top_k == 2


def test_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ModelConfigError, match="UTF-8"):
        load_model_config(tmp_path)


def test_nesting_too_deep_to_parse(tmp_path: Path) -> None:
    refused(tmp_path, "a = " + "[" * 100_000, None, "cannot be read")


@pytest.mark.parametrize("name", ["model.toml", "labels.txt"])
def test_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.toml").write_text('task = "classification"\nlabels = "labels.txt"\n')
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ModelConfigError, match=f"{name} ?:? cannot be read: it is a pipe; expected"):
        load_model_config(tmp_path)


def test_device_and_file_without_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.toml").symlink_to("/dev/zero")
    with pytest.raises(ModelConfigError, match="it is a device"):
        load_model_config(tmp_path)
    (tmp_path / "model.toml").unlink()
    with (tmp_path / "model.toml").open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(ModelConfigError, match=f"it has {1 << 34} bytes; the maximum is"):
        load_model_config(tmp_path)
