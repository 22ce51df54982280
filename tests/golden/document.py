"""Writes docs/reference/operators.md, the page of supported operators, from the registry and the case table.

Run: python -m tests.golden.document
"""

from collections import Counter
from itertools import groupby
from pathlib import Path

from engine import Layer, registry
from engine.binding.arguments import Argument
from tests.golden.cases import families

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "operators.md"

HEAD = """# Operators

The engine runs {count} operator types, compared with PyTorch by {cases} golden cases (`tests/golden/cases/`).

The signature behind each type names operands (`$name`), attributes (`@name`) and parameters (`name=`) of a PNNX file.
Those without a default are required; `*` means any number of operands. `make figures` writes this page.

## Results that the exporter drops

PNNX does not record which outputs of `nn.LSTM`, `nn.GRU` or `nn.RNN` a model uses. The engine infers them from declared
shapes, then assumes PyTorch's order and the hidden state; other ambiguity is an error when the graph is built.

`graph.warnings`, `kuiper check`, `GET /models/{{name}}` and the log report every assumption. To settle one, add
`outputs=` to the operator's line in the `.param` file, or export with two sequence lengths (`inputshape2=`):

    nn.LSTM  lstm  1 2 0 1 2  batch_first=True … #2=(1,2,4)f32 outputs=output,c_n

{results}

## What the exporter leaves under other names

PNNX writes operators that it cannot translate as `aten::…`, with arguments in ATen's order, and leaves some operators
of ONNX models under their ONNX names. Those listed below run.

## What the exporter gets wrong

`kuiper export` compares every tensor with PyTorch, reports differences, and repairs the rows marked *repaired*. Seen in
pnnx for PyTorch 2.13:

{faults}
"""

FAULTS = (
    (
        "a slice of dynamic axes alone (`x[:, :, 1:]`, `x[..., ::2, ::2]`, with `inputshape2=`)",
        "nothing, or the slice without these axes",
        "`F.pad` with a negative margin, `F.max_pool2d(x, 1, 2)`; or a single `inputshape=`; *repaired*",
    ),
    (
        "`nn.LSTMCell`, `nn.GRUCell`, `nn.RNNCell` called without a state",
        "constants that are not those of a state of zeros",
        "pass the state",
    ),
    (
        "a constant that is changed in place (`zeros(…).scatter_(…)`)",
        "the constant as it was after the change",
        "`scatter`, without `_`",
    ),
    (
        "a bool mask as input of `nn.TransformerEncoderLayer`",
        "a constant that hides everything",
        "pass a float mask of 0 and -inf",
    ),
    (
        '`torch.div(x, y, rounding_mode="floor")`',
        "`div`, without rounding (refused for integers, whose declared type decides)",
        "`torch.floor(x / y)`; *repaired*",
    ),
    (
        '`torch.div(x, y, rounding_mode="trunc")`',
        "`floor_divide`",
        "`torch.trunc(x / y)`; *repaired* for floating-point numbers",
    ),
    (
        "`torch.round(x, decimals=2)`",
        "`round`, to whole numbers",
        "`torch.round(x * 100) / 100`; *repaired*",
    ),
    (
        "`nn.LayerNorm(n, bias=False)`",
        "`nn.LayerNorm` without its weight",
        "`bias=True`; *repaired*",
    ),
    (
        "GELU with tanh, written out",
        "`F.gelu` with erf",
        '`F.gelu(x, approximate="tanh")`; *repaired*',
    ),
    (
        "an index tensor that is the same for all inputs at fixed sizes (`mask[rows, columns]`)",
        "`Tensor.index` with `[0]`",
        "`inputshape2=`; *repaired*",
    ),
    ("`x.half().float()`", "nothing", ""),
    (
        "ONNX `MaxPool`, `AveragePool` with `auto_pad` SAME_UPPER and an odd margin",
        "as much margin before as after",
        "explicit `pads`",
    ),
    (
        "ONNX `Shape` of dynamic sizes",
        "the tensor itself",
        "`inputshape=` alone, without `inputshape2=`",
    ),
    ("ONNX `SpaceToDepth`", "`F.pixel_unshuffle`, whose channels are in another order", ""),
    ("ONNX `Slice` with a negative step", "nothing", ""),
)
"""What a model does, what the exporter makes of it, and how to word the model instead."""


_FAMILIES = {
    "aten": "ATen",
    "F": "torch.nn.functional",
    "nn": "torch.nn",
    "Tensor": "torch.Tensor",
    "torch": "torch",
    "torch.fft": "torch.fft",
}
"""Type up to its last separator -> title of its section."""


def render() -> str:
    """Return the text of the page."""
    cases = Counter(case.type for table in families().values() for case in table)
    ours = (layer for layer in registry if layer.forward.__module__.startswith("engine."))
    layers = sorted(ours, key=lambda layer: (_family(layer), layer.type.lower()))
    parts = [HEAD.format(count=len(layers), cases=cases.total(), results=_results(layers), faults=_faults())]
    for family, members in groupby(layers, _family):
        types: dict[str, list[str]] = {}  # signature -> types
        for layer in members:
            types.setdefault(_signature(layer), []).append(f"`{layer.type}`")
        lines = (f"- {', '.join(names)}: `{signature}`" for signature, names in types.items())
        parts.append(f"## {family}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _family(layer: Layer) -> str:
    """Return the title of the section that lists a type."""
    family = layer.type.rpartition("::" if "::" in layer.type else ".")[0]
    return _FAMILIES.get(family, "Other types" if family else "ONNX types")


def _faults() -> str:
    rows = (f"| {' | '.join(row)} |".replace("|  |", "| |") for row in FAULTS)
    return "\n".join(["| in the model | in the file | what helps |", "|---|---|---|", *rows])


def _results(layers: list[Layer]) -> str:
    named = [layer for layer in layers if layer.results is not None]
    rows = [f"| `{layer.type}` | {', '.join(layer.results.names)} |" for layer in named if layer.results]
    return "\n".join(["| type | names of results |", "|---|---|", *rows])


def _signature(layer: Layer) -> str:
    """Return the arguments of a layer, as a Python signature."""
    arguments = ["*inputs"] if layer.variadic else []
    arguments += [_argument(argument) for argument in layer.arguments if argument.name != "results"]
    if layer.collects_attributes:
        arguments.append("**attributes")
    return f"({', '.join(arguments)})"


def _argument(argument: Argument) -> str:
    if argument.required:
        return argument.name
    default = argument.default
    return f"{argument.name}={default[0] if isinstance(default, tuple) and len(default) == 1 else default}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(render())


if __name__ == "__main__":
    main()
