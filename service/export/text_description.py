"""What `model.toml` says of a model that takes texts, from the files that lie around its tokenizer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOKENIZER = "tokenizer.json"
_USUAL_LENGTH, _LONGEST = 512, 1 << 16


def text_tables(tokenizer: Path, fixed_length: int | None, task: str, is_pooled: bool) -> Iterator[str]:
    """Yield the lines of `[text]`, and of `[text-embedding]` for a model with that task.

    Args:
        tokenizer: the `tokenizer.json`; files of sentence-transformers beside it tell the longest text and the pooling.
        fixed_length: how many tokens the model takes where their number is not open.
        task: the model's task.
        is_pooled: whether its output is a vector for each text already.
    """
    length = fixed_length or _length(tokenizer.parent)
    yield from ("", "[text]", f'tokenizer = "{TOKENIZER}"', f"max_length = {length}")
    if task == "text-embedding" and not is_pooled:
        yield from ("", "[text-embedding]", f'pooling = "{_pooling(tokenizer.parent)}"')


def _length(folder: Path) -> int:
    """Return the most tokens that a model takes, as the files beside its tokenizer say."""
    for name, key in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
    ):
        length = _read(folder / name).get(key)
        if isinstance(length, int) and 1 <= length <= _LONGEST:
            return length
    return _USUAL_LENGTH


def _pooling(folder: Path) -> str:
    is_first = _read(folder / "1_Pooling" / "config.json").get("pooling_mode_cls_token")
    return "cls" if is_first is True else "mean"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
