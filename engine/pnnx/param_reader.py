"""Reads the `.param` text: a magic number, the counts, then one operator a line.

    7767517
    3 2
    pnnx.Input   pnnx_input_0  0 1 0 #0=(1,4)f32
    nn.Linear    fc            1 1 0 1 bias=True @weight=(2,4)f32 $input=0 #0=(1,4)f32 #1=(1,2)f32
    pnnx.Output  pnnx_output_0 1 0 1

Words are separated by any ASCII white space. As in PNNX's own reader, words after the numbers of the first
two lines are ignored, the last of two types given for an operand counts, and a word without `=` is a
parameter with an empty value. Beyond it, empty lines and lines that begin with `#` are skipped, and a `#`
word that is no operand type makes a comment of the rest of its line.
"""

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from engine.errors import ParamError
from engine.pnnx.graph import Graph
from engine.pnnx.links import find_fault
from engine.pnnx.model import Operator
from engine.pnnx.parameter import parse_value, spell_value
from engine.pnnx.tensor_type import parse_tensor_type, shorten

MAGIC = "7767517"
MAX_FILE_BYTES = 32 * 2**20
"""A model of 2,000 operators takes less than 1 MB."""
ZIP_SIGNATURE = b"PK"
"""First bytes of any zip archive: the two files of a model are swapped easily."""
MAX_LINE_BYTES = 4 * 2**20

_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AttributeDeclaration:
    """`@key=(shape)dtype`: an attribute's declaration in the `.param`; its bytes are in the `.bin`."""

    operator: Operator
    key: str
    shape: tuple[int, ...]
    dtype: str
    line: int

    @property
    def entry(self) -> str:
        """Name of the archive entry that holds the bytes."""
        return f"{self.operator.name}.{self.key}"


@dataclass
class ParamText:
    """A graph without the bytes of its attributes, and their declarations, in file order."""

    graph: Graph = field(default_factory=Graph)
    declarations: list[AttributeDeclaration] = field(default_factory=list)


def read_param(path: Path) -> ParamText:
    """Read a `.param` file.

    Raises:
        ParamError: names the line and what was expected there.
    """
    lines = _split_lines(path, _load(path))
    _check_magic(path, lines)
    counts_line, operator_count, operand_count = _read_counts(path, lines)
    reader = _Reader(path)
    for number, words in lines:
        if len(reader.lines) == operator_count:
            expected = f"{operator_count}, as line {counts_line} says"
            raise ParamError(path, number, "another operator", expected)
        reader.read_operator(number, words)
    if len(reader.lines) < operator_count:
        problem = f"{len(reader.lines)} operators in the file"
        raise ParamError(path, counts_line, problem, f"{operator_count}, as this line says")
    reader.check_links()
    graph = reader.text.graph
    found = len(graph.operands)
    if found != operand_count and not (found < operand_count and _has_folded_constants(graph)):
        raise ParamError(
            path, counts_line, f"{found} operands in the file", f"{operand_count}, as this line says"
        )
    return reader.text


def _has_folded_constants(graph: Graph) -> bool:
    """Return whether the exporter computed constants: it still counts those of a list that nothing reads."""
    return any(op.type == "pnnx.Attribute" and op.name.startswith("pnnx_fold_") for op in graph.operators)


