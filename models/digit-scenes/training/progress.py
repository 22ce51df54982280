"""How far a training is: optimizer, learning rate, averaged weights, and a file from which it goes on."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, distributed, nn

SAVE_EVERY = 100
TOLD_EVERY = 50


class Schedule(NamedTuple):
    """How long and how fast a network is trained.

    Attributes:
        rate: highest learning rate, reached after the warm-up; it falls along half a cosine to a hundredth.
        steps: of the whole training.
        warm_up: steps.
        averaged_over: steps that the weights are averaged over at the end; fewer at the beginning.
    """

    rate: float
    steps: int
    warm_up: int
    averaged_over: int


class Progress:
    """A network in training.

    Args:
        network: its weights change in place.
        schedule: of the training.
        checkpoint: file to go on from where it exists, and to write every hundred steps; None: none.

    Where several processes train, each has a network of its own, and they step down the mean of their gradients. The
    first of them writes the checkpoint.

    Attributes:
        step: steps done.
        rank: number of this process.
        processes: how many train.
    """

    def __init__(self, network: nn.Module, schedule: Schedule, checkpoint: Path | None) -> None:
        self.network = network
        self.mean = copy.deepcopy(network).eval()
        self.schedule = schedule
        self.checkpoint = checkpoint
        self.optimizer = torch.optim.AdamW(network.parameters(), schedule.rate, weight_decay=0.02, fused=True)
        self.step = 0
        self.rank = distributed.get_rank() if distributed.is_initialized() else 0
        self.processes = distributed.get_world_size() if distributed.is_initialized() else 1
        if checkpoint is not None and checkpoint.exists():
            self._restore(torch.load(checkpoint, weights_only=True))

    def run(self, loss_of: Callable[[float], Tensor]) -> None:
        """Take the steps that are left, and print how the loss changes.

        Args:
            loss_of: returns the loss of one batch, given the share of the schedule that is done.
        """
        started, total = time.monotonic(), 0.0
        while self.step < self.schedule.steps:
            loss = loss_of(self.step / self.schedule.steps)
            self.descend(loss)
            total += loss.item()
            if self.step % TOLD_EVERY == 0:
                if self.rank == 0:
                    seconds = time.monotonic() - started
                    print(f"step {self.step}: loss {total / TOLD_EVERY:.4f}, {seconds:.0f} s", flush=True)
                total = 0.0
        self.save()

    def descend(self, loss: Tensor) -> None:
        """Take one step down the gradient of a loss."""
        rising = min(1.0, (self.step + 1) / self.schedule.warm_up)
        falling = 0.01 + 0.99 * (1 + math.cos(math.pi * self.step / self.schedule.steps)) / 2
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule.rate * rising * falling
        self.optimizer.zero_grad()
        loss.backward()
        if self.processes > 1:
            self._share_gradients()
        nn.utils.clip_grad_norm_(self.network.parameters(), 10.0)
        self.optimizer.step()
        self.step += 1
        self._average()
        if self.step % SAVE_EVERY == 0:
            self.save()

    def _share_gradients(self) -> None:
        gradients = [weight.grad for weight in self.network.parameters() if weight.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(flat)
        for gradient, mean in zip(gradients, flat.split([one.numel() for one in gradients]), strict=True):
            gradient.copy_(mean.view_as(gradient) / self.processes)

    @torch.no_grad()
    def _average(self) -> None:
        share = 1 / min(self.schedule.averaged_over, self.step)
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
        if self.checkpoint is None or self.rank > 0:
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
