from dataclasses import replace

import pytest

from tests.zoo.report import exports, line, page, summary, table
from tests.zoo.results import Export, Row, ZooReport, from_json, row_from_json, row_to_json, to_json

GOOD = Export("", 2e-6, 3, 12.5)
RESNET = Row(
    "resnet18",
    "timm",
    "abc",
    GOOD,
    GOOD,
    native=1.0,
    times={"kuiper": 0.016, "onnxruntime": 0.025, "openvino": 0.02},
)
GPT2 = replace(
    RESNET,
    name="gpt2",
    package="transformers",
    dynamic=Export("output 7 differs by 0.1 | more", 4e-5, 1),
    native=0.58,
    numpy={"torch.addmm": 0.4199, "Tensor.to": 0.0001},
    times={"kuiper": 0.02, "onnxruntime": 0.01, "openvino": 0.04},
)
BERT = Row("bert", "transformers", "abc", Export("no mask"), Export("no length"))
MACHINE = {"processor": "a processor", "cores": "2", "instructions": "avx512", "versions": "torch 2.13.0"}


def test_a_ratio_is_to_the_fastest_peer() -> None:
    assert RESNET.ratio == pytest.approx(0.8)
    assert GPT2.ratio == pytest.approx(2.0)
    assert BERT.ratio is None
    assert replace(RESNET, times={"kuiper": 0.1}).ratio is None


def test_a_table_has_a_line_for_each_network() -> None:
    assert table([RESNET, GPT2, BERT]).splitlines()[2:] == [
        "|resnet18|timm|yes|2e-06|100.0%|-|16.0|0.80|",
        "|gpt2|transformers|fixed sizes only: output 7 differs by 0.1 \\| more|4e-05|58.0%"
        "|torch.addmm 42.0%, Tensor.to <0.1%|20.0|2.00|",
        "|bert|transformers|no: no mask|-|-|-|-|-|",
    ]
    assert "  yes  " in line(RESNET)


def test_the_summary_has_the_geometric_mean() -> None:
    text = summary([RESNET, GPT2, BERT])
    assert text.startswith(
        "2 of 3 networks export with fixed sizes, 1 with dynamic ones; 1 run without numpy."
    )
    assert "1.26 in the geometric mean of 2, 1 above 1." in text
    assert "geometric" not in summary([BERT])


def test_an_export_that_fails_says_why() -> None:
    assert exports(replace(BERT, dynamic=GOOD)) == "dynamic sizes only: no mask"
    assert exports(Row("new", "timm", "abc")) == "no: not tried"
    assert len(exports(replace(BERT, fixed=Export("x" * 500)))) < 140


def test_a_row_whose_process_ended_shows_it_at_the_step_that_it_had_come_to() -> None:
    begun = Row("vgg11", "timm", "abc")
    assert begun.failed("killed").fixed == Export("killed")
    exported = replace(begun, fixed=GOOD)
    assert (exported.failed("killed").fixed, exported.failed("killed").dynamic) == (GOOD, Export("killed"))
    assert RESNET.failed("killed") == replace(RESNET, notes=("killed",), is_complete=True)


def test_rows_and_reports_survive_json() -> None:
    report = ZooReport(MACHINE, "2026-11-24", (RESNET, GPT2, BERT))
    assert from_json(to_json(report)) == report
    assert row_from_json(row_to_json(GPT2)) == GPT2
    assert page(report).startswith("a processor, 2 cores, avx512, on 2026-11-24 (torch 2.13.0). 2 of 3")
