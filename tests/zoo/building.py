"""Networks of other packages with seeded weights, in which every parameter has an effect."""

import sys
import types
from typing import Any

import torch

_SEED = 0
_BRANCH = 0.2
"""Scale of branches that a new network switches off: with more, rounding grows from block to block."""
_FLOOR = 1.0
"""Least variance of a channel, of the mean square of all: other inputs are then not blown up from block to block."""


def import_torchvision() -> None:
    """Make `import torchvision` work beside a CPU build of PyTorch, for which it has no compiled operators."""
    if "torchvision" not in sys.modules:
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")
        import torchvision

        torchvision.library = library  # it lasts as long as the module does


def seed() -> None:
    """Seed PyTorch's generator, from which weights are drawn."""
    torch.manual_seed(_SEED)


def enliven(module: Any, inputs: tuple[Any, ...]) -> Any:
    """Return a module whose vectors are drawn again and whose batch norms know their inputs.

    Freshly made networks hide mistakes: biases are 0, norms are the identity, and layer scales of 1e-6 switch whole
    branches off. Matrices stay as their package draws them, unless they are 0.
    """
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.ndim > 1 and bool((parameter == 0).all()):
                parameter.normal_(std=0.02)
            elif parameter.ndim == 1 and name.endswith("bias"):
                parameter.add_(0.1 * torch.randn_like(parameter))
            elif parameter.ndim == 1 and bool((parameter == parameter[0]).all()):
                level = 1.0 if parameter[0] == 1 else _BRANCH
                parameter.copy_(level * (1 + 0.1 * torch.randn_like(parameter)))
        norms = [part for part in module.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
        if norms:
            _calibrate(module, norms, inputs)
    return module.eval()


def _calibrate(module: Any, norms: list[Any], inputs: tuple[Any, ...]) -> None:
    """Give batch norms the statistics of one batch, so that activations stay of order one."""
    module.eval()
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    module(*inputs)
    for norm in norms:
        norm.momentum = 0.1
        norm.eval()
        # noise differs little from noise once it is pooled: dividing by so little would leave nothing but rounding
        norm.running_var.clamp_(min=float(_FLOOR * (norm.running_var + norm.running_mean**2).mean()))
