"""Compares the precisions on an encoder of sentences with its trained weights: time, error and memory of weights.

Run: python -m tests.bench.int4 MODEL [--tokens 1 16 128] [--rounds 30]

MODEL is the folder of all-MiniLM-L6-v2, exported as docs/guides/text.md says. Runs of the precisions alternate, on one
thread; times are processor time, the least of all rounds. Errors are those of the vectors of `SENTENCES` (means over
tokens), against float32: the norm of the difference over the norm; and the largest change of a cosine of two of them.
int8 is calibrated on other sentences.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer

from engine import RuntimeGraph, TensorSpec
from engine.dtypes import Array
from tests.golden.rounded_networks import calibrated

PRECISIONS = ("f32", "bf16", "int8", "int4")
SENTENCES = (
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "A cheetah is running behind its prey.",
    "Sums of products are float32, whatever the weights are.",
    "The bank raised its interest rate by a quarter of a percent on Thursday.",
    "How do I reset the password of my account?",
    "I forgot my password and cannot log in.",
)
EXAMPLES = (
    "The weather is nice today. Interest rates fell. She plays the violin in an orchestra. Where is my order?"
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 16, 128])
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    os.environ["KUIPER_CACHE"] = ""
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    graphs = opened(next(options.model.glob("*.param")), inputs_of(tokenizer, EXAMPLES))
    vectors = {
        name: np.stack([vector(graph, tokenizer, text) for text in SENTENCES])
        for name, graph in graphs.items()
    }
    with threadpool_limits(1):
        times = [milliseconds(graphs, tokens, options.rounds) for tokens in options.tokens]
    heads = (
        *(f"ms, tokens: {tokens}" for tokens in options.tokens),
        "error",
        "of cosines",
        "weights, MB",
    )
    print("| precision | " + " | ".join(heads) + " |\n" + "| --- " * (len(heads) + 1) + "|")
    for name, graph in graphs.items():
        cells = [f"{row[name]:.2f}" for row in times] + errors(vectors[name], vectors["f32"])
        print(f"| {name} | " + " | ".join([*cells, f"{packed_bytes(graph) / 1e6:.0f}"]) + " |")


def opened(param: Path, example: list[Array]) -> dict[str, RuntimeGraph]:
    """Return the graph in each precision."""
    graphs: dict[str, RuntimeGraph] = {}
    for name in PRECISIONS:
        quantization = calibrated(graphs["f32"], example) if name == "int8" else None
        graph = RuntimeGraph(param, backend="native", precision=name, quantization=quantization)
        graph.build()
        graphs[name] = graph
    return graphs


def inputs_of(tokenizer: Tokenizer, text: str) -> list[Array]:
    """Return token identifiers and mask of a text, (1, tokens)."""
    tokenizer.no_padding()
    found = tokenizer.encode(text)
    return [np.array([values], np.int64) for values in (found.ids, found.attention_mask)]


def vector(graph: RuntimeGraph, tokenizer: Tokenizer, text: str) -> Array:
    """Return the vector of a text, of length 1."""
    (tokens,) = graph.forward(inputs_of(tokenizer, text))
    mean: Array = tokens[0].mean(axis=0)
    vector: Array = mean / np.linalg.norm(mean)
    return vector


def errors(vectors: Array, exact: Array) -> list[str]:
    """Return the largest error of a vector, and the largest change of a cosine."""
    error = np.linalg.norm(vectors - exact, axis=1).max()
    cosine = np.abs(vectors @ vectors.T - exact @ exact.T).max()
    return [f"{error:.4f}", f"{cosine:.4f}"]


def milliseconds(graphs: dict[str, RuntimeGraph], tokens: int, rounds: int) -> dict[str, float]:
    """Return the least time of a run in each precision, compiled for so many tokens."""
    ids = np.random.default_rng(0).integers(1000, 30000, (1, tokens))
    inputs = [ids, np.ones_like(ids)]
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for graph in graphs.values():
        graph.prepare([TensorSpec(array.shape, array.dtype) for array in inputs])
        graph.forward(inputs)
    for _ in range(rounds):
        for name, graph in graphs.items():
            start = time.thread_time()
            graph.forward(inputs)
            times[name].append(1000 * (time.thread_time() - start))
    return {name: min(values) for name, values in times.items()}


def packed_bytes(graph: RuntimeGraph) -> int:
    """Return the bytes of weights as kernels read them, of the program that was compiled last."""
    footprint = graph.prepare([TensorSpec((1, 128), np.dtype(np.int64))] * 2)
    return 0 if footprint is None else footprint.constant_bytes


if __name__ == "__main__":
    main()
