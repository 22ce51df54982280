"""Pixel shuffling and channel shuffling."""

from tests.golden.case import LayerCase, f32, function, i64, module

CASES: list[LayerCase] = [
    module(
        "nn.PixelShuffle",
        "three",
        lambda nn: nn.PixelShuffle(3),
        f32(2, 18, 2, 3),
        also=((f32(1, 9, 4, 1),),),
    ),
    module("nn.PixelShuffle", "unbatched", lambda nn: nn.PixelShuffle(2), f32(8, 3, 2)),
    module("nn.PixelShuffle", "five_axes", lambda nn: nn.PixelShuffle(2), f32(2, 3, 4, 2, 3)),
    function("F.pixel_shuffle", "two", lambda t, x: t.nn.functional.pixel_shuffle(x, 2), f32(2, 8, 2, 3)),
    function("F.pixel_shuffle", "i64", lambda t, x: t.nn.functional.pixel_shuffle(x, 2), i64(1, 4, 3, 2)),
    module(
        "nn.PixelUnshuffle",
        "three",
        lambda nn: nn.PixelUnshuffle(3),
        f32(2, 2, 6, 3),
        also=((f32(1, 3, 3, 9),),),
    ),
    module("nn.PixelUnshuffle", "unbatched", lambda nn: nn.PixelUnshuffle(2), f32(2, 4, 6)),
    function("F.pixel_unshuffle", "two", lambda t, x: t.nn.functional.pixel_unshuffle(x, 2), f32(1, 3, 4, 6)),
    function(
        "F.pixel_unshuffle",
        "five_axes",
        lambda t, x: t.nn.functional.pixel_unshuffle(x, 2),
        f32(2, 1, 3, 2, 4),
    ),
    module(
        "nn.ChannelShuffle",
        "three",
        lambda nn: nn.ChannelShuffle(3),
        f32(2, 6, 2, 3),
        also=((f32(1, 9, 3, 2),),),
    ),
    module("nn.ChannelShuffle", "two", lambda nn: nn.ChannelShuffle(2), f32(1, 8, 3, 2)),
    module("nn.ChannelShuffle", "3d", lambda nn: nn.ChannelShuffle(2), f32(2, 4, 3)),
]
