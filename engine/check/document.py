"""A report as plain values that JSON can represent."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from engine.check.report import Report
from engine.model.ports import Port


def describe_report(report: Report) -> dict[str, Any]:
    """Return a report as a dictionary of its attributes; `runs` is None if unknown."""
    return {
        "runs": report.runs,
        "types": dict(report.types),
        "unsupported": [asdict(operator) for operator in report.unsupported],
        "inputs": _ports(report.inputs),
        "outputs": _ports(report.outputs),
        "parameters": report.parameters,
        "attribute_bytes": report.attribute_bytes,
        "multiply_adds": report.multiply_adds,
        "peak_bytes": report.peak_bytes,
        "footprint": None if report.footprint is None else asdict(report.footprint),
        "shapes": report.shapes,
        "unchecked": report.unchecked,
        "problem": report.problem,
        "refused": [str(refusal) for refusal in report.refused],
        "warnings": list(report.warnings),
    }


def _ports(ports: Sequence[Port]) -> list[dict[str, Any]]:
    return [asdict(port) for port in ports]
