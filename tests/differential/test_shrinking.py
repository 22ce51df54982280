"""Failing cases become small ones."""

from dataclasses import replace

from tests.differential.case import GraphCase, parse_case
from tests.differential.shrinking import shrink

LARGE = """
seed 3
run (2,8,6,6) (2,4)
run (3,8,6,6) (3,4)
pnnx.Input in0 0 1 a #a=(?,8,6,6)f32
pnnx.Input in1 0 1 b #b=(?,4)f32
nn.Conv2d first 1 1 a c bias=False dilation=(1,1) groups=1 in_channels=8 kernel_size=(3,3) out_channels=16 padding=(1,1) padding_mode=zeros stride=(1,1) @weight=(16,8,3,3)f32
F.relu r 1 1 c d $input=c
nn.Conv2d second 1 1 d e bias=False dilation=(1,1) groups=1 in_channels=16 kernel_size=(3,3) out_channels=4 padding=(1,1) padding_mode=zeros stride=(2,2) @weight=(4,16,3,3)f32
F.tanh t 1 1 e f $input=e
nn.Linear fc 1 1 b g bias=False in_features=4 out_features=4 @weight=(4,4)f32
pnnx.Output out0 1 0 f
pnnx.Output out1 1 0 g
"""  # noqa: E501


def test_only_what_makes_a_case_fail_is_left() -> None:
    def fails(case: GraphCase) -> bool:
        return any(line.name == "second" for line in case.operators)

    small = shrink(parse_case(LARGE, "large"), fails)
    assert [line.name for line in small.operators] == ["second"]
    assert len(small.runs) == len(small.inputs) == len(small.outputs) == 1
    assert small.runs[0][0] == (1, 1, 1, 1)
    assert "padding=(0,0)" in small.operators[0].words
    assert "@weight=(1,1,1,1)f32" in small.operators[0].words


def test_a_case_that_gets_no_smaller_stays() -> None:
    case = parse_case(LARGE, "large")
    assert shrink(case, lambda other: len(str(other)) >= len(str(case)) and other == case) == case


def test_no_more_cases_are_tried_than_allowed() -> None:
    tried = []

    def fails(case: GraphCase) -> bool:
        tried.append(case)
        return False

    case = parse_case(LARGE, "large")
    shrink(replace(case, runs=case.runs[:1]), fails, most=5)
    assert len(tried) == 5
