"""Pooling over windows and cells."""

from tests.golden.case import LayerCase, f32, function, i64, module, tensor

CASES: list[LayerCase] = [
    module("nn.MaxPool2d", "plain", lambda nn: nn.MaxPool2d(2), f32(1, 3, 6, 7), also=((f32(2, 3, 9, 4),),)),
    module("nn.MaxPool2d", "stride_pad", lambda nn: nn.MaxPool2d(3, stride=2, padding=1), f32(2, 3, 7, 8)),
    module("nn.MaxPool2d", "ceil", lambda nn: nn.MaxPool2d(3, stride=2, ceil_mode=True), f32(1, 3, 8, 6)),
    module(
        "nn.MaxPool2d",
        "window_longer_than_input",
        lambda nn: nn.MaxPool2d((70000, 9), (70000, 2), (0, 4), (1, 3), True, True),
        f32(1, 2, 5, 20),
    ),
    module(
        "nn.MaxPool2d",
        "ceil_pad_drops_window",
        lambda nn: nn.MaxPool2d(2, stride=3, padding=1, ceil_mode=True),
        f32(1, 2, 5, 7),
    ),
    module(
        "nn.MaxPool2d",
        "dilated",
        lambda nn: nn.MaxPool2d((3, 2), stride=(1, 2), padding=(1, 0), dilation=(2, 3)),
        f32(1, 3, 9, 9),
    ),
    module(
        "nn.MaxPool2d",
        "indices",
        lambda nn: nn.MaxPool2d((2, 3), stride=2, padding=1, return_indices=True),
        f32(2, 3, 7, 6),
    ),
    module("nn.MaxPool2d", "unbatched", lambda nn: nn.MaxPool2d(2), f32(3, 6, 7)),
    module("nn.MaxPool2d", "spp", lambda nn: nn.MaxPool2d(5, stride=1, padding=2), f32(1, 4, 6, 5)),
    module(
        "nn.MaxPool1d", "plain", lambda nn: nn.MaxPool1d(3, stride=2, padding=1, ceil_mode=True), f32(2, 3, 8)
    ),
    module("nn.MaxPool1d", "unbatched_dilated", lambda nn: nn.MaxPool1d(2, dilation=3), f32(3, 9)),
    module(
        "nn.MaxPool3d",
        "plain",
        lambda nn: nn.MaxPool3d((2, 3, 1), stride=(1, 2, 2), padding=(1, 1, 0)),
        f32(1, 2, 4, 5, 3),
    ),
    module(
        "nn.MaxPool3d",
        "indices",
        lambda nn: nn.MaxPool3d(2, return_indices=True, ceil_mode=True),
        f32(1, 2, 5, 4, 3),
    ),
    function(
        "F.max_pool2d", "default_stride", lambda t, x: t.nn.functional.max_pool2d(x, (3, 2)), f32(1, 3, 7, 7)
    ),
    function(
        "F.max_pool2d",
        "indices",
        lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True),
        f32(1, 3, 7, 7),
    ),
    function("F.max_pool2d", "i64", lambda t, x: t.nn.functional.max_pool2d(x, 2), i64(1, 2, 4, 4)),
    function(
        "F.max_pool1d", "ceil", lambda t, x: t.nn.functional.max_pool1d(x, 3, 2, ceil_mode=True), f32(2, 3, 8)
    ),
    function(
        "F.max_pool3d", "plain", lambda t, x: t.nn.functional.max_pool3d(x, 2, padding=1), f32(1, 2, 3, 4, 5)
    ),
    module("nn.AvgPool2d", "plain", lambda nn: nn.AvgPool2d(2), f32(1, 3, 6, 7), also=((f32(2, 3, 4, 4),),)),
    module(
        "nn.AvgPool2d",
        "window_longer_than_input",
        lambda nn: nn.AvgPool2d(70000, ceil_mode=True),
        f32(1, 3, 2, 5),
        also=((f32(2, 3, 4, 1),),),
    ),
    module(
        "nn.AvgPool2d",
        "window_and_padding_longer_than_input",
        lambda nn: nn.AvgPool2d((9, 7), 2, (4, 3), count_include_pad=False),
        f32(1, 3, 2, 3),
    ),
    module(
        "nn.AvgPool2d",
        "padded",
        lambda nn: nn.AvgPool2d((3, 4), stride=(2, 1), padding=(1, 2)),
        f32(2, 3, 7, 8),
    ),
    module(
        "nn.AvgPool2d",
        "exclude_pad",
        lambda nn: nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False),
        f32(2, 3, 7, 8),
    ),
    module(
        "nn.AvgPool2d",
        "ceil_include_pad",
        lambda nn: nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True),
        f32(1, 3, 6, 8),
    ),
    module(
        "nn.AvgPool2d",
        "ceil_exclude_pad",
        lambda nn: nn.AvgPool2d(4, stride=3, padding=2, ceil_mode=True, count_include_pad=False),
        f32(1, 3, 6, 8),
    ),
    module(
        "nn.AvgPool2d",
        "divisor",
        lambda nn: nn.AvgPool2d(3, padding=1, ceil_mode=True, divisor_override=7),
        f32(1, 3, 7, 8),
    ),
    module("nn.AvgPool2d", "unbatched", lambda nn: nn.AvgPool2d(2), f32(3, 6, 7)),
    module("nn.AvgPool2d", "f64", lambda nn: nn.AvgPool2d(2), tensor("f64", 1, 3, 6, 7)),
    module(
        "nn.AvgPool1d",
        "plain",
        lambda nn: nn.AvgPool1d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
        f32(2, 3, 8),
    ),
    module(
        "nn.AvgPool3d",
        "plain",
        lambda nn: nn.AvgPool3d((2, 3, 1), stride=2, padding=(1, 1, 0), ceil_mode=True),
        f32(1, 2, 4, 5, 3),
    ),
    function(
        "F.avg_pool2d", "default_stride", lambda t, x: t.nn.functional.avg_pool2d(x, (3, 2)), f32(1, 3, 7, 7)
    ),
    function(
        "F.avg_pool2d",
        "divisor",
        lambda t, x: t.nn.functional.avg_pool2d(x, 3, 2, 1, divisor_override=5),
        f32(1, 3, 7, 7),
    ),
    function("F.avg_pool1d", "plain", lambda t, x: t.nn.functional.avg_pool1d(x, 3, 2, 1), f32(2, 3, 8)),
    function(
        "F.avg_pool3d",
        "plain",
        lambda t, x: t.nn.functional.avg_pool3d(x, 2, padding=1, count_include_pad=False),
        f32(1, 2, 3, 4, 5),
    ),
    module("nn.LPPool2d", "two", lambda nn: nn.LPPool2d(2, (3, 2), stride=2), f32(1, 3, 7, 6)),
    module(
        "nn.LPPool2d",
        "one_ceil",
        lambda nn: nn.LPPool2d(1, 3, stride=2, ceil_mode=True),
        f32(1, 3, 6, 6, low=0.1),
    ),
    module("nn.LPPool1d", "three", lambda nn: nn.LPPool1d(3, 3), f32(2, 3, 9, low=0.1)),
    function(
        "F.lp_pool2d", "plain", lambda t, x: t.nn.functional.lp_pool2d(x, 2, 3, stride=2), f32(1, 3, 7, 6)
    ),
    function(
        "F.lp_pool1d", "plain", lambda t, x: t.nn.functional.lp_pool1d(x, 2, 3, ceil_mode=True), f32(1, 3, 8)
    ),
    module(
        "nn.AdaptiveAvgPool2d",
        "one",
        lambda nn: nn.AdaptiveAvgPool2d(1),
        f32(2, 3, 7, 5),
        also=((f32(1, 3, 4, 9),),),
    ),
    module(
        "nn.AdaptiveAvgPool2d",
        "uneven",
        lambda nn: nn.AdaptiveAvgPool2d((3, 4)),
        f32(2, 3, 7, 5),
        also=((f32(1, 3, 9, 2),),),
    ),
    module("nn.AdaptiveAvgPool2d", "larger", lambda nn: nn.AdaptiveAvgPool2d((9, 6)), f32(1, 2, 4, 5)),
    module(
        "nn.AdaptiveAvgPool2d",
        "keep_width",
        lambda nn: nn.AdaptiveAvgPool2d((3, None)),
        f32(1, 2, 7, 5),
        also=((f32(1, 2, 8, 6),),),
    ),
    module("nn.AdaptiveAvgPool2d", "unbatched", lambda nn: nn.AdaptiveAvgPool2d(2), f32(3, 7, 5)),
    module("nn.AdaptiveAvgPool1d", "plain", lambda nn: nn.AdaptiveAvgPool1d(4), f32(2, 3, 9)),
    module(
        "nn.AdaptiveAvgPool3d", "plain", lambda nn: nn.AdaptiveAvgPool3d((2, None, 3)), f32(1, 2, 5, 4, 7)
    ),
    module("nn.AdaptiveMaxPool2d", "plain", lambda nn: nn.AdaptiveMaxPool2d((3, 4)), f32(2, 3, 7, 5)),
    module(
        "nn.AdaptiveMaxPool2d",
        "indices",
        lambda nn: nn.AdaptiveMaxPool2d((2, None), return_indices=True),
        f32(1, 3, 7, 5),
    ),
    module("nn.AdaptiveMaxPool1d", "plain", lambda nn: nn.AdaptiveMaxPool1d(4), f32(2, 3, 9)),
    module("nn.AdaptiveMaxPool3d", "plain", lambda nn: nn.AdaptiveMaxPool3d((2, 3, 3)), f32(1, 2, 5, 4, 7)),
    function(
        "F.adaptive_avg_pool2d",
        "plain",
        lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (3, 2)),
        f32(1, 3, 7, 5),
    ),
    function(
        "F.adaptive_avg_pool1d", "plain", lambda t, x: t.nn.functional.adaptive_avg_pool1d(x, 3), f32(1, 3, 7)
    ),
    function(
        "F.adaptive_avg_pool3d",
        "plain",
        lambda t, x: t.nn.functional.adaptive_avg_pool3d(x, (3, 1, 2)),
        f32(1, 3, 4, 3, 5),
    ),
    function(
        "F.adaptive_max_pool2d",
        "indices",
        lambda t, x: t.nn.functional.adaptive_max_pool2d(x, (3, 2), return_indices=True),
        f32(1, 3, 7, 5),
    ),
    function(
        "F.adaptive_max_pool1d", "plain", lambda t, x: t.nn.functional.adaptive_max_pool1d(x, 3), f32(1, 3, 7)
    ),
    function(
        "F.adaptive_max_pool3d",
        "plain",
        lambda t, x: t.nn.functional.adaptive_max_pool3d(x, (3, 1, 2)),
        f32(1, 3, 4, 3, 5),
    ),
]
