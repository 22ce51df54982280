"""Write `digits.npy`: what PyTorch makes of forty pictures with the weights of the digits that ship.

    python -m tests.golden.make_digits

needs the `train` extra.
"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine import RuntimeGraph
from tests.golden.digits import DATA, pictures

FOLDER = Path(__file__).parents[2] / "models" / "digits"


def network() -> Any:
    """Return the torch module, with the weights of the file that ships."""
    spec = importlib.util.spec_from_file_location("digits_network", FOLDER / "training" / "network.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(FOLDER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net = module.DigitsNet().eval()
    graph = RuntimeGraph(FOLDER / "digits.pnnx.param", backend="numpy")
    graph.init()
    weights = {
        f"{operator.name}.{key}": torch.from_numpy(
            np.frombuffer(attribute.data, np.float32).reshape(attribute.shape).copy()
        )
        for operator in graph.operators
        for key, attribute in operator.attrs.items()
    }
    state = net.state_dict()
    unknown = {key for key in state if key not in weights and not key.endswith("num_batches_tracked")}
    if unknown or len(weights) != len([key for key in state if not key.endswith("num_batches_tracked")]):
        raise ValueError(f"the file and the network differ: {unknown or set(weights) - set(state)}")
    net.load_state_dict(weights, strict=False)
    return net


def main() -> None:
    """Write the file."""
    with torch.inference_mode():
        wanted = network()(torch.from_numpy(pictures())).numpy()
    np.save(DATA, wanted)
    print(f"{len(wanted)} rows, the likeliest digits: {wanted.argmax(1).tolist()}")


if __name__ == "__main__":
    main()
