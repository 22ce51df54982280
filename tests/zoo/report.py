"""The table of the zoo, which `make zoo` prints and docs/explanation/zoo.md shows."""

from collections.abc import Sequence

from tests.bench.ratios import geometric_mean
from tests.zoo.results import OURS, Export, Row, ZooReport

_HEAD = ("network", "package", "exports", "largest difference", "native", "in numpy", "ms", "ratio")
_SHOWN = 0.0005
_LONGEST = 120


def page(report: ZooReport) -> str:
    """Return all that documentation shows of a run: what it ran on, what it found, and its table."""
    machine = report.machine
    place = f"{machine['processor']}, {machine['cores']} cores, {machine['instructions']}, on {report.date}"
    return f"{place} ({machine['versions']}). {summary(report.rows)}\n\n{table(report.rows)}"


def summary(rows: Sequence[Row]) -> str:
    """Return what a run found, in a few sentences."""
    fixed, dynamic = (sum(export.problem == "" for export in exports) for exports in _exports(rows))
    native = sum(row.native is not None and not row.numpy for row in rows)
    text = (
        f"{fixed} of {len(rows)} networks export with fixed sizes, {dynamic} with dynamic ones; {native} run without "
        "numpy."
    )
    ratios = [row.ratio for row in rows if row.ratio is not None]
    mean = geometric_mean(ratios)
    if mean is None:
        return text
    slower = sum(ratio > 1 for ratio in ratios)
    return f"{text} Time over the fastest peer's: {mean:.2f} in the geometric mean of {len(ratios)}, {slower} above 1."


def _exports(rows: Sequence[Row]) -> tuple[list[Export], list[Export]]:
    return [row.fixed for row in rows], [row.dynamic for row in rows]


def table(rows: Sequence[Row]) -> str:
    """Return the table, a network a row."""
    lines = [_HEAD, tuple("---" for _ in _HEAD), *map(_cells, rows)]
    return "\n".join(f"|{'|'.join(cells)}|" for cells in lines)


def line(row: Row) -> str:
    """Return a row for people who wait."""
    return "  ".join(_cells(row))


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        row.package,
        exports(row),
        "-" if row.difference is None else f"{row.difference:.0e}",
        "-" if row.native is None else f"{row.native:.1%}",
        ", ".join(f"{kind} {_percent(share)}" for kind, share in row.numpy.items()) or "-",
        "-" if OURS not in row.times else f"{1e3 * row.times[OURS]:.1f}",
        "-" if row.ratio is None else f"{row.ratio:.2f}",
    )


def exports(row: Row) -> str:
    """Return whether a network exports, and why not."""
    if row.fixed.problem == "" and row.dynamic.problem == "":
        return "yes"
    if row.fixed.problem == "":
        return f"fixed sizes only: {_short(row.dynamic)}"
    if row.dynamic.problem == "":
        return f"dynamic sizes only: {_short(row.fixed)}"
    return f"no: {_short(row.fixed)}"


def _short(export: Export) -> str:
    text = (export.problem or "not tried").replace("|", "\\|")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()}…"


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= _SHOWN else "<0.1%"
