"""A recurrent network written as a loop over cells, as decoders and controllers are: unrolled when it is exported."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn


class CellNet(nn.Module):
    """An LSTM cell and a GRU cell on top of it go through (batch, steps, features); a state starts from the input."""

    def __init__(self, features: int = 6, width: int = 7, classes: int = 4) -> None:
        super().__init__()
        self.start = nn.Linear(features, 2 * width)
        self.lower = nn.LSTMCell(features, width)
        self.upper = nn.GRUCell(width, width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return scores after every step, and the states after the last one."""
        hidden, cell = torch.unsafe_chunk(self.start(x[:, 0]), 2, 1)
        top = hidden.tanh()
        scores = []
        for step in range(x.shape[1]):
            hidden, cell = self.lower(x[:, step], (hidden, cell))
            top = self.upper(hidden, top)
            scores.append(self.head(top))
        return torch.stack(scores, 1), hidden, cell, top