def _load(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            what = "is a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise ParamError(path, None, what, "a .param text")
        with path.open("rb") as file:
            if file.read(len(ZIP_SIGNATURE)) == ZIP_SIGNATURE:
                raise ParamError(path, None, "is a zip archive, as the .bin is", "a .param text")
        if status.st_size > MAX_FILE_BYTES:
            raise ParamError(path, None, f"{status.st_size} bytes", f"at most {MAX_FILE_BYTES}")
        return path.read_bytes()
    except OSError as error:
        raise ParamError(path, None, f"cannot be read: {error.strerror}", "a .param text") from error
    except ValueError as error:  # a NUL in the path
        raise ParamError(path, None, f"cannot be read: {error}", "a .param text") from error


def _split_lines(path: Path, content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, words) of every line that is not blank."""
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if len(line) > MAX_LINE_BYTES:
            raise ParamError(path, number, f"a line of {len(line)} bytes", f"at most {MAX_LINE_BYTES}")
        try:
            # bytes, because str.split() would also split at white space outside ASCII
            words = [word.decode() for word in line.split()]
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise ParamError(path, number, f"byte {byte:#04x} is not UTF-8", "UTF-8 text") from error
        if words and not words[0].startswith("#"):
            yield number, words


def _check_magic(path: Path, lines: Iterator[tuple[int, list[str]]]) -> None:
    number, words = next(lines, (None, [""]))
    if number is None:
        raise ParamError(path, None, "the file is empty", f"the magic number {MAGIC}")
    if words[0] != MAGIC:
        raise ParamError(path, number, f"wrong magic number {shorten(words[0])}", MAGIC)


def _read_counts(path: Path, lines: Iterator[tuple[int, list[str]]]) -> tuple[int, int, int]:
    """Return line number, operator count and operand count."""
    number, words = next(lines, (0, []))
    if not words:
        raise ParamError(path, None, "the file ends after the magic number", "operator and operand count")
    if len(words) < 2:
        raise ParamError(path, number, "one number", "operator count and operand count")
    return number, _read_count(path, number, words[0]), _read_count(path, number, words[1])


def _read_count(path: Path, number: int, word: str) -> int:
    if not _COUNT.fullmatch(word):
        raise ParamError(path, number, f"wrong count {shorten(word)}", "a number from 0 to 10**18 - 1")
    return int(word)


class _Reader:
    """Turns operator lines into a graph, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = ParamText()
        self.lines: list[int] = []
        self.stray: list[tuple[int, str]] = []

    def read_operator(self, number: int, words: list[str]) -> None:
        """Read one line: `type name inputs outputs input… output… key=value…`."""
        if len(words) < 4:
            expected = "type, name, number of inputs, number of outputs"
            raise ParamError(self.path, number, f"an operator of {len(words)} words", expected)
        input_count = _read_count(self.path, number, words[2])
        output_count = _read_count(self.path, number, words[3])
        ends = 4 + input_count, 4 + input_count + output_count
        if ends[1] > len(words):
            expected = f"{input_count} inputs and {output_count} outputs"
            raise ParamError(self.path, number, f"{len(words) - 4} words after the counts", expected)
        operator = Operator(words[0], words[1], words[4 : ends[0]], words[ends[0] : ends[1]])
        self.text.graph.operators.append(operator)
        self.lines.append(number)
        for operand in operator.inputs + operator.outputs:
            self.text.graph.operands.setdefault(operand, None)
        self._read_settings(operator, number, words[ends[1] :])

    def check_links(self) -> None:
        """Check what needs the whole file."""
        fault = find_fault(self.text.graph.operators)
        if fault is not None:
            raise ParamError(self.path, self.lines[fault.index], fault.problem, fault.expected)
        for number, word in self.stray:
            if word in self.text.graph.operands:
                problem = f"operand {word!r} after the last output"
                raise ParamError(self.path, number, problem, "as many operands as the counts say")

    def _read_settings(self, operator: Operator, number: int, words: list[str]) -> None:
        inputs = set(operator.inputs)
        operands = inputs.union(operator.outputs)
        declared: dict[str, AttributeDeclaration] = {}
        for word in words:
            try:
                if word.startswith("#"):
                    if "=(" not in word:
                        break
                    self._read_operand_type(operands, word)
                elif word.startswith("@"):
                    _read_attribute(operator, number, word, declared)
                elif word.startswith("$"):
                    _read_input_name(operator, word, inputs)
                else:
                    _read_parameter(operator, word)
            except ValueError as error:
                raise ParamError(
                    self.path, number, f"operator {operator.name!r}, {shorten(word)}: {error}"
                ) from error
        self.text.declarations.extend(declared.values())
        stray = takewhile(lambda word: "=" not in word and not word.startswith("#"), words)
        self.stray.extend((number, word) for word in stray)

    def _read_operand_type(self, operands: set[str], word: str) -> None:
        name, _, text = word[1:].rpartition("=")
        if name not in operands:
            raise ValueError(
                f"the operator has no operand {shorten(name)}; expected an input or output of it"
            )
        self.text.graph.operands[name] = parse_tensor_type(text)


def _read_attribute(
    operator: Operator, number: int, word: str, declared: dict[str, AttributeDeclaration]
) -> None:
    key, _, text = word[1:].rpartition("=")
    tensor_type = parse_tensor_type(text)
    shape = tuple(extent for extent in tensor_type.shape if extent is not None)
    if len(shape) < len(tensor_type.shape):
        raise ValueError("an unknown extent; expected only numbers in the shape of an attribute")
    if key in declared:
        raise ValueError("the operator has this attribute twice; expected it once")
    declared[key] = AttributeDeclaration(operator, key, shape, tensor_type.dtype, number)


def _read_input_name(operator: Operator, word: str, inputs: set[str]) -> None:
    key, equals, operand = word[1:].partition("=")
    if not equals or operand not in inputs:
        raise ValueError(f"the operator has no input {shorten(operand)}; expected one of its operands")
    if key in operator.input_names:
        raise ValueError("the operator has this input name twice; expected it once")
    operator.input_names[key] = operand


def _read_parameter(operator: Operator, word: str) -> None:
    key, equals, text = word.partition("=")
    if equals and key in operator.params:
        raise ValueError("the operator has this parameter twice; expected it once")
    value = parse_value(key, text)
    operator.params[key] = value
    if value != text and spell_value(value) != text:
        operator.spellings[key] = text
