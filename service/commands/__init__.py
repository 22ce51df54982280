"""The commands of `kuiper`, one file each: a module that is named as its command.

A module has `run`, whose parameters are the arguments as typer reads them, and `EXAMPLE`, which the reference shows and
runs. `COMMANDS` lists the commands, so that only the one in use is imported.
"""

COMMANDS = {
    "serve": "Serve the models of a directory.",
    "infer": "Run a model on files: pictures and arrays, folders and globs.",
    "explain": "Show which parts of a picture or text a prediction depends on.",
    "models": "List the models of a folder, or of a server.",
    "graph": "Show a model's graph as a table, a tree or a drawing.",
    "trace": "Show the time, shape and backend of every layer of a model.",
    "diff": "Compare two models: graph, weights and results, operator by operator.",
    "bench": "Measure latency and throughput over threads and batch sizes.",
    "check": "Report whether a model runs, its inputs, and where its results differ from a reference.",
    "compile": "Compile models ahead, so that servers start faster.",
    "quantize": "Calibrate a model for int8 from example inputs.",
    "export": "Export a model of PyTorch or ONNX to a folder that a server serves.",
    "doctor": "Check this machine and suggest fixes.",
    "expression": "Show the tokens, the tree and the value of a pnnx.Expression.",
}
"""Each command, and what it does in a sentence."""
