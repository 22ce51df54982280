"""The report of the service's benchmark: its JSON, and the Markdown that documentation shows."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from tests.bench.service.load import Timings
from tests.bench.service.report import tables
from tests.bench.service.results import (
    Lead,
    LoadResult,
    Overhead,
    ServiceReport,
    StartResult,
    from_json,
    to_json,
)


@pytest.fixture
def report() -> ServiceReport:
    loads = [
        LoadResult(server, model, "binary", connections, Timings(rate * connections, 1.0, 2.25))
        for model in ("digits", "resnet18")
        for server, rate in (("Kuiper Serve", 1000.0), ("LitServe", 250.0))
        for connections in (1, 4)
    ]
    return ServiceReport(
        machine={"processor": "A", "cores": "2", "versions": "Python 3.11"},
        date="2026-11-22",
        versions={"LitServe": "1.2", "wrk": "4.1.0"},
        seconds=3,
        ceiling=Timings(90_000.4, 0.1, 0.2),
        loads=tuple(loads),
        speedups={"LitServe": 4.0},
        starts=(StartResult("Kuiper Serve", "digits", 1.25, 80_000_000, 90_000_000),),
        overheads=(Overhead("means", "JSON", 0.25, 3.5),),
        leads=(
            Lead("digits", 16, "Triton", "rate", 4000.0, 5000.0, 1.0),
            Lead("digits", 1, "FastAPI", "p50", 0.4, 0.5, 1.0),
        ),
    )


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")
    ]


def test_json_gives_the_report_back(report: ServiceReport) -> None:
    assert from_json(to_json(report)) == report


def test_json_of_something_else_is_refused() -> None:
    with pytest.raises(ValidationError):
        from_json('{"loads": []}')


def test_servers_stand_below_one_another_for_each_model_and_form(report: ServiceReport) -> None:
    mixed = replace(report, loads=tuple(sorted(report.loads, key=lambda load: load.server)))
    head, _, *lines = rows(tables(mixed))[:6]
    assert head == ["model", "input", "server", "1 at once", "4 at once"]
    assert [line[0] for line in lines] == ["digits", "digits", "resnet18", "resnet18"]
    assert lines[0] == ["digits", "binary", "Kuiper Serve", "1000 (1.0, 2.2)", "4000 (1.0, 2.2)"]
    assert lines[1][2:4] == ["LitServe", "250 (1.0, 2.2)"]


def test_load_that_was_not_measured_leaves_its_cell_empty(report: ServiceReport) -> None:
    fewer = replace(report, loads=report.loads[:3])
    assert rows(tables(fewer))[3] == ["digits", "binary", "LitServe", "250 (1.0, 2.2)", ""]


def test_every_figure_is_shown(report: ServiceReport) -> None:
    text = tables(report)
    for part in (
        "3 s for each figure",
        "2026-11-22",
        "wrk 4.1.0",
        "makes 90000 requests",
        "4.00 times those of LitServe",
    ):
        assert part in text
    assert ["digits", "Kuiper Serve", "1.2", "80", "90"] in rows(text)
    assert ["digits", "16", "Triton", "requests/s", "4000", "5000", "0.80", "1"] in rows(text)
    assert ["digits", "1", "FastAPI", "median, ms", "0.40", "0.50", "1.25", "1"] in rows(text)
    assert ["3 numbers", "JSON", "0.250", "3.500", "3.250"] in rows(text)


def test_servers_that_were_not_measured_are_named(report: ServiceReport) -> None:
    assert "Not in this run: Triton, FastAPI, MLServer." in tables(report)
    known = report.loads[0]
    names = ("Triton, 1 instance", "FastAPI", "LitServe", "MLServer, in process")
    full = replace(report, loads=(*report.loads, *(replace(known, server=name) for name in names)))
    assert "Not in this run" not in tables(full)


def test_report_without_other_servers_tells_no_speedup(report: ServiceReport) -> None:
    assert "times those" not in tables(replace(report, speedups={}))


def test_report_of_a_run_without_leads_is_read_and_shows_none(report: ServiceReport) -> None:
    kept = json.loads(to_json(report))
    del kept["leads"]
    without = from_json(json.dumps(kept))
    assert without == replace(report, leads=())
    assert "in turns" not in tables(without)
