"""Products of matrices and vectors."""

from typing import Any

from tests.golden.case import Case, Input, f32, function, i64, tensor


def matmul(name: str, a: Input, b: Input, **options: Any) -> Case:
    """Make a case of torch.matmul."""
    return function("torch.matmul", name, lambda torch, x, y: torch.matmul(x, y), a, b, **options)


EXACT = {"rtol": 1e-12, "atol": 1e-12}

CASES: list[Case] = [
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
]
