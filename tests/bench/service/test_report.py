"""The report of the service's benchmark: its JSON, and the Markdown that documentation shows."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from tests.bench.service.load import Timings
from tests.bench.service.report import scaling_table, tables
from tests.bench.service.results import (
    OURS_TWICE,
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


def test_scaling_table_shows_this_server(report: ServiceReport) -> None:
    assert rows(scaling_table(report))[2:] == [["digits", "1", "1,000", "4,000", "2.2", "90"]]


def test_json_gives_the_report_back(report: ServiceReport) -> None:
    assert from_json(to_json(report)) == report


def test_json_of_something_else_is_refused() -> None:
    with pytest.raises(ValidationError):
        from_json('{"loads": []}')


def test_servers_stand_beside_one_another_for_each_load(report: ServiceReport) -> None:
    head, _, *lines = rows(tables(report))[:6]
    assert head == ["model", "input", "at once", "Kuiper Serve", "LitServe"]
    assert [line[0] for line in lines] == ["digits", "digits", "resnet18", "resnet18"]
    assert lines[0] == ["digits", "binary", "1", "1000 (2.2)", "250 (2.2)"]
    assert lines[1] == ["digits", "binary", "4", "4000 (2.2)", "1000 (2.2)"]


def test_load_that_was_not_measured_leaves_its_cell_empty(report: ServiceReport) -> None:
    fewer = replace(report, loads=report.loads[:3])
    assert rows(tables(fewer))[3] == ["digits", "binary", "4", "4000 (2.2)", ""]


def test_every_figure_is_shown(report: ServiceReport) -> None:
    text = tables(report)
    for part in (
        "3 s per figure",
        "2026-11-22",
        "wrk 4.1.0",
        "reaches 90000 requests",
    ):
        assert part in text
    assert ["server", "digits: ready, s", "digits: memory, MB"] in rows(text)
    assert ["Kuiper Serve", "1.2", "90"] in rows(text)
    assert ["digits", "16", "Kuiper Serve", "Triton", "requests/s", "4000", "5000", "0.80", "1"] in rows(text)
    assert ["digits", "1", "Kuiper Serve", "FastAPI", "median, ms", "0.40", "0.50", "1.25", "1"] in rows(text)
    assert ["3 numbers", "JSON", "0.250", "3.500", "3.250"] in rows(text)


def test_servers_that_were_not_measured_are_named(report: ServiceReport) -> None:
    assert "Not in this run: Kuiper Serve, two processes, Triton, FastAPI, MLServer." in tables(report)
    known = report.loads[0]
    names = (OURS_TWICE, "Triton, 1 instance", "FastAPI", "LitServe", "MLServer, in process")
    full = replace(report, loads=(*report.loads, *(replace(known, server=name) for name in names)))
    assert "Not in this run" not in tables(full)


def test_two_processes_are_shown_beside_one(report: ServiceReport) -> None:
    loads = [
        LoadResult(server, "digits", "binary", 4, Timings(rate, 1.0, 2.25))
        for server, rate in ((OURS_TWICE, 6000.0), ("Triton, instances", 5000.0))
    ]
    of_two = Lead("digits", 16, "Triton, instances", "rate", 6000.0, 5000.0, 1.0, OURS_TWICE)
    both = replace(report, loads=(*report.loads, *loads), leads=(*report.leads, of_two))
    text = tables(both)
    assert "6000 (2.2)" in rows(text)[3]
    cells = ["digits", "16", OURS_TWICE, "Triton, instances", "requests/s", "6000", "5000", "1.20", "1"]
    assert cells in rows(text)


def test_lead_that_was_kept_without_a_name_is_that_of_one_process(report: ServiceReport) -> None:
    kept = json.loads(to_json(report))
    for one in kept["leads"]:
        del one["leader"]
    assert from_json(json.dumps(kept)) == report


def test_report_of_a_run_without_leads_is_read_and_shows_none(report: ServiceReport) -> None:
    kept = json.loads(to_json(report))
    del kept["leads"]
    without = from_json(json.dumps(kept))
    assert without == replace(report, leads=())
    assert "alternately" not in tables(without)
