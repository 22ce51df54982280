"""Truth values and integers in kernels, which compute them as float32: nothing is rounded, whatever comes."""

from pathlib import Path

import numpy as np
import pytest

from engine import LayerError, RuntimeGraph
from engine.dtypes import Array
from tests.engine.compiler.program.parity import left_to_numpy
from tests.engine.models import make_graph

IDS = "pnnx.Input in 0 1 ids #ids=(2,3)i64"
TABLE = {"table.weight": np.arange(20, dtype=np.float32).reshape(5, 4)}
EMBEDDING = f"""{IDS}
nn.Embedding table 1 1 ids y embedding_dim=4 num_embeddings=5 sparse=False @weight=(5,4)f32
pnnx.Output out 1 0 y"""
LARGE = np.array([[2**24 + 1, -(2**40), 7], [0, 2**31 + 1, -3]])


def both(
    folder: Path, text: str, weights: dict[str, Array] | None = None
) -> tuple[RuntimeGraph, RuntimeGraph]:
    """Return a graph run by kernels, and by numpy."""
    native, plain = (make_graph(folder, text, weights, backend=name) for name in ("native", "numpy"))
    return native, plain


def compare(
    folder: Path, text: str, *inputs: Array, kernels: bool = True, weights: dict[str, Array] | None = None
) -> list[Array]:
    """Run a graph on both backends, and compare all outputs to the bit; returns them."""
    native, plain = both(folder, text, weights)
    outputs = native.forward(list(inputs))
    for output, wanted in zip(outputs, plain.forward(list(inputs)), strict=True):
        assert output.dtype == wanted.dtype
        np.testing.assert_array_equal(output, wanted)
    assert (left_to_numpy(native, inputs) == set()) is kernels
    assert native.verification.refused == ()
    return outputs


@pytest.mark.parametrize("wrong", [5, -1, 2**40])
def test_index_out_of_range_is_refused_as_by_numpy(tmp_path: Path, wrong: int) -> None:
    native, plain = both(tmp_path, EMBEDDING, TABLE)
    ids = np.array([[0, 4, 2], [3, 1, 0]])
    np.testing.assert_array_equal(native.forward(ids)[0], TABLE["table.weight"][ids])
    assert left_to_numpy(native, [ids]) == set()
    ids[1, 1] = wrong
    for graph in (native, plain):
        with pytest.raises(LayerError, match=f"nn.Embedding table.*index {wrong}; expected 0 to 4"):
            graph.forward(ids)
    np.testing.assert_array_equal(native.forward(ids % 5)[0], TABLE["table.weight"][ids % 5])


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "pnnx.Expression e 1 1 ids y expr=mul(@0,@0)",
        "pnnx.Expression e 1 1 ids y expr=neg(sub(@0,3))",
        "torch.sum s 1 1 ids y dim=(1) keepdim=False $input=ids",
        "torch.cumsum s 1 1 ids y dim=1 $input=ids",
        "torch.argmax s 1 1 ids y dim=1 keepdim=True $input=ids",
        "torch.amax s 1 1 ids y dim=(0) keepdim=True $input=ids",
        "Tensor.to t 1 1 ids y dtype=torch.int $input=ids",
        "Tensor.reshape r 1 1 ids y shape=(3,2) $input=ids",
        "torch.flip f 1 1 ids y dims=(0,1) $input=ids",
    ],
)
def test_integers_that_float32_does_not_hold_are_left_to_numpy(
    tmp_path: Path, line: str, is_large: bool
) -> None:
    ids = LARGE if is_large else LARGE % 5 - 1
    compare(tmp_path, f"{IDS}\n{line}\npnnx.Output out 1 0 y", ids, kernels=not is_large)


