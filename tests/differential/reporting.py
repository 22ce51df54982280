"""The table at the end of a long run."""

from collections.abc import Iterator, Sequence

from engine.compiler.lowering import RULES
from tests.differential.hunting import DifferentialReport


def table(report: DifferentialReport, networks: Sequence[str] = ()) -> str:
    """Return what a run covered and found, as lines of text."""
    return "\n".join(
        [*_covered(report), *_selections(report), *_branches(report), *networks, *_findings(report)]
    )


def _covered(report: DifferentialReport) -> Iterator[str]:
    lowered = RULES.keys() & report.operators.keys()
    yield f"graphs                 {report.graphs:>8}   in {report.seconds:.0f} s"
    yield f"operators              {report.operators.total():>8}   of {len(report.operators)} types"
    yield f"types that are lowered {len(lowered):>8}   of {len(RULES)}"
    for target, runs in sorted(report.tally.runs.items()):
        yield f"runs on {target:<15}{runs:>8}"
    yield f"refused by both        {report.tally.refused:>8}"
    yield f"largest difference     {report.tally.largest:>8.2f}   of what is allowed"
    yield ""
    for kind, count in report.operators.most_common():
        yield f"  {kind:<28}{count:>8}"
    yield ""


def _selections(report: DifferentialReport) -> Iterator[str]:
    yield f"{'rule':<24}{'kernel':<28}{'chosen':>8}"
    for (rule, kernel), count in sorted(report.selections.items()):
        yield f"{rule:<24}{kernel:<28}{count:>8}"
    yield ""


def _branches(report: DifferentialReport) -> Iterator[str]:
    for name, branches in report.branches.items():
        yield f"branches of {name:<12}{branches.taken:>8}   of {branches.total}, {branches.share:.1%}"
        for file, missing in branches.missing.items():
            yield f"  {name}/{file}: not taken: {', '.join(f'{line} -> {to}' for line, to in missing)}"


def _findings(report: DifferentialReport) -> Iterator[str]:
    yield f"wrong                  {len(report.findings):>8}"
    for case, finding in report.findings:
        yield ""
        yield f"# {case.name}: {finding.kind}: {finding.text}"
        yield str(case)
