"""Products of matrices and vectors."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, function, i64, tensor


def matmul(name: str, a: Input, b: Input, **options: Any) -> LayerCase:
    """Make a case of torch.matmul."""
    return function("torch.matmul", name, lambda torch, x, y: torch.matmul(x, y), a, b, **options)


def addmm(name: str, added: Input, **factors: Any) -> LayerCase:
    """Make a case of torch.addmm."""

    def call(torch: Any, *x: Any) -> Any:
        return torch.addmm(*x, **factors)

    return function("torch.addmm", name, call, added, f32(3, 5), f32(5, 4))


def baddbmm(name: str, added: Input, **factors: Any) -> LayerCase:
    """Make a case of torch.baddbmm."""

    def call(torch: Any, *x: Any) -> Any:
        return torch.baddbmm(*x, **factors)

    return function("torch.baddbmm", name, call, added, f32(2, 3, 5), f32(2, 5, 4))


def einsum(name: str, equation: str, *operands: Input, **options: Any) -> LayerCase:
    """Make a case of torch.einsum."""
    return function("torch.einsum", name, lambda torch, *x: torch.einsum(equation, *x), *operands, **options)


EXACT = {"rtol": 1e-12, "atol": 1e-12}

CASES: list[LayerCase] = [
    matmul("vector_vector", f32(5), f32(5)),
    matmul("matrix_vector", f32(3, 5), f32(5)),
    matmul("vector_matrix", f32(5), f32(5, 2)),
    matmul("matrix_matrix", f32(3, 5), f32(5, 2), also=((f32(4, 2), f32(2, 7)),)),
    matmul("stack_vector", f32(2, 3, 5), f32(5)),
    matmul("vector_stack", f32(5), f32(2, 5, 3)),
    matmul("stack_matrix", f32(2, 3, 5), f32(5, 4)),
    matmul("matrix_stack", f32(3, 5), f32(2, 5, 4)),
    matmul("stack_stack", f32(3, 2, 5), f32(3, 5, 4), also=((f32(2, 1, 3), f32(2, 3, 1)),)),
    matmul("broadcast", f32(2, 1, 3, 5), f32(4, 5, 2)),
    matmul("broadcast_both", f32(2, 1, 1, 3, 5), f32(1, 3, 2, 5, 2)),
    matmul("f64", tensor("f64", 3, 5), tensor("f64", 5, 2), **EXACT),
    matmul("f16", tensor("f16", 3, 5), tensor("f16", 5, 2), rtol=2e-3, atol=2e-3),
    matmul("i64", i64(3, 5), i64(5, 2)),
    matmul("c64", tensor("c64", 3, 5), tensor("c64", 5, 2)),
    function(
        "torch.matmul",
        "transposed_views",
        lambda torch, x, y: torch.matmul(x.transpose(1, 2), y.permute(2, 0, 1)),
        *(f32(2, 5, 3), f32(5, 4, 2)),
    ),
    function(
        "torch.mm",
        "plain",
        lambda torch, x, y: torch.mm(x, y),
        f32(3, 5),
        f32(5, 2),
        also=((f32(1, 2), f32(2, 1)),),
    ),
    function(
        "torch.mm",
        "f64",
        lambda torch, x, y: torch.mm(x, y),
        tensor("f64", 3, 5),
        tensor("f64", 5, 2),
        **EXACT,
    ),
    function("torch.mm", "i64", lambda torch, x, y: torch.mm(x, y), i64(3, 5), i64(5, 2)),
    function("torch.mm", "transposed", lambda torch, x, y: torch.mm(x.t(), y.t()), f32(5, 3), f32(2, 5)),
    function("torch.mv", "plain", lambda torch, x, y: torch.mv(x, y), f32(3, 5), f32(5)),
    function("torch.bmm", "plain", lambda torch, x, y: torch.bmm(x, y), f32(2, 3, 5), f32(2, 5, 4)),
    function(
        "torch.bmm",
        "f16",
        lambda torch, x, y: torch.bmm(x, y),
        *(tensor("f16", 2, 3, 3),) * 2,
        rtol=2e-3,
        atol=2e-3,
    ),
    addmm("plain", f32(3, 4)),
    addmm("row", f32(4), beta=2, alpha=0.5),
    addmm("column", f32(3, 1), beta=0.3),
    addmm("beta_zero", f32(3, 4), beta=0, alpha=2),
    function(
        "torch.addmm",
        "i64",
        lambda torch, x, a, b: torch.addmm(x, a, b, beta=2, alpha=3),
        *(i64(3, 4), i64(3, 5), i64(5, 4)),
    ),
    function(
        "torch.addmm",
        "f16",
        lambda torch, x, a, b: torch.addmm(x, a, b, alpha=0.5),
        *(tensor("f16", 3, 4), tensor("f16", 3, 5), tensor("f16", 5, 4)),
        rtol=2e-3,
        atol=2e-3,
    ),
    baddbmm("plain", f32(2, 3, 4)),
    baddbmm("row", f32(4), beta=2, alpha=0.5),
    baddbmm("matrix", f32(3, 4), beta=0.3),
    baddbmm("beta_zero", f32(2, 3, 4), beta=0, alpha=2),
    einsum("matrix_product", "ij,jk->ik", f32(3, 4), f32(4, 2), also=((f32(2, 1), f32(1, 5)),)),
    einsum("implicit", "ij,jk", f32(3, 4), f32(4, 2)),
    einsum("spaces", " i j , j k -> i k ", f32(3, 4), f32(4, 2)),
    einsum("transpose", "ij->ji", f32(3, 4)),
    einsum("implicit_transpose", "ba", f32(3, 4)),
    einsum("upper_case_first", "aB", f32(3, 4)),
    einsum("sum", "ij->", f32(3, 4)),
    einsum("sum_rows", "ijk->j", f32(3, 4, 2)),
    einsum("trace", "ii", f32(4, 4)),
    einsum("diagonal", "ii->i", f32(4, 4)),
    einsum("batch_diagonal", "bii->bi", f32(2, 4, 4)),
    einsum("diagonal_of_three", "iji,i->j", f32(3, 4, 3), f32(3)),
    einsum("dot", "i,i", f32(5), f32(5)),
    einsum("outer", "i,j->ij", f32(5), f32(3)),
    einsum("hadamard", "ij,ij->ij", f32(3, 4), f32(3, 4)),
    einsum("batch", "bij,bjk->bik", f32(2, 3, 4), f32(2, 4, 5)),
    einsum("batch_last", "ijb,jkb->ikb", f32(3, 4, 2), f32(4, 5, 2)),
    einsum("heads", "bqhd,bkhd->bhqk", f32(2, 3, 2, 4), f32(2, 5, 2, 4)),
    einsum("several_summed", "ijkm,ijml->ijkl", f32(2, 3, 4, 5), f32(2, 3, 5, 2)),
    einsum("tensor_product", "abcd,cdef->abef", f32(2, 3, 4, 2), f32(4, 2, 3, 2)),
    einsum("lone_summed", "ij,kl->il", f32(2, 3), f32(4, 5)),
    einsum("ellipsis", "...ij,...jk->...ik", f32(2, 3, 4), f32(2, 4, 5)),
    einsum("ellipsis_broadcast", "...ij,...jk->...ik", f32(2, 1, 3, 4), f32(5, 4, 2)),
    einsum("ellipsis_implicit", "i...,i...", f32(3, 2, 4), f32(3, 2, 4)),
    einsum("ellipsis_transposed", "i...j->j...i", f32(3, 2, 4, 5)),
    einsum("ellipsis_summed", "...i->i", f32(3, 2, 4)),
    einsum("ellipsis_of_one", "...i,i->...", f32(3, 2, 4), f32(4)),
    einsum("broadcast_summed", "ij,jk->ik", f32(3, 1), f32(4, 2)),
    einsum("broadcast_kept", "bi,bi->b", f32(1, 3), f32(4, 3)),
    einsum("three", "ij,jk,kl->il", f32(2, 3), f32(3, 4), f32(4, 2)),
    einsum("bilinear", "bn,anm,bm->ba", f32(2, 3), f32(5, 3, 4), f32(2, 4)),
    einsum("f64", "ij,jk->ik", tensor("f64", 3, 4), tensor("f64", 4, 2), **EXACT),
    einsum("f16", "ij,jk->ik", tensor("f16", 3, 4), tensor("f16", 4, 2), rtol=2e-3, atol=2e-3),
    einsum("i64", "ij,jk->ik", i64(3, 4), i64(4, 2)),
    einsum("c64", "ij,jk->ik", tensor("c64", 3, 4), tensor("c64", 4, 2)),
]
