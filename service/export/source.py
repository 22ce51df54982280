"""What a model is exported from."""

import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine import Array
from service.export.errors import ExportError
from service.export.input_spec import InputSpec
from service.export.preset import Preset, Value

_WHOLE = ("_ids", "_mask")
"""How the names of inputs end that hold whole numbers, in transformers and what follows it."""


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that the source computes on its way.

    Attributes:
        array: its values.
        line: where the source computes it, for people; empty where that is not known.
    """

    array: Array
    line: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a source says of its model besides its graph; what the user of an export says comes before it.

    Attributes:
        task: name of its task; None where the source does not say.
        labels: name of each class.
        preset: how pictures are prepared; None where the source does not say.
        table: keys of the task's own table in `model.toml`.
        tokenizer: the `tokenizer.json` of a model that takes text; None where there is none.
        max_length: most tokens of a text; None where the source does not say.
        notes: what the source says that `model.toml` cannot, a sentence each.
    """

    task: str | None = None
    labels: Sequence[str] = ()
    preset: Preset | None = None
    table: Mapping[str, Value] = field(default_factory=dict)
    tokenizer: Path | None = None
    max_length: int | None = None
    notes: Sequence[str] = ()


def check_archive(path: Path, expected: str, advice: str) -> None:
    """Check that a file is a zip archive, as those of PyTorch are; PyTorch itself says much of others, and late.

    Args:
        path: the file.
        expected: what it is to be, as "a TorchScript file".
        advice: what to do where it is not, as the end of the sentence.

    Raises:
        ExportError: there is no such file, or it is something else.
    """
    if not path.is_file():
        raise ExportError(f"there is no file {path}")
    if not zipfile.is_zipfile(path):
        raise ExportError(f"{path.name} is not {expected}: not a zip archive, or only part of one{advice}")


class Source(ABC):
    """A model in the form that it comes in, which says what is right.

    Attributes:
        title: what it is, for people: the file's name and its kind.
        runtime: what runs it: `PyTorch` or `onnxruntime`.
        known: what else it says of the model.
    """

    title: str
    runtime: str
    known: Known = Known()

    @abstractmethod
    def inputs(self, given: Sequence[InputSpec]) -> list[InputSpec]:
        """Return the inputs, with what the source itself says of them.

        Raises:
            ExportError: they are not as given, or the source does not say and nothing was given.
        """

    @abstractmethod
    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs, nested ones flattened.

        Raises:
            ExportError: the model does not run on these.
        """

    @abstractmethod
    def results(self, arrays: Sequence[Array]) -> list[Result]:
        """Return every tensor on the way to the outputs, in the order of computation; none where that is not known."""

    @abstractmethod
    def perturbed(self) -> AbstractContextManager[None]:
        """Flip the last bit of each weight for the duration of the block: the smallest difference of float32."""

    def rest(self, folder: Path) -> None:
        """Keep large weights in a file of a folder until they are needed again, so that others have their memory."""
        del folder

    def weight(self, name: str) -> Array | None:
        """Return a weight by its name in the source, as `encoder.0.norm.weight`; None where it has none."""
        del name
        return None

    @abstractmethod
    def save(self, folder: Path, arrays: Sequence[Array]) -> Path:
        """Write the file that the exporter reads, traced with these inputs where it is yet to be traced.

        Raises:
            ExportError: the model cannot be traced.
        """

    def characters(self) -> list[str]:
        """Return the characters that a recogniser of text reads, in order; none where its file does not say."""
        return []

    @abstractmethod
    def lines_of(self, kind: str) -> list[str]:
        """Return where the source uses an operator that the exporter did not translate."""


def check_count(given: Sequence[InputSpec], names: Sequence[str], title: str) -> None:
    """Check that there are as many shapes as inputs.

    Raises:
        ExportError: there are not; names the inputs.
    """
    if len(given) != len(names):
        noun = "input" if len(names) == 1 else "inputs"
        listed = ", ".join(names)
        raise ExportError(
            f"{title} has {len(names)} {noun} ({listed}), and there are {len(given)} shapes; give --input for each"
        )


def named_specs(given: Sequence[InputSpec], declared: Sequence[InputSpec], title: str) -> list[InputSpec]:
    """Return shapes that the user gave with the names and types of a source's inputs.

    A type that neither states is that of whole numbers for names as `input_ids` and `attention_mask`.

    Args:
        given: shapes as the user gave them, with types where those were given.
        declared: the source's inputs; a name or a type that it lacks is empty.
        title: the source's, for messages.

    Raises:
        ExportError: there are not as many of both, or a type is another than that of the source.
    """
    check_count(given, [spec.name or "?" for spec in declared], title)
    for one, other in zip(given, declared, strict=True):
        if one.dtype and other.dtype and one.dtype != other.dtype:
            raise ExportError(
                f"{title}: input {other.name!r} is of {other.dtype}, and --input says {one.dtype}; "
                f"give :{other.dtype}, or no type"
            )
    return [
        replace(one, name=other.name, dtype=one.dtype or other.dtype or _usual_dtype(other.name))
        for one, other in zip(given, declared, strict=True)
    ]


def _usual_dtype(name: str) -> str:
    """Return the type of an input by its name."""
    return "i64" if name == "ids" or name.endswith(_WHOLE) else "f32"
