"""The engine's exceptions, and the one helper that words their messages.

KuiperError
├── ModelFilesError               a folder does not hold the files of a model
├── PnnxError                     a .param or .bin file is not what PNNX writes
│   ├── ParamError                names the file and the line
│   └── ArchiveError              names the file and the entry
├── GraphError                    operators and operands do not link up
├── BuildError                    the graph is well-formed, but cannot run
│   ├── UnsupportedOperatorError  lists every operator without a layer
│   ├── ParameterError            names operator, parameter and what was expected
│   ├── BuildTimeoutError         building or compiling took longer than it may
│   └── QuantizationError         names the file of an int8 model's scales, and the key
├── ExpressionError               prints the expression with a caret
├── SignatureError                a layer's function has a missing or unsupported annotation
├── StateError                    called too early; the message names the call to make first
├── InputError                    what a caller passed to a run does not fit
├── LayerError                    a layer cannot run on what reached it
├── CompileError                  the compiler failed at an operator; the reference implementation runs instead
└── RunStoppedError               a run was stopped before its next layer
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class KuiperError(Exception):
    """Base of everything the engine raises on purpose."""


class ModelFilesError(KuiperError):
    """A folder does not hold the files of a model."""


class PnnxError(KuiperError):
    """A model file is not what PNNX writes."""


class ParamError(PnnxError):
    """A `.param` file is malformed.

    Attributes:
        path: the file.
        line: 1-based line number, or None where the whole file is meant.
    """

    def __init__(self, path: Path | str, line: int | None, problem: str, expected: str | None = None) -> None:
        self.path = Path(path)
        self.line = line
        place = str(path) if line is None else f"{path}, line {line}"
        super().__init__(describe_problem(place, problem, expected))


class ArchiveError(PnnxError):
    """A `.bin` archive is malformed.

    Attributes:
        path: the file.
        entry: the archive entry at fault, or None where the whole file is meant.
    """

    def __init__(
        self, path: Path | str, entry: str | None, problem: str, expected: str | None = None
    ) -> None:
        self.path = Path(path)
        self.entry = entry
        place = str(path) if entry is None else f"{path}, entry {entry!r}"
        super().__init__(describe_problem(place, problem, expected))


class GraphError(KuiperError):
    """Operators and operands do not link up to a graph that can be ordered."""


class BuildError(KuiperError):
    """The graph is well-formed, but the engine cannot run it."""


@dataclass(frozen=True)
class UnsupportedOperator:
    """An operator whose type has no layer, with the registered types that look most like it."""

    name: str
    type: str
    nearest: tuple[str, ...]

    def __str__(self) -> str:
        hints = ["an ONNX operator that the exporter left untranslated"] if self.is_onnx else []
        if self.nearest:
            hints.append(f"nearest known: {', '.join(self.nearest)}")
        return f"{self.type} {self.name}" + (f" ({'; '.join(hints)})" if hints else "")

    @property
    def is_onnx(self) -> bool:
        """Whether the type is an operator of ONNX: those alone come without a module before their name."""
        return self.type.isidentifier() and self.type[:1].isupper()


class UnsupportedOperatorError(BuildError):
    """The graph has operators of types that no layer is registered for.

    Attributes:
        operators: all of them, in file order.
    """

    def __init__(self, operators: Sequence[UnsupportedOperator]) -> None:
        self.operators = tuple(operators)
        listing = "; ".join(str(operator) for operator in self.operators)
        count = len(self.operators)
        super().__init__(f"{count} unsupported operator{'s' if count != 1 else ''}: {listing}")


class ParameterError(BuildError):
    """A parameter or attribute of an operator is missing or of the wrong kind."""


class BuildTimeoutError(BuildError):
    """Building or compiling a graph took longer than it may; names the operator that it had come to."""


class QuantizationError(BuildError):
    """The file of scales that an int8 model needs is missing, malformed, or another model's.

    Attributes:
        path: the file.
        key: dotted name of the key at fault, or None where the whole file is meant.
    """

    def __init__(self, path: Path | str, key: str | None, problem: str, expected: str | None = None) -> None:
        self.path = Path(path)
        self.key = key
        super().__init__(describe_problem(str(path) if key is None else f"{path}, {key}", problem, expected))


class SignatureError(KuiperError):
    """The function of a layer cannot be registered: an annotation is missing or unsupported."""


class ExpressionError(KuiperError):
    """An expression cannot be read or evaluated.

    Attributes:
        source: the whole expression.
        position: 0-based offset of the fault in `source`.
    """

    def __init__(self, source: str, position: int, problem: str) -> None:
        self.source = source
        self.position = position
        start = max(0, position - 60)
        window = source[start : position + 60]
        super().__init__(f"{problem}\n    {window}\n    {' ' * (position - start)}^")


class StateError(KuiperError):
    """A method was called before the graph was ready for it."""


class InputError(KuiperError):
    """The inputs passed to a run do not fit the graph."""


class LayerError(KuiperError):
    """A layer cannot run on the values that reached it."""


class ArgumentError(LayerError):
    """One argument of a layer does not fit; raised by layers, which do not know their operator's name.

    The graph catches it and raises a `LayerError` that names the operator and the operand.

    Attributes:
        argument: the layer's name of the wrong argument, e.g. `weight`.
    """

    def __init__(self, argument: str, problem: str, expected: str | None = None) -> None:
        self.argument = argument
        self.problem = problem
        self.expected = expected
        super().__init__(describe_problem(argument, problem, expected))


class CompileError(KuiperError):
    """The compiler failed at an operator. Runs never raise it: they fall back to the reference implementation."""


class RunStoppedError(KuiperError):
    """A run was stopped before its next layer, by deadline or by its caller."""


def stopped_before(operator_type: str, name: str, reason: str | None) -> RunStoppedError:
    """Return the error of a run that was stopped before an operator, for a reason that its stop check gave."""
    return RunStoppedError(f"stopped before {operator_type} {name}: {reason}")


def describe_problem(place: str, problem: str, expected: str | None = None) -> str:
    """Word a message as `place: problem; expected …`."""
    return f"{place}: {problem}" + (f"; expected {expected}" if expected else "")
