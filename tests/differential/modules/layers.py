"""What random modules are made of besides PyTorch's own layers."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn


class Apply(nn.Module):
    """A function of tensors; `text` says which, where a module is printed."""

    def __init__(self, text: str, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.text, self.function = text, function

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return self.function(*tensors)

    def extra_repr(self) -> str:
        return self.text


class Join(nn.Module):
    """What a function makes of a tensor and of what layers make of it: residuals, gates and concatenations."""

    def __init__(self, join: Apply, *bodies: nn.Module) -> None:
        super().__init__()
        self.join, self.bodies = join, nn.ModuleList(bodies)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined: torch.Tensor = self.join(x, *(body(x) for body in self.bodies))
        return joined


class Turned(nn.Module):
    """A layer over (n, features, steps), applied to (n, steps, features)."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned: torch.Tensor = self.body(x.transpose(1, 2)).transpose(1, 2)
        return turned


class Recurrence(nn.Module):
    """A recurrent network of which "all" steps are used, "both" these and the last state, or the last "state" alone."""

    def __init__(self, network: nn.Module, used: str) -> None:
        super().__init__()
        self.network, self.used = network, used

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps, state = self.network(x)
        if self.used == "all":
            return torch.as_tensor(steps)
        last = torch.cat(list(state), -1) if isinstance(state, tuple) else state
        if self.used == "state":
            return last.transpose(0, 1)
        return torch.cat((steps, last.mean(0).unsqueeze(1).expand(-1, steps.shape[1], -1)), -1)

    def extra_repr(self) -> str:
        return self.used


class Attention(nn.Module):
    """Self-attention, with its weights where they are asked for."""

    def __init__(self, features: int, heads: int, weights: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(features, heads, batch_first=True)
        self.weights = weights

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed, weights = self.attention(x, x, x, need_weights=self.weights)
        return mixed + weights.sum(-1, keepdim=True) if self.weights else torch.as_tensor(mixed)


class Stack(nn.Module):
    """Layers one after the other; the first takes all inputs. Results of layers that are named are outputs as well."""

    def __init__(self, layers: Sequence[nn.Module], kept: Sequence[int] = ()) -> None:
        super().__init__()
        self.layers, self.kept = nn.ModuleList(layers), frozenset(kept)

    def forward(self, *inputs: torch.Tensor) -> Any:
        x: Any = inputs[0]
        outputs = []
        for place, layer in enumerate(self.layers):
            x = layer(*inputs) if place == 0 else layer(x)
            if place in self.kept:
                outputs.append(x)
        return (*outputs, x) if outputs else x
