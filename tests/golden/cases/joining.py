"""Layers that join tensors or take one apart."""

from typing import Any

from tests.golden.case import LayerCase, boolean, f32, function, i64, module, tensor


def lstm_cell(nn: Any) -> Any:
    """Make a cell that takes hidden and cell state as two arguments."""

    class Cell(nn.LSTMCell):  # type: ignore[misc]  # nn is Any here
        def forward(self, x: Any, hidden: Any, cell: Any) -> Any:
            return super().forward(x, (hidden, cell))

    return Cell(4, 5)


CASES: list[LayerCase] = [
    function(
        "torch.cat",
        "first",
        lambda torch, x, y: torch.cat([x, y]),
        f32(2, 3),
        f32(4, 3),
        also=((f32(1, 5), f32(2, 5)),),
    ),
    function(
        "torch.cat", "last", lambda torch, x, y, z: torch.cat([x, y, z], -1), f32(2, 1), f32(2, 3), f32(2, 2)
    ),
    function("torch.cat", "same_twice", lambda torch, x: torch.cat([x, x], 1), f32(2, 3)),
    function(
        "torch.cat", "promoted", lambda torch, x, y: torch.cat([x, y], 0), i64(2, 3), tensor("f16", 1, 3)
    ),
    function(
        "torch.cat",
        "bool_and_int",
        lambda torch, x, y: torch.cat([x, y], 0),
        boolean(2, 3),
        tensor("i32", 1, 3, high=9),
    ),
    function(
        "torch.cat",
        "complex",
        lambda torch, x, y: torch.cat([x, y], 0),
        tensor("c64", 2, 3),
        tensor("f64", 1, 3),
    ),
    function(
        "torch.stack",
        "first",
        lambda torch, x, y: torch.stack([x, y]),
        f32(2, 3),
        f32(2, 3),
        also=((f32(4, 1), f32(4, 1)),),
    ),
    function("torch.stack", "last", lambda torch, x, y: torch.stack([x, y], -1), f32(2, 3), f32(2, 3)),
    function("torch.stack", "promoted", lambda torch, x, y: torch.stack([x, y], 1), f32(2, 3), i64(2, 3)),
    function(
        "torch.split", "even", lambda torch, x: torch.split(x, 2, 1), f32(2, 4, 3), also=((f32(1, 3, 2),),)
    ),
    function("torch.split", "rest", lambda torch, x: torch.split(x, 3, -1), f32(2, 7)),
    function("torch.split", "one", lambda torch, x: torch.split(x, 9)[0], f32(2, 7)),
    function("torch.split", "sizes", lambda torch, x: torch.split(x, [1, 0, 3], 1), f32(2, 4)),
    function(
        "torch.chunk", "even", lambda torch, x: torch.chunk(x, 2, 1), f32(2, 4, 3), also=((f32(1, 5, 2),),)
    ),
    function("torch.chunk", "rest", lambda torch, x: torch.chunk(x, 3, -1), i64(2, 7)),
    function("torch.chunk", "fewer_than_asked", lambda torch, x: torch.chunk(x, 5, 0), f32(6, 2)),
    function(
        "torch.tensor_split",
        "sections",
        lambda torch, x: torch.tensor_split(x, 3, 1),
        f32(2, 7),
        also=((f32(3, 2),),),
    ),
    function(
        "torch.tensor_split", "indices", lambda torch, x: torch.tensor_split(x, (1, 3, -1), -1), f32(2, 7)
    ),
    function(
        "torch.tensor_split", "crossing", lambda torch, x: torch.tensor_split(x, (3, 1, 9), 0), f32(5, 2)
    ),
    function(
        "torch.tensor_split",
        "from_slices",
        lambda torch, x: (x[:2], x[2:5], x[5:]),
        f32(8, 2),
        also=((f32(7, 3),),),
    ),
    function("torch.unbind", "first", lambda torch, x: torch.unbind(x), f32(3, 2), also=((f32(3, 5),),)),
    function("torch.unbind", "last", lambda torch, x: torch.unbind(x, -1), f32(2, 3, 2)),
    function("torch.unbind", "vector", lambda torch, x: torch.unbind(x)[1] + x, f32(3)),
    function("torch.unbind", "from_selects", lambda torch, x: (x[:, 0], x[:, 1]), f32(3, 2)),
    *(
        module("aten::unsafe_chunk", name, build, f32(3, 4), *states)
        for name, build, states in (
            ("lstm_cell", lstm_cell, (f32(3, 5), f32(3, 5))),
            ("gru_cell", lambda nn: nn.GRUCell(4, 5), (f32(3, 5),)),
        )
    ),
    function(
        "aten::unsafe_chunk",
        "uneven",
        lambda torch, x: torch.unsafe_chunk(x, 3, 1),
        f32(2, 7),
        also=((f32(2, 8),),),
    ),
    function("aten::unsafe_split", "pieces", lambda torch, x: torch.unsafe_split(x, 3, 1), f32(2, 7)),
    function(
        "aten::unsafe_split_with_sizes",
        "sizes",
        lambda torch, x: torch.unsafe_split_with_sizes(x, (1, 4, 2), 1),
        f32(2, 7),
    ),
]
