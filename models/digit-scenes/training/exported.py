"""The weights of an exported graph, put back into the network that it was made from: training goes on from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from engine.pnnx import files


def restore(network: nn.Module, folder: Path, images: Tensor) -> nn.Module:
    """Give a network the weights of the graph that was exported from it; returns the network.

    The exporter folds batch norms into convolutions. Each gets back the statistics of its input on some images, and
    the scale and the shift that undo them: the network computes what the graph does.

    Args:
        network: changes in place.
        folder: holds the graph.
        images: (n, 3, side, side), what the statistics are taken from.

    Raises:
        ValueError: the graph is of another network.
    """
    layers = _layers(network, images[:1])
    for layer, (weight, bias) in zip(layers, _weights(folder), strict=True):
        is_normalized = isinstance(layer, nn.Sequential)
        (layer[0] if is_normalized else layer).weight.data.copy_(torch.from_numpy(weight))
        (layer[1] if is_normalized else layer).bias.data.copy_(torch.from_numpy(bias))
    norms = [layer[1] for layer in layers if isinstance(layer, nn.Sequential)]
    hooks = [norm.register_forward_pre_hook(_adapt) for norm in norms]
    with torch.no_grad():
        network.eval()(images)
    for hook in hooks:
        hook.remove()
    return network


def _weights(folder: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return weight and bias of each convolution, in the order of the file, in which they run."""
    (param,) = folder.glob("*.pnnx.param")
    found = []
    for operator in files.read(param, param.with_suffix(".bin")).operators:
        for name in sorted(name for name in operator.attrs if name.endswith("weight")):
            attributes = operator.attrs[name], operator.attrs[name.removesuffix("weight") + "bias"]
            found.append(tuple(np.array(one.array(), np.float32) for one in attributes))
    return found


def _layers(network: nn.Module, images: Tensor) -> Sequence[nn.Module]:
    """Return convolutions, each with the batch norm after it where there is one, in the order in which they run."""
    units = [
        module
        for module in network.modules()
        if isinstance(module, nn.Sequential) and len(module) > 1 and isinstance(module[1], nn.BatchNorm2d)
    ]
    inside = {unit[0] for unit in units}
    convolutions = (
        module for module in network.modules() if isinstance(module, nn.Conv2d | nn.ConvTranspose2d)
    )
    order: list[nn.Module] = []
    hooks = [
        layer.register_forward_pre_hook(lambda layer, _: order.append(layer))
        for layer in (*units, *(one for one in convolutions if one not in inside))
    ]
    with torch.no_grad():
        network.eval()(images)
    for hook in hooks:
        hook.remove()
    return order


def _adapt(norm: nn.Module, inputs: tuple[Tensor]) -> None:
    """Give a batch norm the statistics of its input, and the scale and shift that leave all but its bias as it is."""
    variance, mean = torch.var_mean(inputs[0], (0, 2, 3), correction=0)
    norm.weight.data.copy_((variance + norm.eps).sqrt())
    norm.bias.data.add_(mean)
    norm.running_mean.copy_(mean)
    norm.running_var.copy_(variance)