@pytest.mark.parametrize(
    "line",
    [
        *(f"torch.{name} c 1 1 ids y other=7 $input=ids" for name in ("eq", "ne", "lt", "le", "gt", "ge")),
        "torch.eq c 1 1 ids y other=16777215 $input=ids",
        "Tensor.to t 1 1 ids y dtype=torch.bool $input=ids",
        "Tensor.to t 1 1 ids y dtype=torch.float $input=ids",
        "torch.logical_not n 1 1 ids y $input=ids",
        "pnnx.Expression e 1 1 ids y expr=and(True,ne(@0,0))",
        "pnnx.Expression e 1 1 ids y expr=xor(eq(@0,7),or(gt(@0,0),False))",
    ],
)
def test_integers_of_any_size_are_compared_and_converted(tmp_path: Path, line: str) -> None:
    compare(tmp_path, f"{IDS}\n{line}\npnnx.Output out 1 0 y", LARGE)


def test_integer_that_may_be_rounded_is_not_compared_with_one_that_it_may_be_rounded_to(
    tmp_path: Path,
) -> None:
    line = "torch.eq c 1 1 ids y other=16777216 $input=ids"
    (output,) = compare(tmp_path, f"{IDS}\n{line}\npnnx.Output out 1 0 y", LARGE, kernels=False)
    assert not output.any()


def test_integers_reach_numpy_as_they_were(tmp_path: Path) -> None:
    """A view that kernels look through, of a tensor that numpy reads behind it."""
    text = f"""{IDS}
        Tensor.reshape r 1 1 ids a shape=(6) $input=ids
        pnnx.Expression e 1 1 a b expr=floor_divide(@0,2)
        torch.ne n 1 1 b y other=3 $input=b
        pnnx.Output out 1 0 y"""
    for ids in (LARGE, LARGE % 5):
        compare(tmp_path, text, ids, kernels=False)


def test_integers_that_numpy_gives_reach_numpy_as_they_were(tmp_path: Path) -> None:
    text = f"""{IDS}
        pnnx.Expression e 1 1 ids a expr=floor_divide(@0,1)
        Tensor.reshape r 1 1 a b shape=(6) $input=a
        pnnx.Expression f 1 1 b c expr=floor_divide(@0,1)
        torch.ne n 1 1 b d other=7 $input=b
        prim::TupleConstruct t 2 1 c d y
        pnnx.Output out 1 0 y"""
    output, _ = compare(tmp_path, text, LARGE, kernels=False)
    np.testing.assert_array_equal(output, LARGE.reshape(-1))


def test_mask_of_large_numbers_gives_what_numpy_gives(tmp_path: Path) -> None:
    text = f"""{IDS}
        Tensor.slice a 1 1 ids a dims=(1) starts=(0) ends=(2) steps=(1) $input=ids
        Tensor.slice b 1 1 ids b dims=(1) starts=(1) ends=(3) steps=(1) $input=ids
        pnnx.Expression e 2 1 a b c expr=mul(@0,@1)
        Tensor.to t 1 1 c y dtype=torch.bool $input=c
        pnnx.Output out 1 0 y"""
    compare(tmp_path, text, np.array([[1, 0, 1], [1, 1, 1]]))
    compare(tmp_path, text, np.array([[2**32, 2**32, 1], [1, 1, 1]]), kernels=False)


def test_what_is_assumed_in_vain_is_not_asked_of_inputs(tmp_path: Path) -> None:
    """Cubes of masks might exceed what is exact, so that numpy computes them, and kernels all else of any numbers."""
    text = f"""{IDS}
        pnnx.Expression e 1 1 ids a expr=mul(@0,mul(@0,@0))
        torch.ne n 1 1 ids b other=0 $input=ids
        prim::TupleConstruct t 2 1 a b y
        pnnx.Output out 1 0 y"""
    native, plain = both(tmp_path, text)
    for output, wanted in zip(native.forward(LARGE), plain.forward(LARGE), strict=True):
        np.testing.assert_array_equal(output, wanted)
    assert left_to_numpy(native, [LARGE]) == {"pnnx.Expression"}


