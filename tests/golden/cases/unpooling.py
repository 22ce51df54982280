"""Max unpooling: modules and functions as the documentation names them, and the function they come down to."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, function

_Sizes = tuple[int, ...]


def _unpool(
    rank: int,
    name: str,
    *inputs: Input,
    kernel: _Sizes,
    stride: _Sizes | None = None,
    padding: _Sizes = (0,),
    size: _Sizes | None = None,
    prefix: str = "nn.MaxUnpool",
    also: tuple[tuple[Input, ...], ...] = (),
) -> LayerCase:
    """Make a case of max pooling with indices and max unpooling; current exporters break the two up."""
    options = {"kernel_size": kernel, "stride": stride or kernel, "padding": padding}
    spread = {key: value * (rank // len(value)) for key, value in options.items()}

    def build(torch: Any) -> Any:
        class Pool(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.pool = getattr(torch.nn, f"MaxPool{rank}d")(**spread, return_indices=True)
                self.unpool = getattr(torch.nn, f"MaxUnpool{rank}d")(**spread)

            def forward(self, input: Any) -> Any:
                return self.unpool(*self.pool(input), output_size=size)

        return Pool()

    params = " ".join(f"{key}=({','.join(map(str, value))})" for key, value in spread.items())
    sized = f" output_size=({','.join(map(str, size))})" if size else ""
    graph = f"""
        pnnx.Input pnnx_input_0 0 1 in
        nn.MaxPool{rank}d pool 1 2 in maxima indices {params} return_indices=True
        {prefix}{rank}d unpool 2 1 maxima indices out {params}{sized}
        pnnx.Output pnnx_output_0 1 0 out
    """
    return LayerCase(f"{prefix}{rank}d", name, build, inputs, graph=graph, also=also)


def _resized(torch: Any, input: Any) -> Any:
    pooled, indices = torch.nn.functional.max_pool2d(input, 2, return_indices=True)
    return torch.nn.functional.max_unpool2d(pooled, indices, 2, output_size=(7, 9))


def _resized_3d(torch: Any, input: Any) -> Any:
    pooled, indices = torch.nn.functional.max_pool3d(input, 2, return_indices=True)
    return torch.nn.functional.max_unpool3d(pooled, indices, 2, output_size=(5, 4, 4))


CASES: list[LayerCase] = [
    _unpool(2, "plain", f32(2, 3, 4, 6), kernel=(2,), also=((f32(1, 3, 6, 4),),)),
    _unpool(2, "stride", f32(1, 2, 8, 8), kernel=(2, 3), stride=(3, 5)),
    _unpool(2, "padding", f32(1, 2, 7, 10), kernel=(3,), stride=(3,), padding=(1,)),
    _unpool(2, "output_size", f32(1, 2, 5, 7), kernel=(2,), size=(5, 7)),
    _unpool(2, "full_output_size", f32(1, 2, 5, 7), kernel=(2,), size=(1, 2, 5, 7)),
    _unpool(2, "unbatched", f32(2, 4, 6), kernel=(2,)),
    _unpool(1, "plain", f32(2, 3, 8), kernel=(2,)),
    _unpool(1, "output_size", f32(1, 3, 10), kernel=(3,), size=(10,)),
    _unpool(3, "plain", f32(1, 2, 4, 2, 6), kernel=(2,), also=((f32(2, 1, 2, 4, 2),),)),
    *(
        _unpool(rank, "plain", f32(1, 2, *[4] * rank), kernel=(2,), prefix="F.max_unpool")
        for rank in (1, 2, 3)
    ),
    function("aten::max_unpool2d", "output_size", _resized, f32(1, 2, 7, 9)),
    function("aten::max_unpool3d", "output_size", _resized_3d, f32(1, 2, 5, 4, 4)),
]
