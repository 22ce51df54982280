"""Write `kernels.npz`: what PyTorch responses to a random, but seeded, sweep of the convolutional functions.

    python -m tests.golden.make_kernels

needs the `train` extra. Errors are responses too: a case that PyTorch refuses must be refused.
"""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from tests.engine.kernels.cases import DATA, KernelCase, save

FLOATS = ("float32", "float32", "float32", "float64", "float16")
COUNTS = {
    "convolve": 60,
    "transposed_convolve": 50,
    "pad": 50,
    "max_pool": 30,
    "max_pool_with_indices": 30,
    "avg_pool": 50,
    "lp_pool": 20,
    "adaptive_avg_pool": 30,
    "adaptive_max_pool": 30,
    "resample": 120,
    "unfold": 20,
    "fold": 20,
}

Draw = random.Random


def several(rng: Draw, rank: int, low: int, high: int) -> list[int]:
    return [rng.randint(low, high) for _ in range(rank)]


def sizes(rng: Draw, rank: int, least: int = 1) -> list[int]:
    return several(rng, rank, least, {1: 14, 2: 9, 3: 6}[rank])


def make_convolve(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    rank, groups = rng.choice([1, 2, 2, 3]), rng.choice([1, 1, 2, 3])
    channels, outputs = rng.randint(1, 3), rng.randint(1, 3)
    shapes: list[Any] = [
        (rng.choice([0, 1, 2]), groups * channels, *sizes(rng, rank, 3)),
        (groups * outputs, channels, *several(rng, rank, 1, 3)),
        (groups * outputs,),
    ]
    arguments = {
        "stride": several(rng, rank, 1, 3),
        "padding": several(rng, rank, 0, 2),
        "dilation": several(rng, rank, 1, 2),
        "groups": groups,
    }
    return shapes[: rng.choice([2, 3])], rng.choice([*FLOATS, "complex64", "int64"]), arguments


def make_transposed_convolve(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    shapes, dtype, arguments = make_convolve(rng)
    rank, groups = len(shapes[0]) - 2, arguments["groups"]
    shapes[1] = (shapes[0][1], rng.randint(1, 3), *shapes[1][2:])
    shapes[2:] = [(shapes[1][1] * groups,)] if len(shapes) == 3 else []
    shapes[0] = (rng.choice([1, 2]), shapes[0][1], *several(rng, rank, 1, 5))
    return shapes, dtype, arguments | {"output_padding": [rng.choice([0, 0, 1]) for _ in range(rank)]}


def make_pad(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    mode = rng.choice(["constant", "reflect", "replicate", "circular"])
    rank = rng.choice([1, 2, 3])
    low = {"constant": -2, "reflect": -2, "replicate": -2, "circular": 0}[mode]
    arguments: dict[str, Any] = {"pad": several(rng, 2 * rank, low, 4), "mode": mode}
    if mode == "constant" and rng.random() < 0.7:
        arguments["value"] = rng.choice([0.0, 1.5, -3.0])
    return [(1, 2, *sizes(rng, rank, 2))], rng.choice([*FLOATS, "int64", "complex64"]), arguments


def make_max_pool(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    rank = rng.choice([1, 2, 2, 3])
    kernel = several(rng, rank, 1, 4)
    arguments = {
        "kernel_size": kernel,
        "stride": several(rng, rank, 1, 4),
        "padding": [rng.randint(0, k // 2) for k in kernel],
        "dilation": several(rng, rank, 1, 2),
        "ceil_mode": rng.random() < 0.5,
    }
    return [(rng.choice([1, 2]), 2, *sizes(rng, rank, 3))], rng.choice([*FLOATS, "int64", "uint8"]), arguments


def make_avg_pool(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    shapes, _, arguments = make_max_pool(rng)
    del arguments["dilation"]
    arguments["count_include_pad"] = rng.random() < 0.5
    if len(shapes[0]) > 3:
        arguments["divisor_override"] = rng.choice([None, None, 3, -2, 0])
    if len(shapes[0]) == 5:  # PyTorch refuses more of these than its documentation says
        shapes[0] = (*shapes[0][:2], 6, 5, 4)
    return shapes, rng.choice([*FLOATS, "int64"]), arguments


def make_lp_pool(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    shapes, _, arguments = make_max_pool(rng)
    shapes[0] = (*shapes[0][:2], *[size + 3 for size in shapes[0][2:]])
    kept = {name: arguments[name] for name in ("kernel_size", "stride", "ceil_mode")}
    return shapes, rng.choice(FLOATS[:4]), kept | {"norm_type": rng.choice([1.0, 2.0, 4.0])}


def make_adaptive(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    rank = rng.choice([1, 2, 2, 3])
    output = rng.choice([[1] * rank, several(rng, rank, 1, 7)])
    return [(rng.choice([1, 2]), 2, *sizes(rng, rank))], rng.choice(FLOATS), {"output_size": output}


def make_resample(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    rank = rng.choice([1, 2, 2, 3])
    smooth = {1: "linear", 2: rng.choice(["bilinear", "bicubic"]), 3: "trilinear"}[rank]
    mode = rng.choice(["nearest", "nearest-exact", "area", smooth, smooth, smooth])
    arguments: dict[str, Any] = {"mode": mode}
    if mode == smooth:
        arguments["align_corners"] = rng.choice([None, False, True])
    if rng.random() < 0.4:
        arguments["size"] = several(rng, rank, 1, 9)
    else:
        factors = [2.0, 0.5, 3.0, 1.5, 1.07, round(rng.uniform(0.4, 2.5), 3)]
        arguments["scale_factor"] = [rng.choice(factors) for _ in range(rank)]
        arguments["recompute_scale_factor"] = rng.choice([None, False, True])
    return [(1, 2, *sizes(rng, rank, 3))], rng.choice(FLOATS), arguments


def make_unfold(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    arguments = {
        "kernel_size": several(rng, 2, 1, 3),
        "dilation": several(rng, 2, 1, 2),
        "padding": several(rng, 2, 0, 2),
        "stride": several(rng, 2, 1, 3),
    }
    return [(rng.choice([1, 2]), 2, *sizes(rng, 2, 5))], rng.choice([*FLOATS, "complex64"]), arguments


def make_fold(rng: Draw) -> tuple[list[Any], str, dict[str, Any]]:
    shapes, dtype, arguments = make_unfold(rng)
    columns = F.unfold(torch.zeros(shapes[0]), **arguments).shape
    extra = rng.choice([0, 0, 0, 1])
    return [(columns[0], columns[1], columns[2] + extra)], dtype, arguments | {"output_size": shapes[0][2:]}


MAKERS: dict[str, Callable[[Draw], tuple[list[Any], str, dict[str, Any]]]] = {
    "max_pool_with_indices": make_max_pool,
    "adaptive_avg_pool": make_adaptive,
    "adaptive_max_pool": make_adaptive,
} | {name.removeprefix("make_"): make for name, make in list(globals().items()) if name.startswith("make_")}


def ask(kernel: str, tensors: list[Any], arguments: dict[str, Any]) -> Any:
    """Call PyTorch's function of a kernel."""
    rank = tensors[0].ndim - 2
    if kernel == "resample":
        return F.interpolate(tensors[0], **arguments)
    if kernel in ("pad", "unfold", "fold"):
        return getattr(F, kernel)(*tensors, **arguments)
    if kernel == "max_pool_with_indices":
        return getattr(F, f"max_pool{rank}d")(*tensors, **arguments, return_indices=True)
    if kernel == "adaptive_max_pool":
        return getattr(F, f"adaptive_max_pool{rank}d")(*tensors, **arguments, return_indices=True)
    if kernel == "lp_pool" and rank == 1:
        arguments = {k: v[0] if isinstance(v, list) else v for k, v in arguments.items()}
    name = {"convolve": "conv", "transposed_convolve": "conv_transpose"}.get(kernel, kernel)
    return getattr(F, f"{name}{rank}d")(*tensors, **arguments)


def main() -> None:
    """Draw the cases, ask PyTorch and write the file."""
    torch.set_num_threads(1)
    cases: list[KernelCase] = []
    responses: dict[str, Any] = {}
    for kernel, count in COUNTS.items():
        rng = random.Random(f"{kernel} sweep")
        for number in range(count):
            shapes, dtype, arguments = MAKERS[kernel](rng)
            special = "pool" in kernel and dtype.startswith("float") and rng.random() < 0.3
            name = f"{kernel}-{number}"
            case = KernelCase(name, tuple(map(tuple, shapes)), dtype, special, arguments)
            try:
                response: Any = ask(
                    kernel, [torch.from_numpy(array.copy()) for array in case.draw()], arguments
                )
            except NotImplementedError:  # for the dtype, which another backend of PyTorch may know
                continue
            except RuntimeError:
                response = ()
            results = response if isinstance(response, tuple) else (response,)
            if kernel != "pad" and any(result.numel() == 0 for result in results) and shapes[0][0]:
                results = ()  # some of PyTorch's backends let a geometry without windows pass, others refuse it
            cases.append(KernelCase(name, case.shapes, dtype, special, arguments, len(results)))
            for index, result in enumerate(results):
                responses[f"{name}/{index}"] = result.resolve_conj().numpy()
    save(cases, responses)
    print(f"{len(cases)} cases, {DATA.stat().st_size} bytes in {DATA.name}")


if __name__ == "__main__":
    main()
