from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

import pytest
from pydantic import ValidationError, field_validator
from pydantic_core import PydanticCustomError

from engine import Array
from service.config.model_config import ModelConfig
from service.config.task_keys import TASK_KEYS, TaskKeys
from service.config.toml_table import TomlTable
from service.images.geometry import ImageGeometry
from service.tasks import TASKS, Prediction, Task, register_task


class Sorting(Task):
    name = "sorting"

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Prediction]] | None:
        return None


class Labels(Sorting):
    name = "labels"


class SecondRaw(Sorting):
    name = "raw"


def test_task_is_known_once_it_is_registered() -> None:
    with patch.dict(TASKS), patch.dict(TASK_KEYS):
        added = register_task(Sorting)
        assert ModelConfig.model_validate({"task": "sorting"}).task == "sorting"
        assert TASKS["sorting"] is added
        with pytest.raises(ValidationError, match="'classification', .*'sorting'"):
            ModelConfig.model_validate({"task": "painting"})
    with pytest.raises(ValidationError, match="should be 'classification', "):
        ModelConfig.model_validate({"task": "sorting"})


class OddTable(TomlTable):
    count: int = 1

    @field_validator("count")
    @classmethod
    def check_odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise PydanticCustomError("even", "{value} is even, {braces}", {"value": value})
        return value


class Counting(Sorting):
    name = "counting"
    keys = TaskKeys(OddTable)


def test_errors_of_a_task_s_own_validators_are_reported() -> None:
    with patch.dict(TASKS), patch.dict(TASK_KEYS):
        register_task(Counting)
        with pytest.raises(ValidationError) as caught:
            ModelConfig.model_validate({"task": "counting", "counting": {"count": 2}, "image": {"pad": -1}})
    reported = {item["loc"]: item["msg"] for item in caught.value.errors()}
    assert reported["counting", "count"] == "2 is even, {braces}"
    assert ("image", "pad") in reported


@pytest.mark.parametrize("added", [Labels, SecondRaw])
def test_names_are_not_taken_twice(added: type[Task]) -> None:
    with pytest.raises(ValueError, match=added.name):
        register_task(added)
