"""Presets and the lists of classes that ship."""

import pytest

from service.config.model_config import ImageConfig
from service.export.preset import PRESETS, class_names


@pytest.mark.parametrize(("name", "count"), [("imagenet", 1000), ("coco", 80)])
def test_lists_have_a_name_for_each_class(name: str, count: int) -> None:
    names = class_names(name)
    assert len(names) == len(set(names)) == count
    assert all(entry == entry.strip() != "" for entry in names)


@pytest.mark.parametrize(
    ("name", "index", "label"),
    [
        ("imagenet", 0, "tench"),
        ("imagenet", 285, "Egyptian cat"),
        ("imagenet", 999, "toilet tissue"),
        ("coco", 0, "person"),
        ("coco", 15, "cat"),
        ("coco", 79, "toothbrush"),
    ],
)
def test_lists_are_in_the_order_of_the_classes(name: str, index: int, label: str) -> None:
    assert class_names(name)[index] == label


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_what_model_toml_takes(name: str) -> None:
    config = ImageConfig.model_validate(
        {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in PRESETS[name].image.items()
        }
    )
    assert config.channels == 3


def test_efficientnet_lite_computes_as_its_training_did() -> None:
    config = ImageConfig.model_validate(
        {key: PRESETS["efficientnet-lite"].image[key] for key in ("mean", "std")}
    )
    mean, std = config.mean[0], config.std[0]
    assert (255 / 255 - mean) / std == pytest.approx((255 - 127) / 128, abs=1e-6)
    assert (0 - mean) / std == pytest.approx(-127 / 128, abs=1e-6)
