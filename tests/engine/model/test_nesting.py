from pathlib import Path

import numpy as np
import pytest

from engine import GraphError
from engine.model.limits import MAX_DEPTH, MAX_MEMBERS
from tests.engine.models import make_graph

X = np.zeros((2, 3), np.float32)


def chain(count: int, link: str) -> str:
    """Return a graph of `count` operators that each take the last one's value, written `link`."""
    links = "\n".join(link.format(i=i, next=i + 1) for i in range(count))
    return f"pnnx.Input in 0 1 v0\n{links}\npnnx.Output out 1 0 v{count}"


TUPLE = "prim::TupleConstruct t{i} 1 1 v{i} v{next}"
TWICE = "prim::ListConstruct t{i} 2 1 v{i} v{i} v{next}"
LIST = "pnnx.Expression t{i} 1 1 v{i} v{next} expr=[@0,@0]"
THROUGH = "prim::TupleConstruct t{i} 2 1 v{i} v{i} w{i}\npnnx.Expression p{i} 1 1 w{i} v{next} expr=@0"


def test_nested_values_run_up_to_the_limits(tmp_path: Path) -> None:
    assert len(make_graph(tmp_path, chain(MAX_DEPTH, TUPLE)).forward([X])) == 1
    assert len(make_graph(tmp_path, chain(12, TWICE)).forward([X])) == 2**12 == MAX_MEMBERS


@pytest.mark.parametrize(
    ("count", "link", "message"),
    [
        (
            10_000,
            TUPLE,
            "prim::TupleConstruct t32: a tuple 33 levels deep with 1 members; expected at most 32",
        ),
        (
            40,
            TWICE,
            "prim::ListConstruct t12: a tuple 13 levels deep with 8192 members; expected .* 4096 mem",
        ),
        (40, LIST, "pnnx.Expression t12: a tuple 13 levels deep with 8192 members"),
        (40, THROUGH, "prim::TupleConstruct t12: a tuple 13 levels deep with 8192 members"),
        (1, f"pnnx.Expression e 1 1 v0 v1 expr={'[' * 10_000}@0{']' * 10_000}", "e: a tuple 10000 levels"),
    ],
    ids=["deep", "wide", "expressions", "through", "one expression"],
)
def test_tuples_without_end_are_refused(tmp_path: Path, count: int, link: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        make_graph(tmp_path, chain(count, link), build=False).init()


def test_unpacked_tuples_count_on(tmp_path: Path) -> None:
    link = (
        "prim::TupleConstruct t{i} 3 1 v{i} v{i} v{i} w{i}\nprim::TupleUnpack u{i} 1 3 w{i} v{next} x{i} y{i}"
    )
    with pytest.raises(GraphError, match="prim::TupleConstruct"):
        make_graph(tmp_path, chain(40, link), build=False).init()


def test_tensors_made_of_tuples_start_afresh(tmp_path: Path) -> None:
    link = (
        "prim::ListConstruct l{i} 2 1 v{i} v{i} w{i}\n"
        "torch.cat c{i} 1 1 w{i} x{i} dim=0\n"
        "pnnx.Expression s{i} 2 1 x{i} v0 v{next} expr=sub(@1,0.0)"
    )
    make_graph(tmp_path, chain(40, link), build=False).init()
