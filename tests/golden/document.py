"""Writes docs/reference/operators.md, the page of supported operators, from the registry and the case table.

Run: python -m tests.golden.document
"""

from collections import Counter
from pathlib import Path

from engine import Layer, registry
from engine.arguments import Argument
from tests.golden.cases import families

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "operators.md"

HEAD = """# Operators

Every operator type that the engine runs, with the arguments that its layer takes from a model: operands
(`$name`), attributes (`@name`) or parameters (`name=`). Arguments without a default are required. The last
column counts the golden cases that compare the type with PyTorch (`tests/golden/cases/`). `make figures` writes
this page.

There are {count} types and {cases} golden cases.

## Results that the exporter drops

The exporter writes `nn.LSTM` with one output whether a model uses its output, its hidden state or its cell
state, and with several outputs in the order in which the model first uses them. It does not say which they are.
Declared shapes often tell. If they leave only the order open, it is assumed to be PyTorch's. If they leave open
which state an output is, the hidden state is assumed, unless its use as an initial state tells more.
`graph.warnings`, `kuiper check`, `/models` and the log say what was assumed. Whatever else is ambiguous is
refused when the graph is built.

One word at the end of the operator's line in the `.param` file settles it, in the order of the operator's
outputs:

    nn.LSTM  lstm  1 2 0 1 2  batch_first=True … #2=(1,2,4)f32 outputs=output,c_n

{results}

A file that was exported with two input shapes (`inputshape2=`) of different sequence lengths leaves less open.

## What the exporter leaves under other names

The exporter writes what it cannot translate as `aten::…`, with its arguments as operands in ATen's order. Those
listed below run all the same. An import of an ONNX model (`pnnx model.onnx`) leaves some operators under their
ONNX names: those listed below run, any other is refused as "an ONNX operator that the exporter left
untranslated".

## What the exporter gets wrong

Some files say something else than the model did, and usually nothing in them shows it. `kuiper export` finds that,
since it compares every tensor with the source, and repairs what can be repaired. Seen in pnnx for PyTorch 2.13:

{faults}

## Types

| type | arguments | cases |
|---|---|---|
"""

FAULTS = (
    (
        "a slice of open axes alone (`x[:, :, 1:]`, `x[..., ::2, ::2]`, with `inputshape2=`)",
        "nothing, or the slice without these axes",
        "`F.pad` with a negative margin, `F.max_pool2d(x, 1, 2)`; or a single `inputshape=`; "
        "repaired by `kuiper export`",
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
        "`div`, without rounding (refused for integers, whose declared type tells)",
        "`torch.floor(x / y)`; repaired by `kuiper export`",
    ),
    (
        '`torch.div(x, y, rounding_mode="trunc")`',
        "`floor_divide`",
        "`torch.trunc(x / y)`; repaired by `kuiper export` for floating-point numbers",
    ),
    (
        "`torch.round(x, decimals=2)`",
        "`round`, to whole numbers",
        "`torch.round(x * 100) / 100`; repaired by `kuiper export`",
    ),
    (
        "`nn.LayerNorm(n, bias=False)`",
        "`nn.LayerNorm` without its weight",
        "`bias=True`; repaired by `kuiper export`",
    ),
    (
        "gelu with tanh, written out",
        "`F.gelu` with erf",
        '`F.gelu(x, approximate="tanh")`; repaired by `kuiper export`',
    ),
    (
        "an index tensor that is the same for all inputs at fixed sizes (`mask[rows, columns]`)",
        "`Tensor.index` with `[0]`",
        "`inputshape2=`; repaired by `kuiper export`",
    ),
    ("`x.half().float()`", "nothing", ""),
    (
        "ONNX `MaxPool`, `AveragePool` with `auto_pad` SAME_UPPER and an odd margin",
        "as much margin before as after",
        "explicit `pads`",
    ),
    (
        "ONNX `Shape` where sizes are open",
        "the tensor itself",
        "`inputshape=` alone, without `inputshape2=`",
    ),
    ("ONNX `SpaceToDepth`", "`F.pixel_unshuffle`, whose channels are in another order", ""),
    ("ONNX `Slice` with a negative step", "nothing", ""),
)
"""What a model does, what the exporter makes of it, and how to word the model instead."""


def render() -> str:
    """Return the text of the page."""
    cases = Counter(case.type for table in families().values() for case in table)
    ours = (layer for layer in registry if layer.forward.__module__.startswith("engine."))
    layers = sorted(ours, key=lambda layer: layer.type.lower())
    rows = (f"| `{layer.type}` | {_arguments(layer)} | {cases[layer.type] or ''} |" for layer in layers)
    head = HEAD.format(count=len(layers), cases=cases.total(), results=_results(layers), faults=_faults())
    return head + "\n".join(rows) + "\n"


def _faults() -> str:
    rows = (f"| {' | '.join(row)} |".replace("|  |", "| |") for row in FAULTS)
    return "\n".join(["| in the model | in the file | what helps |", "|---|---|---|", *rows])


def _results(layers: list[Layer]) -> str:
    named = [layer for layer in layers if layer.results is not None]
    rows = [f"| `{layer.type}` | {', '.join(layer.results.names)} |" for layer in named if layer.results]
    return "\n".join(["| type | names of results |", "|---|---|", *rows])


def _arguments(layer: Layer) -> str:
    words = ["any number of operands"] if layer.variadic else []
    words += [_argument(argument) for argument in layer.arguments if argument.name != "results"]
    if layer.collects_attributes:
        words.append("its attributes")
    return ", ".join(words)


def _argument(argument: Argument) -> str:
    if argument.required:
        return f"{argument.name}"
    default = argument.default
    if isinstance(default, tuple) and len(default) == 1:
        default = default[0]
    return f"{argument.name}={default}".replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(render())


if __name__ == "__main__":
    main()
