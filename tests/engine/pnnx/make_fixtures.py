"""Exports the models of this folder's tests: `python -m tests.engine.pnnx.make_fixtures`.

Needs PyTorch and `pnnx`. The files are committed; the tests read them without either.
"""

# mypy: disallow-subclassing-any=False

import shutil
import subprocess
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FIXTURES = Path(__file__).parent / "fixtures"

DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "i32": torch.int32,
    "i64": torch.int64,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
    "c64": torch.complex64,
    "c128": torch.complex128,
    "bf16": torch.bfloat16,
}


class Types(nn.Module):
    """One buffer of each type (0, 1, 0, 1, 0, 1), an empty one, and one in half-precision complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        for name, dtype in DTYPES.items():
            self.register_buffer(name, (torch.arange(6) % 2).to(dtype).reshape(2, 3))
        self.register_buffer("c32", torch.arange(6.0).reshape(2, 3).to(torch.complex64).to(torch.complex32))
        self.register_buffer("empty", torch.zeros(0, 3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        converted = (getattr(self, name) + x.to(dtype) for name, dtype in DTYPES.items() if name != "bool")
        return *converted, self.bool | x.bool(), self.c32.clone(), torch.cat([x, self.empty], 0)


class Values(nn.Module):
    """Parameters of all kinds that the exporter writes."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.einsum("ij, jk -> ik", x, x),
            F.pad(x, (1, 1), value=float("-inf")),
            F.pad(x, (1, 2, 3, 4), "constant", 1e-7),
            x * (1.5 - 2.5j),
            torch.clamp(x, max=1e20),
            x.sum().reshape(()),
            F.leaky_relu(x, 1 / 3),
            F.interpolate(x[None, None], scale_factor=(2.0, 3.11)),
            x[..., :2],
            x[torch.tensor([2, 1]), torch.tensor([0, 1])],
            x.roll((1, -1), (0, 1)),
        )


class Dynamic(nn.Module):
    """A convolution, batch norm and linear layer, of any batch and image size."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.interpolate(self.bn(self.conv(x)), scale_factor=2.0)
        return self.fc(y.view(y.size(0), y.size(1), -1).mean(2))


class Half(nn.Module):
    """A linear layer with half-precision weights: the exporter keeps the type that a model has."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2).half()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x.half()).float()


def export(name: str, model: nn.Module, example: torch.Tensor, *arguments: str) -> None:
    """Trace a model, run the exporter over it and keep the two PNNX files."""
    with tempfile.TemporaryDirectory() as folder:
        traced = torch.jit.trace(model.eval(), example, check_trace=False)
        torch.jit.save(traced, f"{folder}/{name}.pt")
        subprocess.run(["pnnx", f"{name}.pt", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for suffix in ("param", "bin"):
            shutil.copy(f"{folder}/{name}.pnnx.{suffix}", FIXTURES / f"{name}.{suffix}")


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    FIXTURES.mkdir(exist_ok=True)
    export("types", Types(), torch.rand(2, 3), "inputshape=[2,3]", "fp16=0")
    export("values", Values(), torch.rand(3, 3), "inputshape=[3,3]")
    export("dynamic", Dynamic(), torch.rand(1, 3, 8, 8), "inputshape=[1,3,8,8]", "inputshape2=[2,3,16,12]")
    export("half", Half(), torch.rand(1, 4), "inputshape=[1,4]")


if __name__ == "__main__":
    main()
