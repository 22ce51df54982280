"""Write `encoder.npz`: what PyTorch computes with the encoder of `tests.bench.encoder`, at every length.

    python -m tests.golden.make_encoder        (needs torch; run from the root of the tree)

The file holds `outputs`: a row for each length from 1 to `LONGEST`, of the sentence that `sentence` draws.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from engine import pnnx
from tests.bench.encoder import HEADS
from tests.golden.encoder import GOLDEN, LAYERS, LONGEST, WIDTH, sentence, write_golden_encoder


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder:
        param = write_golden_encoder(Path(folder))
        weights = _weights(param)
    with torch.inference_mode():
        outputs = [_run(weights, torch.from_numpy(sentence(n))) for n in range(1, LONGEST + 1)]
    np.savez_compressed(GOLDEN, outputs=torch.cat(outputs).numpy())


def _weights(param: Path) -> dict[str, torch.Tensor]:
    """Return the weights by `operator.key`."""
    model = pnnx.read(param, param.with_suffix(".bin"))
    return {
        f"{operator.name}.{key}": torch.from_numpy(
            np.frombuffer(attribute.data, np.float32).reshape(attribute.shape).copy()
        )
        for operator in model.operators
        for key, attribute in operator.attrs.items()
    }


def _run(weights: dict[str, torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
    length = ids.shape[1]
    x = functional.embedding(ids, weights["words.weight"]) + weights["places.weight"][:length]
    for layer in range(LAYERS):
        x = _layer(weights, f"l{layer}", x)
    return _linear(weights, "head", x.mean(1))


def _layer(weights: dict[str, torch.Tensor], name: str, x: torch.Tensor) -> torch.Tensor:
    query, key, value = (
        _linear(weights, f"{name}.{one}", x).reshape(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2)
        for one in "qkv"
    )
    mixed = functional.scaled_dot_product_attention(query, key, value)
    x = x + _linear(weights, f"{name}.o", mixed.transpose(1, 2).reshape(1, -1, WIDTH))
    x = _norm(weights, f"{name}.n1", x)
    inner = functional.gelu(_linear(weights, f"{name}.up", x))
    return _norm(weights, f"{name}.n2", x + _linear(weights, f"{name}.down", inner))


def _linear(weights: dict[str, torch.Tensor], name: str, x: torch.Tensor) -> torch.Tensor:
    return functional.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _norm(weights: dict[str, torch.Tensor], name: str, x: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-5)


if __name__ == "__main__":
    main()
