"""Compilation targets: vector width, registers and features of a processor."""

import os
import platform
from dataclasses import dataclass
from functools import lru_cache

import llvmlite
import llvmlite.binding as llvm

from engine.compiler.emit.tile_permission import may_use_tiles


@dataclass(frozen=True, slots=True)
class Target:
    """A processor to compile for.

    Attributes:
        name: name of the instruction set: avx512, avx2, sse or neon.
        lanes: float32 lanes of a vector.
        registers: vector registers.
        has_fma: whether it multiplies and adds in one instruction.
        has_bf16: whether it multiplies pairs of bfloat16 in one instruction (AVX512_BF16).
        has_tiles: whether it has matrix registers for them (AMX), and this process may use them.
        cpu: LLVM's name of the processor.
        features: LLVM's feature string.
    """

    name: str
    lanes: int
    registers: int
    has_fma: bool
    cpu: str
    features: str
    has_bf16: bool = False
    has_tiles: bool = False

    @property
    def multiplies_bytes(self) -> bool:
        """Whether it has instructions for products of bytes (VNNI of AVX-512 or of AVX, or AMX)."""
        needed = {16: "+avx512vnni", 8: "+avxvnni"}.get(self.lanes)
        return self.has_tiles or (needed is not None and needed in self.features.split(","))


@lru_cache(maxsize=1)
def host_target() -> Target:
    """Return the target of this machine; `KUIPER_TARGET` forces a narrower one, for tests.

    Raises:
        OSError: there is no target that this machine runs.
        ValueError: `KUIPER_TARGET` names none that it does.
    """
    forced = os.environ.get("KUIPER_TARGET", "")
    if not forced:
        return _detect()
    target = target_named(forced)
    if target not in (*supported_targets(), *bf16_targets(), *int8_targets()):
        raise ValueError(f"KUIPER_TARGET: this processor does not run code for {forced}")
    return target


def target_named(name: str) -> Target:
    """Return a target by name: avx512, avx2, sse or neon, or one that multiplies short numbers besides.

    Those are bf16 and amx, avx512 with arithmetic in bfloat16; vnni and avxvnni, avx512 and avx2 with products of
    bytes; amx has these too.

    Raises:
        ValueError: there is no such target.
    """
    targets = {
        "avx512": Target(
            name="avx512", lanes=16, registers=32, has_fma=True, cpu="x86-64-v4", features="-prefer-256-bit"
        ),
        "bf16": Target(
            name="bf16",
            lanes=16,
            registers=32,
            has_fma=True,
            cpu="x86-64-v4",
            features="-prefer-256-bit,+avx512bf16",
            has_bf16=True,
        ),
        "amx": Target(
            name="amx",
            lanes=16,
            registers=32,
            has_fma=True,
            cpu="x86-64-v4",
            features="-prefer-256-bit,+avx512bf16,+avx512vnni,+amx-tile,+amx-bf16,+amx-int8",
            has_bf16=True,
            has_tiles=True,
        ),
        "vnni": Target(
            name="vnni",
            lanes=16,
            registers=32,
            has_fma=True,
            cpu="x86-64-v4",
            features="-prefer-256-bit,+avx512vnni",
        ),
        "avxvnni": Target(
            name="avxvnni", lanes=8, registers=16, has_fma=True, cpu="x86-64-v3", features="+avxvnni"
        ),
        "avx2": Target(name="avx2", lanes=8, registers=16, has_fma=True, cpu="x86-64-v3", features=""),
        "sse": Target(name="sse", lanes=4, registers=16, has_fma=False, cpu="x86-64-v2", features=""),
        "neon": Target(name="neon", lanes=4, registers=32, has_fma=True, cpu="generic", features="+neon"),
    }
    if name not in targets:
        raise ValueError(f"target {name!r} is unknown; expected one of {', '.join(targets)}")
    return targets[name]


def supported_targets() -> list[Target]:
    """Return the targets whose code this machine runs, widest first."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return [target_named("neon")]
    features = llvm.get_host_cpu_features()
    needed = {"avx512": ("avx512f", "avx512vl", "avx512dq"), "avx2": ("avx2", "fma"), "sse": ("sse4.2",)}
    return [target_named(name) for name, flags in needed.items() if all(map(features.get, flags))]


def bf16_targets() -> list[Target]:
    """Return the targets that this machine runs and that have instructions for bfloat16."""
    features = llvm.get_host_cpu_features()
    if not all(map(features.get, ("avx512f", "avx512vl", "avx512dq", "avx512bw", "avx512bf16"))):
        return []
    has_tiles = all(map(features.get, ("amx-tile", "amx-bf16", "amx-int8", "avx512vnni"))) and may_use_tiles()
    return [target_named(name) for name in (("bf16", "amx") if has_tiles else ("bf16",))]


def int8_targets() -> list[Target]:
    """Return the targets that this machine runs and that have instructions for products of bytes."""
    features = llvm.get_host_cpu_features()
    needed = {
        "vnni": ("avx512f", "avx512vl", "avx512dq", "avx512bw", "avx512vnni"),
        "avxvnni": ("avx2", "fma", "avxvnni"),
    }
    found = [target_named(name) for name, flags in needed.items() if all(map(features.get, flags))]
    return [*found, *(target for target in bf16_targets() if target.has_tiles)]


def llvm_versions() -> str:
    """Return the versions of LLVM and of its binding."""
    return f"{'.'.join(map(str, llvm.llvm_version_info))} {llvmlite.__version__}"


def _detect() -> Target:
    supported = supported_targets()
    if not supported:
        raise OSError("this processor has neither SSE 4.2 nor NEON")
    generic = supported[0]
    features = llvm.get_host_cpu_features().flatten()
    if generic.name == "avx512":
        features += ",-prefer-256-bit"  # the frequency that wide vectors cost is won back many times over
    return Target(
        name=generic.name,
        lanes=generic.lanes,
        registers=generic.registers,
        has_fma=generic.has_fma,
        cpu=llvm.get_host_cpu_name(),
        features=features,
        has_bf16=any(target.has_bf16 for target in bf16_targets()),
        has_tiles=any(target.has_tiles for target in bf16_targets()),
    )
