"""Max unpooling: maxima back to the places that max pooling took them from, in one, two and three dimensions."""

from collections.abc import Sequence

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.binding.spatial_arguments import add_batch, spread
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import checked_shape
from engine.kernels.extremes import max_unpool
from engine.kernels.windows import require_positive
from engine.spec import TensorSpec, tensor_spec


def _check_indices(input: TensorSpec, indices: TensorSpec) -> None:
    if indices.dtype.kind != "i":
        raise ArgumentError("indices", f"has dtype {indices.dtype}", "an integer dtype")
    if indices.shape != input.shape:
        raise ArgumentError("indices", f"has shape {indices.shape}", f"{input.shape}, the input's")


def _pooled_from(
    sizes: Sequence[int], kernel_size: Ints, stride: Ints | None, padding: Ints, output_size: Ints | None
) -> tuple[int, ...]:
    """Return the sizes that were pooled: by default the smallest ones that windows fit into exactly.

    Raises:
        ArgumentError: `output_size` has sizes that could not have been pooled to these.
    """
    rank = len(sizes)
    kernel = spread("kernel_size", kernel_size, rank)
    steps = spread("stride", stride, rank) if stride else kernel
    pads = spread("padding", padding, rank)
    for step in steps:
        require_positive("stride", step)
    exact = [
        (size - 1) * step - 2 * pad + length
        for size, step, pad, length in zip(sizes, steps, pads, kernel, strict=True)
    ]
    if not output_size:
        return checked_shape(exact, "kernel_size")
    if len(output_size) not in (rank, rank + 1, rank + 2):
        raise ArgumentError("output_size", f"got {output_size}", f"{rank} sizes")
    wanted = output_size[-rank:]
    if any(abs(size - fit) >= step for size, fit, step in zip(wanted, exact, steps, strict=True)):
        expected = f"less than the stride {tuple(steps)} away from {tuple(exact)}"
        raise ArgumentError("output_size", f"got {tuple(wanted)}", expected)
    return checked_shape(wanted, "output_size")


def _unpooled(input: TensorSpec, indices: TensorSpec, sizes: Sequence[int]) -> TensorSpec:
    _check_indices(input, indices)
    leading = input.shape[: input.rank - len(sizes)]
    return input.with_shape(checked_shape((*leading, *sizes), "output_size"))


def _unpool(input: Array, indices: Array, sizes: Sequence[int]) -> Array:
    output = _unpooled(tensor_spec(input), tensor_spec(indices), sizes)
    batched, _ = add_batch(input.shape, len(sizes))
    return max_unpool(input.reshape(batched), indices.reshape(batched), sizes).reshape(output.shape)


def _register_max_unpool(rank: int) -> None:
    def infer(
        input: TensorSpec,
        indices: TensorSpec,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        output_size: Ints | None,
    ) -> TensorSpec:
        pooled = add_batch(input.shape, rank)[0][2:]
        return _unpooled(input, indices, _pooled_from(pooled, kernel_size, stride, padding, output_size))

    @layer(f"nn.MaxUnpool{rank}d", f"F.max_unpool{rank}d", infer=infer)
    def forward(
        input: Array,
        indices: Array,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = (0,),
        output_size: Ints | None = None,
    ) -> Array:
        """Put (batch, channels, *spatial) maxima, or without batch, back to their indices, among zeros."""
        pooled = add_batch(input.shape, rank)[0][2:]
        return _unpool(input, indices, _pooled_from(pooled, kernel_size, stride, padding, output_size))


def _register_sized_unpool(rank: int) -> None:
    """Register the functions that module and functional come down to, which exporters write as well."""

    def sizes(output_size: Ints) -> tuple[int, ...]:
        return checked_shape(spread("output_size", output_size, rank), "output_size")

    def infer(self: TensorSpec, indices: TensorSpec, output_size: Ints) -> TensorSpec:
        add_batch(self.shape, rank)
        return _unpooled(self, indices, sizes(output_size))

    @layer(f"aten::max_unpool{rank}d", infer=infer)
    def forward(
        self: Array,
        indices: Array,
        output_size: Ints,
        stride: Ints | None = None,
        padding: Ints | None = None,
    ) -> Array:
        """Put maxima back to their indices in planes of `output_size`; stride and padding are redundant."""
        del stride, padding
        add_batch(self.shape, rank)
        return _unpool(self, indices, sizes(output_size))


for _rank in (1, 2, 3):
    _register_max_unpool(_rank)
for _rank in (2, 3):
    _register_sized_unpool(_rank)
