"""Networks that pnnx alone writes wrong, and `kuiper export` repairs: one for each fault."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F  # PyTorch's own name for it
from torch import Tensor, nn

WIDTH = 16


class GeluWrittenOut(nn.Module):
    """pnnx makes F.gelu of the formula with tanh, as if it were that with erf."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, 16) of (…, 16)."""
        y = 3 * self.up(x)
        y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
        return self.down(y)


class BothGelus(GeluWrittenOut):
    """The same beside the formula with erf, which is right."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, 16) of (…, 16)."""
        return super().forward(F.gelu(3 * x))


class NormWithoutBias(nn.Module):
    """pnnx leaves out the weight."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.LayerNorm(WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        nn.init.normal_(self.norm.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, 16) of (…, 16)."""
        return self.head(self.norm(x))


class FloorDivision(nn.Module):
    """pnnx leaves out the rounding: the five best of a grid, by row and column."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return scores, rows, columns (batch, 5), and halves of x rounded down, of (batch, rows, 16)."""
        scores, places = torch.topk(self.head(x).flatten(1), 5)
        halves = torch.div(x, 0.5, rounding_mode="floor")
        return scores, torch.div(places, WIDTH, rounding_mode="floor"), places % WIDTH, halves


class Rounding(nn.Module):
    """pnnx rounds down where numbers are to be truncated, and to whole numbers where decimals are to stay."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return two tensors of the shape of x."""
        return torch.div(x, 0.3, rounding_mode="trunc") + x, torch.round(x * 3, decimals=2) + x


class SquareAttention(nn.Module):
    """pnnx does not write which result of attention it keeps; as many tokens as features have one shape."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, 16, 16) of (batch, 16, 16)."""
        return self.attention(x, x, x)[0]


class SquareWeights(SquareAttention):
    """The other result."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, 16, 16) of (batch, 16, 16)."""
        return self.attention(x, x, x)[1]


class Strided(nn.Module):
    """pnnx takes a size for a constant that is the same for 16,000 samples and for 16,032."""

    def __init__(self) -> None:
        super().__init__()
        self.samples = nn.Conv1d(1, 4, 400, 320)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (batch, steps, 4) and (batch, 4, 4 · steps) of (batch, samples)."""
        y = self.samples(x[:, None])
        batch, channels, steps = y.shape
        longer = F.interpolate(y, size=steps * 4, mode="linear")
        return y.reshape(batch, channels // 2, 2 * steps).transpose(1, 2), longer


class Shifted(nn.Module):
    """pnnx leaves out slices of a dynamic dimension whose bounds are constants."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, ceil((rows - 2) / 2), 16) of (batch, rows, 16)."""
        y = self.head(x)
        return torch.cat([y[:, 1:], y[:, :-1]], 2)[:, :-1].narrow(2, 0, WIDTH)[:, ::2]


class Masked(nn.Module):
    """pnnx makes [0] of indices that are constants at fixed sizes, as transformers' masks have them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return (batch, length, 16) of whole numbers (batch, length)."""
        x = self.words(ids)
        rows = torch.arange(ids.shape[0])[:, None, None, None]
        columns = torch.arange(ids.shape[1])[None, None, None, :]
        seen = mask.bool()[rows, columns].expand(-1, 1, ids.shape[1], ids.shape[1])
        query, key, value = (
            part(x).view(*ids.shape, 2, 8).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        return y.transpose(1, 2).reshape(*ids.shape, WIDTH)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], list[str]]] = {
    "gelu_written_out": (GeluWrittenOut, ["?,4,16"]),
    "both_gelus": (BothGelus, ["?,4,16"]),
    "norm_without_bias": (NormWithoutBias, ["?,4,16"]),
    "floor_division": (FloorDivision, ["?,4,16"]),
    "rounding": (Rounding, ["?,4,16"]),
    "square_attention": (SquareAttention, ["1,16,16"]),
    "square_weights": (SquareWeights, ["1,16,16"]),
    "strided": (Strided, ["1,16000?"]),
    "shifted": (Shifted, ["?,12?,16"]),
    "masked": (Masked, ["1,12:i64", "1,12:i64"]),
    "masked_dynamic": (Masked, ["?,12?:i64", "?,12?:i64"]),
}
"""Name -> the class, and how its inputs are given to `kuiper export`."""


def __getattr__(name: str) -> Callable[[], nn.Module]:
    """Return a function that makes a network, for `kuiper export tests.golden.exported.networks:NAME`."""
    if name not in NETWORKS:
        raise AttributeError(name)

    def make() -> nn.Module:
        torch.manual_seed(0)
        return NETWORKS[name][0]().eval()

    return make
