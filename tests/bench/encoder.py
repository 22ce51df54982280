"""An encoder of sentences with random weights, for any number of tokens; no exporter is needed to write it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine.dtypes import Array
from tests.engine.compiler.plans import weights_of
from tests.engine.models import write_model

WORDS, POSITIONS, HEADS = 3000, 512, 4


def write_encoder(folder: Path, layers: int, width: int) -> Path:
    """Write an encoder like BERT's: embeddings, so many layers of attention and feed-forward, and the mean.

    Args:
        folder: where to.
        layers: how many layers.
        width: features of a token; four times as many inside a layer.

    Returns:
        The `.param` file.
    """
    text = "\n".join(_lines(layers, width))
    random = np.random.default_rng(0)
    weights = {name: _draw(random, array.shape) for name, array in weights_of(text).items()}
    return write_model(folder, text, weights)


def _draw(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return weights of a size that keeps results as large as they are, layer after layer."""
    weights: Array = random.standard_normal(shape) / np.sqrt(shape[-1])
    return weights.astype(np.float32)


def _lines(layers: int, width: int) -> Iterator[str]:
    yield "pnnx.Input in 0 1 ids #ids=(1,?)i64"
    yield "pnnx.Expression size 1 1 ids n expr=size(@0,1)"
    yield "torch.arange range 1 1 n p dtype=None $end=n"
    yield _embedding("words", "ids", "w", WORDS, width)
    yield _embedding("places", "p", "q", POSITIONS, width)
    yield "pnnx.Expression sum 2 1 w q x0 expr=add(@0,@1)"
    for layer in range(layers):
        yield from _layer(f"l{layer}", f"x{layer}", f"x{layer + 1}", width)
    yield f"torch.mean mean 1 1 x{layers} m dim=(1) keepdim=False $input=x{layers}"
    yield _linear("head", "m", "y", width, 8)
    yield "pnnx.Output out 1 0 y"


def _layer(name: str, source: str, target: str, width: int) -> Iterator[str]:
    part = width // HEADS
    for one in "qkv":
        yield _linear(f"{name}.{one}", source, f"{name}{one}", width, width)
        yield f"Tensor.reshape {name}.r{one} 1 1 {name}{one} {name}{one}s shape=(1,-1,{HEADS},{part})"
        dims = "(0,2,3,1)" if one == "k" else "(0,2,1,3)"
        yield f"Tensor.permute {name}.p{one} 1 1 {name}{one}s {name}{one}h dims={dims}"
    yield f"torch.matmul {name}.scores 2 1 {name}qh {name}kh {name}s"
    yield f"pnnx.Expression {name}.scale 1 1 {name}s {name}t expr=div(@0,{part**0.5})"
    yield f"F.softmax {name}.softmax 1 1 {name}t {name}u dim=-1"
    yield f"torch.matmul {name}.mix 2 1 {name}u {name}vh {name}a"
    yield f"Tensor.permute {name}.back 1 1 {name}a {name}b dims=(0,2,1,3)"
    yield f"Tensor.reshape {name}.flat 1 1 {name}b {name}c shape=(1,-1,{width})"
    yield _linear(f"{name}.o", f"{name}c", f"{name}d", width, width)
    yield f"pnnx.Expression {name}.add1 2 1 {source} {name}d {name}e expr=add(@0,@1)"
    yield _norm(f"{name}.n1", f"{name}e", f"{name}f", width)
    yield _linear(f"{name}.up", f"{name}f", f"{name}g", width, 4 * width)
    yield f"F.gelu {name}.gelu 1 1 {name}g {name}i"
    yield _linear(f"{name}.down", f"{name}i", f"{name}j", 4 * width, width)
    yield f"pnnx.Expression {name}.add2 2 1 {name}f {name}j {name}k2 expr=add(@0,@1)"
    yield _norm(f"{name}.n2", f"{name}k2", target, width)


def _embedding(name: str, source: str, target: str, count: int, width: int) -> str:
    sizes = f"embedding_dim={width} num_embeddings={count} sparse=False"
    return f"nn.Embedding {name} 1 1 {source} {target} {sizes} @weight=({count},{width})f32"


def _linear(name: str, source: str, target: str, taken: int, given: int) -> str:
    sizes = f"bias=True in_features={taken} out_features={given}"
    return f"nn.Linear {name} 1 1 {source} {target} {sizes} @bias=({given})f32 @weight=({given},{taken})f32"


def _norm(name: str, source: str, target: str, width: int) -> str:
    sizes = f"elementwise_affine=True eps=1e-5 normalized_shape=({width})"
    return f"nn.LayerNorm {name} 1 1 {source} {target} {sizes} @bias=({width})f32 @weight=({width})f32"