NUMBERS = np.array(
    [[np.nan, 1, -np.inf, np.inf], [0, -0.0, 0.5, np.nan], [-np.inf] * 4, [2, 2, 1, 2]], np.float32
)


@pytest.mark.parametrize(
    "line",
    [
        *(f"torch.{name} c 1 1 x y other=0.5 $input=x" for name in ("eq", "ne", "lt", "le", "gt", "ge")),
        "Tensor.to t 1 1 x y dtype=torch.bool $input=x",
        "torch.logical_not n 1 1 x y $input=x",
        "aten::any a 1 1 x y dim=(1) keepdim=False $input=x",
        "aten::all a 1 1 x y dim=(1) keepdim=True $input=x",
        *(
            f"torch.arg{how} a 1 1 x y dim={dim} keepdim=False $input=x"
            for how in ("max", "min")
            for dim in (0, 1)
        ),
        "torch.argmax a 1 1 x y dim=None keepdim=False $input=x",
        "torch.flip f 1 1 x y dims=(1) $input=x",
    ],
)
def test_numbers_that_are_not_finite(tmp_path: Path, line: str) -> None:
    compare(tmp_path, f"pnnx.Input in 0 1 x #x=(4,4)f32\n{line}\npnnx.Output out 1 0 y", NUMBERS)


def test_constants_without_inputs_are_folded(tmp_path: Path) -> None:
    text = """pnnx.Input in 0 1 x #x=(4,4)f32
        torch.arange r 0 1 a end=4 dtype=torch.float
        torch.zeros_like z 1 1 x b $input=x
        torch.full f 0 1 c size=(4,1) fill_value=2
        torch.arange i 0 1 d end=4
        torch.index_select s 2 1 x d e dim=0 $input=x $index=d
        pnnx.Expression e 5 1 x a b c e y expr=add(add(add(mul(@0,@1),@2),@3),@4)
        pnnx.Output out 1 0 y"""
    compare(tmp_path, text, NUMBERS)


@pytest.mark.parametrize(
    "maker", ["pnnx.Expression l 2 1 i j list expr=[@0,@1]", "prim::ListConstruct l 2 1 i j list"]
)
def test_mask_of_transformers_is_picked_by_constant_indices(tmp_path: Path, maker: str) -> None:
    """`mask[batch_idx, kv_idx]`, whose indices are spread over batches, heads, queries and keys."""
    text = f"""pnnx.Input in 0 1 m #m=(2,5)i64
        Tensor.to t 1 1 m b dtype=torch.bool $input=m
        pnnx.Attribute i 0 1 i @data=(2,1,1,1)i64 #i=(2,1,1,1)i64
        pnnx.Attribute j 0 1 j @data=(5)i64 #j=(5)i64
        {maker}
        Tensor.index x 2 1 b list y $input=b $expr=list
        pnnx.Output out 1 0 y"""
    weights = {"i.data": np.array([[[[0]]], [[[-1]]]]), "j.data": np.array([4, 1, 0, -2, 2])}
    mask = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 0, 0]])
    (output,) = compare(tmp_path, text, mask, weights=weights)
    np.testing.assert_array_equal(output[:, 0, 0], mask[:, [4, 1, 0, -2, 2]] != 0)


def test_one_program_for_texts_of_any_length(tmp_path: Path) -> None:
    text = """pnnx.Input in 0 1 ids #ids=(1,?)i64
        pnnx.Input mask 0 1 m #m=(1,?)i64
        nn.Embedding table 1 1 ids x embedding_dim=4 num_embeddings=5 sparse=False @weight=(5,4)f32
        Tensor.to t 1 1 m b dtype=torch.bool $input=m
        torch.unsqueeze u 1 1 b c dim=1 $input=b
        torch.unsqueeze u2 1 1 b d dim=2 $input=b
        pnnx.Expression e 2 1 c d pairs expr=and(@0,@1)
        F.scaled_dot_product_attention a 4 1 x x x pairs y $query=x $key=x $value=x $attn_mask=pairs
        pnnx.Output out 1 0 y"""
    native, plain = both(tmp_path, text, TABLE)
    random = np.random.default_rng(0)
    for length in (3, 20, 21, 50, 64):
        inputs = [random.integers(0, 5, (1, length)), random.integers(0, 2, (1, length))]
        np.testing.assert_allclose(native.forward(inputs)[0], plain.forward(inputs)[0], rtol=1e-5, atol=1e-6)
        assert left_to_numpy(native, inputs) == set()
    assert native.compilation.compiled == 2
    assert native.verification.refused_count == 0


