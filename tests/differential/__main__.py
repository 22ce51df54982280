"""The long form: random graphs in each precision, random PyTorch modules and whole networks, on every vector width,
against numpy and PyTorch.

Run: python -m tests.differential [--seconds 600 | --count 2000] [--seed 0] [--modules 60] [--sizes 6]
         [--rounded 2] [--shapes 12] [--quantized 20]
         [--no-torch] [--sanitize] [--f32]

Fails where anything comes out wrong. The branches of selection and lowering rules that were not taken are listed.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.differential.case import GraphCase
from tests.differential.hunting import Extent, compare_backends, compare_precisions, hunt
from tests.differential.many_shapes_report import run_shapes
from tests.differential.reporting import table
from tests.engine.compiler.emulation import emulating
from tests.sanitizer.check import check_accesses


def main() -> int:
    """Run in a process of its own, which a wrong kernel may end; returns the exit status."""
    arguments = _parse()
    if arguments.current is not None:
        with emulating():
            return _run(arguments)
    with tempfile.TemporaryDirectory() as folder:
        current = Path(folder) / "current.txt"
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.differential", *sys.argv[1:]]
        status = subprocess.run([*command, "--current", str(current)], check=False).returncode
        if status < 0 and current.exists():
            print(f"the process ended by signal {-status} while it ran this case:\n\n{current.read_text()}")
    return 0 if status == 0 else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="begin no random graph after so many")
    parser.add_argument("--count", type=int, help="random graphs (200; as many as fit with --seconds)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="index of the first random graph")
    parser.add_argument(
        "--modes", type=int, default=3, help="combinations of width, threads and layout of each graph"
    )
    parser.add_argument("--modules", type=int, default=60, help="random modules of PyTorch; 0 for none")
    parser.add_argument("--sizes", type=int, default=6, help="sizes of each network; 0 leaves networks out")
    parser.add_argument(
        "--rounded", type=int, default=2, help="sizes of each network in bf16 and in int8; 0 leaves them out"
    )
    parser.add_argument(
        "--shapes", type=int, default=12, help="shapes that clients ask one graph for; 0 leaves that out"
    )
    parser.add_argument(
        "--quantized", type=int, default=20, help="random networks of PyTorch's quantized layers; 0 for none"
    )
    parser.add_argument("--narrow", action="store_true", help="narrow networks only")
    parser.add_argument(
        "--every", action="store_true", help="networks with every width and number of threads"
    )
    parser.add_argument(
        "--no-torch", action="store_true", help="leave PyTorch out, and modules and networks with it"
    )
    parser.add_argument(
        "--sanitize", action="store_true", help="also run graphs with every access to memory checked"
    )
    parser.add_argument(
        "--f32",
        action="store_true",
        help="random graphs in float32 only",
    )
    parser.add_argument("--current", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(arguments: argparse.Namespace) -> int:
    count = arguments.count or (200 if arguments.seconds is None else sys.maxsize)
    checks = [compare_backends(arguments.modes)]
    if not arguments.f32:
        checks.append(compare_precisions)
    if arguments.sanitize:
        checks.append(check_accesses)
    extent = Extent(arguments.seed, arguments.first, count, arguments.seconds)

    def note(case: GraphCase) -> None:
        arguments.current.write_text(f"# {case.name}\n{case}")

    report = hunt(extent, checks, note)
    lines: list[str] = []
    wrong = 0
    if arguments.modules and not arguments.no_torch:
        from tests.differential.modules.running import hunt_modules, report_lines

        modules = hunt_modules(arguments.seed, arguments.first, arguments.modules, arguments.modes)
        lines, wrong = list(report_lines(modules)), len(modules.findings)
    if arguments.sizes and not arguments.no_torch:
        from tests.differential.networks.report import run_networks

        others, bad = run_networks(arguments.seed, arguments.sizes, arguments.every, arguments.narrow)
        lines, wrong = lines + others, wrong + bad
    if arguments.rounded and not arguments.no_torch:
        from tests.differential.networks.rounded_report import run_rounded_networks

        others, bad = run_rounded_networks(arguments.seed, arguments.rounded, arguments.narrow)
        lines, wrong = lines + others, wrong + bad
    if arguments.quantized and not arguments.no_torch:
        from tests.differential.quantized.report import run_quantized_networks

        others, bad = run_quantized_networks(arguments.seed, arguments.first, arguments.quantized)
        lines, wrong = lines + others, wrong + bad
    if arguments.shapes:
        others, bad = run_shapes(arguments.seed, arguments.shapes)
        lines, wrong = lines + others, wrong + bad
    print(table(report, lines))
    return 1 if report.findings or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
