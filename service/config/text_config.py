"""`[text]` in `model.toml`: how texts become the ids that a model takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from service.config.model_config_error import ModelConfigError
from service.config.regular_file import read_text
from service.config.toml_table import TomlTable
from service.version import install_command

TextInput = Literal["input_ids", "attention_mask", "token_type_ids"]
"""What an input of a graph may hold of a text."""

_TOKENIZER = "tokenizer.json"
_MAX_BYTES = 64 << 20
"""Maximum bytes of a tokenizer: that of 250,000 words of a hundred languages has 17 million."""
_INSTALL = install_command("text")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text.

    Attributes:
        ids: the number of each token in the model's vocabulary.
        types: for each token which of two joined texts it is of; 0 for a text alone.
    """

    ids: Sequence[int]
    types: Sequence[int]


class TextConfig(TomlTable):
    """How texts become ids.

    Attributes:
        tokenizer: in the file, the name of a `tokenizer.json` beside it; once loaded, its content.
        max_length: maximum tokens of a text, special ones included; longer texts are truncated.
        inputs: content of each graph input, in order; default: ids, mask and types, as many as there are.
        multiple: lengths are padded to a multiple of this, so that fewer are compiled.
    """

    tokenizer: str = _TOKENIZER
    max_length: int = Field(default=512, ge=1, le=1 << 16)
    inputs: Annotated[tuple[TextInput, ...], Field(strict=False)] = ()
    multiple: int = Field(default=16, ge=1, le=1 << 16)

    @cached_property
    def _reader(self) -> Any:
        return self._read(self.max_length)

    @cached_property
    def _shorter_readers(self) -> dict[int, Any]:
        return {}

    def _read(self, length: int) -> Any:
        reader = import_module("tokenizers").Tokenizer.from_str(self.tokenizer)
        reader.no_padding()
        reader.enable_truncation(length)
        return reader

    @property
    def padding_id(self) -> int:
        """The id that fills up shorter texts, where the mask hides it."""
        for token in ("[PAD]", "<pad>"):
            found = self._reader.token_to_id(token)
            if found is not None:
                return int(found)
        return 0

    def tokenize(self, texts: Sequence[str], most: int | None = None) -> list[Tokens]:
        """Return the tokens of each text. The vocabulary is read at the first call.

        Args:
            texts: the texts.
            most: tokens that a text may have, where the graph takes fewer than `max_length`; what the tokenizer puts at
                the end of a text remains there when the text is cut off.
        """
        reader = self._reader
        if most is not None and most < self.max_length:
            reader = self._shorter_readers.get(most) or self._shorter_readers.setdefault(
                most, self._read(most)
            )
        # one at a time: the package would start a thread for each processor for a batch
        return [Tokens(read.ids, read.type_ids) for read in map(reader.encode, texts)]

    def check(self) -> None:
        """Read the vocabulary.

        Raises:
            ModelConfigError: it is no vocabulary, or the package that reads it is not installed.
        """
        try:
            self.tokenize([""])
        except ImportError as error:
            raise ModelConfigError("model.toml", "text", f"{error}; texts need it", _INSTALL) from error
        except Exception as error:  # the package raises no narrower class
            problem = f"the tokenizer cannot be read: {error}"
            raise ModelConfigError("model.toml", "text.tokenizer", problem, "a tokenizer.json") from error


def with_tokenizer(config: Path, table: dict[str, Any]) -> dict[str, Any]:
    """Return the table with what the file says that it names.

    Args:
        config: the `model.toml`.
        table: its `[text]`.

    Raises:
        ModelConfigError: the file cannot be read.
    """
    name = table.get("tokenizer", _TOKENIZER)
    if not isinstance(name, str) or Path(name).name != name:
        raise ModelConfigError(
            config, "text.tokenizer", f"{name!r} is not a plain name", "a file beside model.toml"
        )
    try:
        return {**table, "tokenizer": read_text(config.parent / name, limit=_MAX_BYTES)}
    except (OSError, ValueError) as error:
        raise ModelConfigError(
            config, "text.tokenizer", f"{config.parent / name} cannot be read: {error}", "a tokenizer.json"
        ) from error
