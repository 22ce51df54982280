"""Small networks of what architectures of timm and transformers are made of, which kernels have to compute alone.

`tests/golden/test_patterns.py` checks that no operator of these is left to numpy.
"""

from typing import Any

from tests.golden.case import LayerCase, boolean, f32, function, i64, tensor


def _conv1d(torch: Any, alpha: float = 1.0) -> Any:
    """GPT-2's linear layer, whose weight is (in, out)."""

    class Conv1D(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(6, 10))
            self.bias = torch.nn.Parameter(torch.randn(10))

        def forward(self, x: Any) -> Any:
            flat = torch.addmm(self.bias, x.reshape(-1, 6), self.weight, beta=0.5 * alpha + 0.5, alpha=alpha)
            return torch.tanh(flat.reshape(2, 5, 10)) + 1

    return Conv1D()


def _response_norm(torch: Any) -> Any:
    """ConvNeXt V2's global response normalisation."""

    class ResponseNorm(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(6, 12)
            self.weight = torch.nn.Parameter(torch.randn(12))
            self.bias = torch.nn.Parameter(torch.randn(12))

        def forward(self, x: Any) -> Any:
            x = self.fc(x)
            norm = x.norm(p=2, dim=(1, 2), keepdim=True)
            scaled = x * (norm / (norm.mean(dim=-1, keepdim=True) + 1e-6))
            return x + torch.addcmul(self.bias.view(1, 1, 1, -1), self.weight.view(1, 1, 1, -1), scaled)

    return ResponseNorm()


def _parallel_convolutions(torch: Any) -> Any:
    """Blocks of RepVGG and MobileOne as they are trained: parallel convolutions of one image, and the image itself."""

    class Block(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
        def __init__(self, channels: int, sizes: tuple[int, ...], groups: int = 1, stride: int = 1) -> None:
            super().__init__()
            self.convolutions = torch.nn.ModuleList(
                torch.nn.Sequential(
                    torch.nn.Conv2d(channels, 8, size, stride, size // 2, groups=groups, bias=False),
                    torch.nn.BatchNorm2d(8),
                )
                for size in sizes
            )
            self.identity = torch.nn.BatchNorm2d(channels) if stride == 1 and channels == 8 else None
            for module in self.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    for tensor in (
                        module.running_mean,
                        module.running_var,
                        module.weight.data,
                        module.bias.data,
                    ):
                        tensor.uniform_(0.5, 1.5)

        def forward(self, x: Any) -> Any:
            first, *others = self.convolutions
            y = first(x)
            if self.identity is not None:
                y = y + self.identity(x)
            for convolution in others:
                y = y + convolution(x)
            return torch.relu(y)

    return torch.nn.Sequential(
        Block(3, (3, 1), stride=2),
        Block(8, (3, 1)),
        Block(8, (1, 3, 3), groups=8),
        Block(8, (5, 3, 1), groups=2),
    )


def _network(type_name: str, name: str, build: Any, *inputs: Any, **options: Any) -> LayerCase:
    return LayerCase(type_name, name, build, inputs, **options)


def _attention_of_windows(torch: Any, x: Any) -> Any:
    """NesT's attention: (batch, heads, windows, tokens, features)."""
    q, k, v = x.reshape(2, 3, 7, 3, 2, 4).permute(3, 0, 4, 1, 2, 5).unbind(0)
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return found.permute(0, 2, 3, 4, 1).reshape(2, 3, 7, 8)


def _attention_of_windows_first(torch: Any, x: Any) -> Any:
    """Hiera's attention: windows lie between tokens, so that nothing but a copy makes batches of them."""
    q, k, v = x.reshape(2, 7, 3, 3, 2, 4).permute(3, 0, 4, 2, 1, 5).unbind(0)
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return found.transpose(1, 3).reshape(2, 21, 8)


def _pad_to_windows(torch: Any, x: Any) -> Any:
    """Swin's margins in transformers, which a tensor of one number shows."""
    window = torch.min(torch.tensor([x.shape[1], 4]))
    margin = (window - x.shape[1] % window) % window
    return torch.nn.functional.pad(x, (0, 0, 0, margin, 0, margin)) * 2


def _outlook(torch: Any, x: Any) -> Any:
    """VOLO's windows: taken apart, weighed, and added up where they overlap."""
    functional = torch.nn.functional
    windows = functional.unfold(x, 3, padding=1, stride=2).reshape(2, 4, 9, 12)
    weights = torch.softmax(windows, 2)
    return functional.fold((windows * weights).reshape(2, 36, 12), (7, 6), 3, padding=1, stride=2)


def _masked_attention(torch: Any, q: Any, k: Any, mask: Any) -> Any:
    """BERT's and ELECTRA's attention: a mask of tokens, made truth values and spread over all queries."""
    seen = mask.to(torch.bool)[:, None, None, :].expand(2, 1, 5, 7)
    return torch.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=seen)


def _masked_scores(torch: Any, scores: Any, mask: Any) -> Any:
    """DeBERTa's: pairs of tokens as products of integers, the others filled with the least number."""
    pairs = mask.unsqueeze(1).unsqueeze(2)
    pairs = pairs * pairs.squeeze(-2).unsqueeze(-1)
    hidden = ~pairs.to(torch.bool)
    return torch.softmax(scores.masked_fill(hidden, torch.finfo(torch.float32).min), -1)


def _additive_mask(torch: Any, scores: Any, mask: Any) -> Any:
    """The mask of older models: nothing is added where it is 1."""
    return scores + (1.0 - mask[:, None, :].to(torch.float32)) * -1e4


def _embeddings(torch: Any) -> Any:
    """RoBERTa's embeddings: tokens, and positions that count no padding."""

    class Embeddings(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(30, 6)
            self.positions = torch.nn.Embedding(12, 6)

        def forward(self, ids: Any) -> Any:
            mask = ids.ne(1).int()
            places = torch.cumsum(mask, dim=1).type_as(mask) * mask
            return self.words(ids) + self.positions(places.long() + 1)

    return Embeddings()


def _last_token(torch: Any, x: Any, ids: Any) -> Any:
    """CLIP's pooling: of each text the token with the largest number, where its end is."""
    return torch.tanh(x)[torch.arange(3), ids.to(torch.int).argmax(dim=-1)]


def _mean_of_tokens(torch: Any, x: Any, mask: Any) -> Any:
    """The pooling of sentence encoders."""
    weights = mask.unsqueeze(-1).expand(x.size()).float()
    return (x * weights).sum(1) / torch.clamp(weights.sum(1), min=1e-9), mask.sum(1)


def _choices(torch: Any, x: Any, y: Any) -> Any:
    """Comparisons and truth values, some of which leave the graph."""
    above = (x > y) & ~torch.eq(x, 0) | (y >= 1)
    either = torch.logical_xor(above, torch.logical_or(x < 0, y))
    return torch.where(above, x, y * 2), above, either.any(1), either.all(-1, keepdim=True), either.sum(0)


def _copies(torch: Any, x: Any, m: Any) -> Any:
    """Repeats and orders of numbers and of truth values."""
    more = torch.cat([m, ~m], 1).repeat(2, 1, 2).to(torch.float32)
    return (
        torch.flip(x.repeat_interleave(3, dim=1), (0, 2)) + 1,
        x.tile(2, 1).unsqueeze(0) * 2,
        torch.stack([m, ~m], -1).repeat_interleave(2, 0),
        more * 3,
    )


def _grid(torch: Any, x: Any) -> Any:
    """The places of a detector's cells, which no input changes."""
    rows, columns = torch.meshgrid(torch.arange(4) + 0.5, torch.arange(5) + 0.5, indexing="ij")
    return x + torch.stack((columns, rows), -1).reshape(1, 20, 2) * torch.full((20, 1), 8.0)


CASES = [
    _network("torch.addmm", "conv1d", _conv1d, f32(2, 5, 6)),
    _network("torch.addmm", "conv1d_scaled", lambda torch: _conv1d(torch, 0.5), f32(2, 5, 6)),
    function(
        "torch.addmm",
        "computed",
        lambda torch, x, a, b: torch.relu(torch.addmm(x, a, b, beta=0.5, alpha=2.0)),
        *(f32(5, 7), f32(5, 3), f32(3, 7)),
    ),
    function(
        "torch.baddbmm",
        "vector",
        lambda torch, x, a, b: torch.relu(torch.baddbmm(x, a, b, alpha=0.25)),
        *(f32(7), f32(4, 5, 3), f32(4, 3, 7)),
    ),
    _network("aten::addcmul", "response_norm", _response_norm, f32(2, 5, 7, 6)),
    function(
        "aten::addcdiv",
        "broadcast",
        lambda torch, x, a, b: torch.addcdiv(x, a, b, value=0.5) * 2,
        *(f32(4, 1), f32(3, 1, 5), f32(4, 5, low=1)),
    ),
    function(
        "Tensor.reshape_as",
        "levit",
        lambda torch, x, y: (x.flatten(0, 1) * 2).reshape_as(y) + y,
        *(f32(2, 6, 5), f32(3, 4, 5)),
    ),
    function("F.scaled_dot_product_attention", "nest", _attention_of_windows, f32(2, 3, 7, 24)),
    function("F.scaled_dot_product_attention", "hiera", _attention_of_windows_first, f32(2, 21, 24)),
    function(
        "torch.matmul",
        "five_axes",
        lambda torch, x, y: torch.softmax(x @ y.transpose(-1, -2) * 0.5 + 1, -1) @ y,
        *(f32(2, 3, 4, 5, 6), f32(3, 1, 7, 6)),
    ),
    function(
        "torch.einsum",
        "heads",
        lambda torch, q, k: torch.softmax(torch.einsum("bqhd,bkhd->bhqk", q, k) * 0.5, -1) * 2,
        *(f32(2, 5, 3, 4), f32(2, 7, 3, 4)),
    ),
    function(
        "torch.einsum",
        "several_axes",
        lambda torch, x, y: torch.einsum("bhkv,bmnhk->bvnhm", x, y) + 1,
        *(f32(2, 3, 4, 5), f32(2, 3, 2, 3, 4)),
    ),
    function(
        "torch.einsum",
        "vector",
        lambda torch, x, y: torch.einsum("bchw,c->bwh", x, y) + 1,
        *(f32(2, 4, 3, 5), f32(4)),
    ),
    _network(
        "nn.Conv3d",
        "flat",
        lambda torch: torch.nn.Sequential(
            torch.nn.Conv3d(2, 4, (3, 5, 1), stride=(2, 1, 1), padding=(1, 2, 0)),
            torch.nn.Conv3d(4, 6, (1, 3, 2), dilation=(1, 1, 2), groups=2),
        ),
        f32(2, 2, 7, 6, 5),
    ),
    _network("nn.BatchNorm2d", "parallel_convolutions", _parallel_convolutions, f32(2, 3, 13, 14)),
    function(
        "F.adaptive_max_pool2d",
        "places_that_nobody_reads",
        lambda torch, x: torch.nn.functional.adaptive_max_pool2d(x, (3, 1), return_indices=True)[0] * 2,
        f32(2, 3, 7, 6),
    ),
    function("F.pad", "swin", _pad_to_windows, f32(2, 6, 6, 5)),
    function("F.fold", "outlook", _outlook, f32(2, 4, 7, 6)),
    function(
        "F.unfold",
        "dilated",
        lambda torch, x: torch.nn.functional.unfold(torch.relu(x), (2, 3), (2, 1), (0, 2), (1, 3)) + 1,
        f32(2, 3, 7, 6),
    ),
    function(
        "F.fold",
        "dilated",
        lambda torch, x: torch.nn.functional.fold(x * 2, (7, 8), (2, 3), (2, 1), (1, 2), (2, 3)),
        f32(2, 18, 16),
    ),
    function(
        "F.scaled_dot_product_attention",
        "bool_mask",
        _masked_attention,
        *(f32(2, 3, 5, 4), f32(2, 3, 7, 4), i64(2, 7, high=2)),
    ),
    function("Tensor.masked_fill", "deberta", _masked_scores, f32(2, 3, 5, 5), i64(2, 5, high=2)),
    function("pnnx.Expression", "additive_mask", _additive_mask, f32(2, 5, 5), i64(2, 5, high=2)),
    _network("nn.Embedding", "roberta", _embeddings, i64(2, 9, high=30)),
    function("torch.argmax", "clip", _last_token, f32(3, 7, 4), i64(3, 7, high=40000)),
    function("Tensor.expand", "mean_of_tokens", _mean_of_tokens, f32(2, 5, 4), i64(2, 5, high=2)),
    function("torch.where", "choices", _choices, f32(3, 4, 5), f32(4, 5)),
    function("Tensor.repeat", "copies", _copies, f32(2, 3, 4), boolean(2, 3, 4)),
    function("pnnx.Expression", "grid", _grid, f32(2, 20, 2)),
    function(
        "torch.gather",
        "computed",
        lambda torch, x, s: torch.gather(x, 1, s.argmax(2, keepdim=True).expand(2, 6, 4)) * 2,
        *(f32(2, 9, 4), f32(2, 6, 9)),
    ),
    function(
        "torch.index_select",
        "computed",
        lambda torch, x, s: torch.index_select(x, 1, s.argmin(1)) + torch.cumsum(x[:, :3], 2),
        *(f32(2, 4, 5), f32(3, 4)),
    ),
    function(
        "Tensor.index",
        "constant",
        lambda torch, x, m: (x[:, [2, 0, -1], [1, 3, 1]] + 1, m.bool()[[0, -1], [1, 2]]),
        *(f32(3, 4, 5), i64(2, 3, high=2)),
    ),
    function(
        "torch.eq",
        "integers",
        lambda torch, a, b: (torch.eq(a, 2**20 + 1), torch.maximum(b * 5, b) - 3, (a / 3) + b),
        *(i64(3, 4, high=2**21), tensor("i32", 4, low=0, high=9)),
    ),
]
