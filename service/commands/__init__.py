"""The commands of `kuiper`, one file each: a module that is named as its command.

A module has either `run`, whose parameters are the arguments as typer reads them, and `EXAMPLE`, which the reference
shows and runs; or, where the flags come from elsewhere, `make_parser` and `main` with argparse. `COMMANDS` lists the
commands, so that none is imported before it is asked for.
"""

COMMANDS = {
    "serve": "Serve the models of a directory.",
    "trace": "Show what every layer of a model does, and for how long.",
    "check": "Report whether a model runs, which inputs it takes, and where its results differ.",
    "compile": "Compile models ahead, so that servers start without.",
    "quantize": "Determine from examples how a model computes in int8.",
    "export": "Export a model of PyTorch or ONNX to a folder that a server serves.",
    "expression": "Show the tokens, the tree and the value of a pnnx.Expression.",
}
"""Each command, and what it does in a sentence."""

PARSED_BY_ARGPARSE = frozenset({"serve", "check", "compile", "quantize"})
"""Commands whose flags are made from the settings, or belong to the engine, which knows nothing of typer."""
