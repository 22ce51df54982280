"""The commands of `kuiper`, one file each: a module that is named as its command.

A module has either `run`, whose parameters are the arguments as typer reads them, and `EXAMPLE`, which the reference
shows and runs; or, where the flags come from elsewhere, `make_parser` and `main` with argparse. `COMMANDS` lists the
commands, so that none is imported before it is asked for.
"""

COMMANDS = {
    "serve": "Serve the models of a directory.",
    "infer": "Run a model on files: pictures and arrays, folders and globs.",
    "models": "List the models of a folder, or of a server.",
    "graph": "Show a model's graph as a table, a tree or a drawing.",
    "trace": "Show what every layer of a model does, and for how long.",
    "diff": "Compare two models: graph, weights and results, operator by operator.",
    "bench": "Measure latency and throughput over threads and batch sizes.",
    "check": "Report whether a model runs, which inputs it takes, and where its results differ.",
    "compile": "Compile models ahead, so that servers start without.",
    "quantize": "Determine from examples how a model computes in int8.",
    "export": "Export a model of PyTorch or ONNX to a folder that a server serves.",
    "doctor": "Tell what this machine offers, what is missing, and what mends it.",
    "expression": "Show the tokens, the tree and the value of a pnnx.Expression.",
}
"""Each command, and what it does in a sentence."""

PARSED_BY_ARGPARSE = frozenset({"serve", "check", "compile", "quantize"})
"""Commands whose flags are made from the settings, or belong to the engine, which knows nothing of typer."""