POSITIONS = """pnnx.Input in 0 1 ids #ids=(1,?)i64
    nn.Embedding table 1 1 ids x embedding_dim=4 num_embeddings=5 sparse=False @weight=(5,4)f32
    pnnx.Expression n 1 1 ids n expr=size(@0,1)
    torch.arange r 1 1 n p $end=n
    pnnx.Expression back 1 1 p q expr=add(neg(@0),79)
    pnnx.Attribute w 0 1 w @data=(80,4)f32 #w=(80,4)f32
    F.embedding places 2 1 q w z $input=q $weight=w
    torch.ne m 1 1 ids m other=1 $input=ids
    torch.cumsum c 1 1 m k dim=1 $input=m
    F.embedding counts 2 1 k w v $input=k $weight=w
    torch.argmax a 1 1 ids first dim=1 keepdim=True $input=ids
    pnnx.Expression sum 4 1 x z v first y expr=add(add(add(@0,@1),@2),@3)
    pnnx.Output out 1 0 y"""


def test_positions_in_a_program_for_all_lengths_stay_within_their_table(tmp_path: Path) -> None:
    """For which lengths indices are in range follows from those that the program was drafted for."""
    random = np.random.default_rng(0)
    weights = TABLE | {"w.data": random.standard_normal((80, 4)).astype(np.float32)}
    native, plain = both(tmp_path, POSITIONS, weights)
    for length in (3, 20, 21, 30, 79):
        ids = random.integers(0, 5, (1, length))
        np.testing.assert_allclose(native.forward(ids)[0], plain.forward(ids)[0], rtol=1e-5, atol=1e-6)
        assert left_to_numpy(native, [ids]) == set()
    assert native.compilation.compiled == 2
    for graph in (native, plain):
        with pytest.raises(LayerError, match="F.embedding places.*index -1; expected 0 to 79"):
            graph.forward(np.ones((1, 81), np.int64))
        with pytest.raises(LayerError, match="F.embedding counts.*index 80; expected 0 to 79"):
            graph.forward(np.zeros((1, 80), np.int64))


def test_what_follows_from_the_length_otherwise_is_left_to_numpy(tmp_path: Path) -> None:
    """Bounds that are no polynomial of the length cannot be inferred ahead: the program does without."""
    text = """pnnx.Input in 0 1 ids #ids=(1,?)i64
        nn.Embedding table 1 1 ids x embedding_dim=4 num_embeddings=5 sparse=False @weight=(5,4)f32
        pnnx.Expression n 1 1 ids n expr=size(@0,1)
        torch.arange r 1 1 n p $end=n
        pnnx.Expression near 1 1 p q expr=minimum(@0,12)
        pnnx.Attribute w 0 1 w @data=(13,4)f32 #w=(13,4)f32
        F.embedding places 2 1 q w z $input=q $weight=w
        pnnx.Expression sum 2 1 x z y expr=add(@0,@1)
        pnnx.Output out 1 0 y"""
    random = np.random.default_rng(0)
    native, plain = both(
        tmp_path, text, TABLE | {"w.data": random.standard_normal((13, 4)).astype(np.float32)}
    )
    for length in (3, 20, 21, 50):
        ids = random.integers(0, 5, (1, length))
        np.testing.assert_allclose(native.forward(ids)[0], plain.forward(ids)[0], rtol=1e-5, atol=1e-6)
    assert native.compilation.compiled == 2
    assert native.verification.refused == ()
