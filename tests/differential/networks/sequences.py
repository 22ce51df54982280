"""Networks over sequences: a sentence encoder, and recurrent networks of both kinds."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn


class EncoderLayer(nn.Module):
    """A transformer layer, post-norm as in BERT (Devlin et al., 2019)."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.project = (nn.Linear(features, features) for _ in range(4))
        self.first, self.second = nn.LayerNorm(features), nn.LayerNorm(features)
        self.feed = nn.Sequential(
            nn.Linear(features, 4 * features), nn.GELU(), nn.Linear(4 * features, features)
        )

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        n, tokens, features = x.shape

        def split(y: torch.Tensor) -> torch.Tensor:
            return y.view(n, tokens, self.heads, features // self.heads).transpose(1, 2)

        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = query @ key.transpose(-2, -1) * (features // self.heads) ** -0.5 + bias
        mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).reshape(n, tokens, features)
        x = self.first(x + self.project(mixed))
        return self.second(x + self.feed(x))


class SentenceEncoder(nn.Module):
    """Ids and mask (n, tokens), both int64, to unit vectors (n, features): the mean over what the mask keeps."""

    def __init__(self, features: int = 384, heads: int = 12, layers: int = 3, words: int = 2000) -> None:
        super().__init__()
        self.words = nn.Embedding(words, features)
        self.positions = nn.Embedding(128, features)
        self.norm = nn.LayerNorm(features)
        self.layers = nn.ModuleList(EncoderLayer(features, heads) for _ in range(layers))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
        x = self.norm(self.words(ids) + self.positions(places))
        kept = mask.to(x.dtype)
        bias = (1.0 - kept[:, None, None, :]) * -10000.0
        for layer in self.layers:
            x = layer(x, bias)
        weights = kept.unsqueeze(-1)
        pooled = (x * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(pooled, p=2.0, dim=1)


class Recurrent(nn.Module):
    """Sequences (n, steps, features) to logits of every step: convolution, LSTM or GRU, linear."""

    def __init__(self, kind: str = "LSTM", features: int = 40, hidden: int = 96, layers: int = 2) -> None:
        super().__init__()
        self.convolve = nn.Conv1d(features, 64, 3, padding=1)
        network = {"LSTM": nn.LSTM, "GRU": nn.GRU}[kind]
        self.network = network(64, hidden, num_layers=layers, batch_first=True, bidirectional=True)
        self.classify = nn.Linear(2 * hidden, 30)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.convolve(x.transpose(1, 2))).transpose(1, 2)
        return torch.log_softmax(self.classify(self.network(x)[0]), -1)
