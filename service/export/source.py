"""What a model is exported from."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine import Array
from service.export.errors import ExportError
from service.export.input_spec import InputSpec


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that the source computes on its way.

    Attributes:
        array: its values.
        line: where the source computes it, for people; empty where that is not known.
    """

    array: Array
    line: str


class Source(ABC):
    """A model in the form that it comes in, which says what is right.

    Attributes:
        title: what it is, for people: the file's name and its kind.
        runtime: what runs it: `PyTorch` or `onnxruntime`.
    """

    title: str
    runtime: str

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
