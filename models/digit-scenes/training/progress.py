"""How far a training is: optimizer, learning rate, averaged weights, and a file from which it goes on."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

SAVE_EVERY = 100
AVERAGED_OVER = 150  # steps, at the end; fewer at the beginning


class Progress:
    """A network in training.

    Args:
        network: its weights change in place.
        rate: highest learning rate, reached after the warm-up; it falls along half a cosine to a hundredth.
        total: steps of the whole schedule.
        warm_up: steps.
        checkpoint: file to go on from where it exists, and to write every hundred steps; None: none.

    Attributes:
        step: steps done.
    """

    def __init__(
        self, network: nn.Module, rate: float, total: int, warm_up: int, checkpoint: Path | None
    ) -> None:
        self.network = network
        self.mean = copy.deepcopy(network).eval()
        self.rate, self.total, self.warm_up = rate, total, warm_up
        self.checkpoint = checkpoint
        self.optimizer = torch.optim.AdamW(network.parameters(), rate, weight_decay=0.02, fused=True)
        self.step = 0
        if checkpoint is not None and checkpoint.exists():
            self._restore(torch.load(checkpoint, weights_only=True))

    def steps_left(self) -> Iterator[int]:
        """Yield the steps that are to be done."""
        while self.step < self.total:
            yield self.step
        self.save()

    def descend(self, loss: Tensor) -> None:
        """Take one step down the gradient of a loss."""
        rising = min(1.0, (self.step + 1) / self.warm_up)
        falling = 0.01 + 0.99 * (1 + math.cos(math.pi * self.step / self.total)) / 2
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * rising * falling
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 10.0)
        self.optimizer.step()
        self.step += 1
        self._average()
        if self.step % SAVE_EVERY == 0:
            self.save()

    @torch.no_grad()
    def _average(self) -> None:
        share = 1 / min(AVERAGED_OVER, self.step)
        for kept, now in zip(
            self.mean.state_dict().values(), self.network.state_dict().values(), strict=True
        ):
            if kept.dtype.is_floating_point:
                kept.lerp_(now, share)
            else:
                kept.copy_(now)

    def averaged(self) -> nn.Module:
        """Return the network with its weights averaged over the last steps, for evaluation."""
        return self.mean.eval()

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        if self.checkpoint is None:
            return
        state = {
            "step": self.step,
            "network": self.network.state_dict(),
            "mean": self.mean.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        unfinished = self.checkpoint.with_suffix(".unfinished")
        torch.save(state, unfinished)
        unfinished.replace(self.checkpoint)

    def _restore(self, state: dict) -> None:
        self.network.load_state_dict(state["network"])
        self.mean.load_state_dict(state["mean"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
