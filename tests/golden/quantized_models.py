"""Quantized models in PyTorch's words. The exporter is built without an engine for them, so graphs are written here.

Weights are quantized by PyTorch, per channel or for all channels at once, and computed with by FBGEMM.
"""

from collections.abc import Callable, Sequence
from typing import Any

ACTIVATION = (0.03, 61)
"""Scale and zero point of the inputs."""


def quantized_model(torch: Any, modules: dict[str, Any], run: Callable[..., Any]) -> Any:
    """Make a model that quantizes its input to uint8, runs `run(model, input)` and dequantizes what that gives."""

    class Model(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            for name, module in modules.items():
                self.add_module(name, module)

        def forward(self, *inputs: Any) -> Any:
            quantized = [torch.quantize_per_tensor(item, *ACTIVATION, torch.quint8) for item in inputs]
            return torch.dequantize(run(self, *quantized))

        def state_dict(self) -> dict[str, Any]:
            """Return what the exporter writes: integers, and their scales if there is one for each channel."""
            state = {}
            for name, module in modules.items():
                weight, bias = module.weight(), module.bias()
                state[f"{name}.weight"] = weight.int_repr()
                if bias is not None:
                    state[f"{name}.bias"] = bias.detach()
                scales, zero_points = _parameters(torch, weight)
                state[f"{name}.weight.q_per_channel_scales"] = scales
                state[f"{name}.weight.q_per_channel_zero_points"] = zero_points
            return state

    return Model()


def _parameters(torch: Any, weight: Any) -> tuple[Any, Any]:
    if weight.qscheme() == torch.per_channel_affine:
        return weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
    return torch.tensor([weight.q_scale()], dtype=torch.float64), torch.tensor([weight.q_zero_point()])


def with_weight(
    torch: Any,
    kind: str,
    arguments: Sequence[Any],
    shape: Sequence[int],
    output: tuple[float, int],
    per_channel: bool,
    bias: bool,
    **options: Any,
) -> Any:
    """Make a quantized module, `nn.quantized.Conv2d` and the like, with random weights."""
    torch.backends.quantized.engine = "fbgemm"
    modules = torch.ao.nn
    for part in kind.removeprefix("nn.").split("."):
        modules = getattr(modules, part)
    module = modules(*arguments, **options)
    weight = torch.randn(shape) * 0.3
    scales = weight.abs().flatten(1).amax(1).double() / 127
    if per_channel:
        zero_points = torch.zeros(len(weight), dtype=torch.int64)
        quantized = torch.quantize_per_channel(weight, scales, zero_points, 0, torch.qint8)
    else:
        quantized = torch.quantize_per_tensor(weight, float(scales.max()), 0, torch.qint8)
    module.set_weight_bias(quantized, torch.randn(len(weight)) if bias else None)
    module.scale, module.zero_point = output
    return module
