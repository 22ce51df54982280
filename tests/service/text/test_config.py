"""`[text]` in `model.toml`, and tasks of texts at load."""

from pathlib import Path

import numpy as np
import pytest

from engine import Port
from service.config.model_config import ModelConfigError, load_model_config
from service.tasks import TaskModel, open_task
from tests.service.text.models import add_text_model

OUTPUTS = (Port("out", "1", (None, 3), "f32"),)


def opened(folder: Path, config: str, outputs: tuple[Port, ...] = OUTPUTS) -> object:
    add_text_model(folder, config)
    return open_task(TaskModel(load_model_config(folder), (), outputs))


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ('[text]\ntokenizer = "none.json"', "text.tokenizer: .*none.json cannot be read"),
        ('[text]\ntokenizer = "../m.toml"', "is not a plain name"),
        ("[text]\ntokenizer = 3", "is not a plain name"),
        ("[text]\nmax_length = 0", "text.max_length"),
        ('[text]\ninputs = ["ids"]', "text.inputs"),
        ("[text]\nlength = 3", "known keys: tokenizer, max_length, inputs, multiple"),
        ('task = "text-embedding"\n[text-embedding]\npooling = "max"', "text-embedding.pooling"),
        ('task = "text-embedding"\n[text-embedding]\noutput = "x"', "the graph has no output 'x'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, config: str, problem: str) -> None:
    with pytest.raises(ModelConfigError, match=problem):
        opened(tmp_path / "m", config)


def test_a_tokenizer_that_is_none_is_found_at_load(tmp_path: Path) -> None:
    add_text_model(tmp_path / "m", 'task = "text-embedding"\n[text]\n')
    (tmp_path / "m" / "tokenizer.json").write_text("{}")
    config = load_model_config(tmp_path / "m")
    with pytest.raises(ModelConfigError, match="text.tokenizer: the tokenizer cannot be read"):
        open_task(TaskModel(config, (), OUTPUTS))


def test_outputs_that_are_no_vectors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelConfigError, match="text-embedding.output: shape is"):
        opened(tmp_path / "m", 'task = "text-embedding"', (Port("out", "1", (1, 2, 3, 4), "f32"),))


def test_texts_are_classified(tmp_path: Path) -> None:
    config = 'task = "text-classification"\nlabels = ["good", "bad", "so"]\n[text]\n'
    config += "[text-classification]\nsoftmax = true"
    task = opened(tmp_path / "m", config)
    scores = np.log(np.array([[0.2, 0.7, 0.1]], np.float32))
    ((best, *_),) = task.predict([scores], (), {"top_k": 1})  # type: ignore[attr-defined]
    assert (best.label, round(best.probability, 5)) == ("bad", 0.7)
