from collections.abc import Sequence
from unittest.mock import patch

import pytest
from pydantic import ValidationError

from engine import Array, Port
from service.config.model_config import ModelConfig
from service.config.task_keys import TASK_KEYS
from service.tasks import TASKS, Prediction, Task, register_task


class Sorting(Task):
    name = "sorting"

    def check(self, config: ModelConfig, outputs: Sequence[Port]) -> None:
        pass

    def predict(
        self, config: ModelConfig, ports: Sequence[Port], outputs: Sequence[Array], top_k: int | None
    ) -> Sequence[Sequence[Prediction]] | None:
        return None


class Labels(Sorting):
    name = "labels"


class SecondRaw(Sorting):
    name = "raw"


def test_task_is_known_once_it_is_registered() -> None:
    with patch.dict(TASKS), patch.dict(TASK_KEYS):
        added = register_task(Sorting())
        assert ModelConfig.model_validate({"task": "sorting"}).task == "sorting"
        assert TASKS["sorting"] is added
        with pytest.raises(ValidationError, match="'classification', 'raw' or 'sorting'"):
            ModelConfig.model_validate({"task": "painting"})
    with pytest.raises(ValidationError, match="'classification' or 'raw'"):
        ModelConfig.model_validate({"task": "sorting"})


@pytest.mark.parametrize("added", [Labels(), SecondRaw()])
def test_names_are_not_taken_twice(added: Task) -> None:
    with pytest.raises(ValueError, match=added.name):
        register_task(added)
