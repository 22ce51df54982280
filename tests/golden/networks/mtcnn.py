"""The proposal network of MTCNN (Zhang et al., 2016): a face and its box at every place, by convolutions alone."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn


class ProposalNet(nn.Module):
    """Three narrow convolutions with PReLU, one pooling that rounds up, two heads.

    Returns:
        Four offsets and two probabilities for every place.
    """

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 10, 3), nn.PReLU(10), nn.MaxPool2d(2, 2, ceil_mode=True)),
            *(nn.Conv2d(10, 16, 3), nn.PReLU(16), nn.Conv2d(16, 32, 3), nn.PReLU(32)),
        )
        self.faces = nn.Conv2d(32, 2, 1)
        self.boxes = nn.Conv2d(32, 4, 1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Run the network on (batch, 3, height, width)."""
        features = self.features(image)
        return self.boxes(features), self.faces(features).softmax(1)
