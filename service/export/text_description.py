"""What `model.toml` says of a model that takes texts, from the files that lie around its tokenizer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOKENIZER = "tokenizer.json"
_USUAL_LENGTH, _LONGEST = 512, 1 << 16


def text_table(tokenizer: Path, max_length: int | None) -> Iterator[str]:
    """Yield the lines of `[text]`.

    Args:
        tokenizer: the `tokenizer.json`; the files beside it hold the maximum length.
        max_length: most tokens that the model itself takes; None where that is not known.
    """
    stated = [length for length in (max_length, _length(tokenizer.parent)) if length is not None]
    length = min(stated, default=_USUAL_LENGTH)
    yield from ("", "[text]", f'tokenizer = "{TOKENIZER}"', f"max_length = {length}")


def pooling(tokenizer: Path) -> str:
    """Return what becomes of the vectors of tokens, from the files of sentence-transformers beside the tokenizer."""
    is_first = _read(tokenizer.parent / "1_Pooling" / "config.json").get("pooling_mode_cls_token")
    return "cls" if is_first is True else "mean"


def _length(folder: Path) -> int | None:
    """Return the most tokens that a model takes, as the files beside its tokenizer say; None where they do not."""
    for name, key in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
    ):
        length = _read(folder / name).get(key)
        if isinstance(length, int) and 1 <= length <= _LONGEST:
            return length
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
