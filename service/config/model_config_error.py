"""The error of a `model.toml`."""

from pathlib import Path

from engine import describe_problem


class ModelConfigError(ValueError):
    """A `model.toml` is wrong in itself, or does not fit the model's graph.

    Attributes:
        path: the file.
        key: dotted name of the key at fault, None where the whole file is meant.
    """

    def __init__(self, path: Path | str, key: str | None, problem: str, expected: str | None = None) -> None:
        self.path = Path(path)
        self.key = key
        super().__init__(describe_problem(str(path) if key is None else f"{path}, {key}", problem, expected))
