"""Make the golden files of whole networks at lower precisions: what PyTorch gives on ordinary and on extreme inputs.

    python -m tests.golden.make_rounded [NAME …]         (needs torch; run from the root of the tree)

Writes `rounded.npz` into the folders of golden networks: for each kind of input of `tests.golden.rounded_networks`,
samples of PyTorch's outputs in float32, and how far PyTorch is from these itself where it computes in bfloat16
(autocast), or where operands of convolutions and linear layers are rounded to 8-bit integers, with scales from the
first kind of input.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from engine.dtypes import Array
from tests.golden.make import flatten
from tests.golden.make_networks import DATA, GOLDENS
from tests.golden.network_data import arrays
from tests.golden.networks import build
from tests.golden.rounded_networks import INPUTS, distance, sampled

NETWORKS = (
    *("resnet18", "mobilenet_v2", "unet", "yolov5_raw", "proposal_net", "efficientnet_lite"),
    *("shufflenet_v2", "sequence_net", "vit"),
)
"""Those of the golden networks that have more than one way through the compiler to themselves."""


def main() -> None:
    """Make the golden files named on the command line again, or all."""
    torch.set_num_threads(1)
    names = sys.argv[1:] or NETWORKS
    for golden in GOLDENS:
        if golden.name in names:
            module = build(golden.network, **golden.options)
            made = record(module, arrays(golden.name, "file", "in")[0])
            np.savez_compressed(DATA / golden.name / "rounded.npz", **made)  # type: ignore[arg-type]
            print(golden.name, {key: f"{value:.1e}" for key, value in made.items() if value.size == 1})


def record(module: nn.Module, image: Array) -> dict[str, Array]:
    """Return what PyTorch makes of each kind of input, by the names used in rounded.npz."""
    made: dict[str, Array] = {}
    ranges = _ranges(module, image)
    for kind, change in INPUTS.items():
        given = change(image)
        plain = _run(module, given)
        made |= {f"{kind}/out_{place}": output for place, output in enumerate(plain)}
        with torch.autocast("cpu", torch.bfloat16):
            made[f"{kind}/bf16"] = np.asarray(distance(_run(module, given), plain))
        with _rounding(module, ranges):
            made[f"{kind}/int8"] = np.asarray(distance(_run(module, given), plain))
    return made


def _run(module: nn.Module, image: Array) -> list[Array]:
    with torch.no_grad():
        response = module(torch.from_numpy(image.copy()))
    outputs = [response] if isinstance(response, torch.Tensor) else response
    return [sampled(array) for array in flatten([output.float() for output in outputs])]


def _layers(module: nn.Module) -> list[Any]:
    return [part for part in module.modules() if isinstance(part, nn.Conv1d | nn.Conv2d | nn.Linear)]


def _ranges(module: nn.Module, image: Array) -> dict[Any, tuple[float, float]]:
    """Return the least and the greatest number that each layer takes, 0 among them."""
    found: dict[Any, tuple[float, float]] = {}

    def note(part: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        low, high = found.get(part, (0.0, 0.0))
        found[part] = min(low, float(given[0].min())), max(high, float(given[0].max()))

    hooks = [part.register_forward_pre_hook(note) for part in _layers(module)]
    _run(module, image)
    for hook in hooks:
        hook.remove()
    return found


@contextmanager
def _rounding(module: nn.Module, ranges: dict[Any, tuple[float, float]]) -> Iterator[None]:
    """Have PyTorch round the operands of layers to 8-bit integers: one scale a filter, one a tensor or a row."""

    def take(part: nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        (x,) = given
        if isinstance(part, nn.Linear) and x.dim() > 2:
            steps = x.abs().amax(-1, keepdim=True).clamp(1e-30) / 127
            return (torch.round(x / steps) * steps,)
        low, high = ranges[part]
        scale = max((high - low) / 255, 1e-30)
        return (torch.fake_quantize_per_tensor_affine(x, scale, round(-low / scale), 0, 255),)

    layers = _layers(module)
    kept = [part.weight.detach().clone() for part in layers]
    hooks = [part.register_forward_pre_hook(take) for part in layers]
    for part in layers:
        scales = part.weight.detach().abs().flatten(1).amax(1).clamp(1e-30) / 127
        zeros = torch.zeros(len(scales), dtype=torch.int32)
        part.weight.data = torch.fake_quantize_per_channel_affine(
            part.weight.detach(), scales, zeros, 0, -127, 127
        )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for part, weight in zip(layers, kept, strict=True):
            part.weight.data = weight


if __name__ == "__main__":
    main()
