"""Upsampling, interpolation and padding."""

from tests.golden.case import LayerCase, f32, function, i64, module, tensor

CASES: list[LayerCase] = [
    module(
        "nn.Upsample",
        "nearest_size",
        lambda nn: nn.Upsample(size=(9, 4)),
        f32(1, 2, 5, 6),
        also=((f32(2, 2, 3, 3),),),
    ),
    module(
        "nn.Upsample",
        "nearest_factor",
        lambda nn: nn.Upsample(scale_factor=2),
        f32(1, 2, 5, 6),
        also=((f32(2, 2, 3, 3),),),
    ),
    module(
        "nn.Upsample", "nearest_fraction", lambda nn: nn.Upsample(scale_factor=(1.7, 0.6)), f32(1, 2, 5, 6)
    ),
    module(
        "nn.Upsample",
        "nearest_exact",
        lambda nn: nn.Upsample(size=(7, 4), mode="nearest-exact"),
        f32(1, 2, 5, 6),
    ),
    module(
        "nn.Upsample",
        "bilinear",
        lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"),
        f32(1, 2, 5, 6),
        also=((f32(2, 2, 3, 3),),),
    ),
    module(
        "nn.Upsample",
        "bilinear_corners",
        lambda nn: nn.Upsample(size=(9, 4), mode="bilinear", align_corners=True),
        f32(1, 2, 5, 6),
    ),
    module(
        "nn.Upsample",
        "bilinear_fraction",
        lambda nn: nn.Upsample(scale_factor=(1.7, 0.6), mode="bilinear"),
        f32(1, 2, 5, 6),
    ),
    module(
        "nn.Upsample",
        "bilinear_recompute",
        lambda nn: nn.Upsample(scale_factor=(1.7, 0.6), mode="bilinear", recompute_scale_factor=True),
        f32(1, 2, 5, 6),
    ),
    module("nn.Upsample", "bicubic", lambda nn: nn.Upsample(size=(9, 4), mode="bicubic"), f32(1, 2, 5, 6)),
    module(
        "nn.Upsample",
        "bicubic_corners",
        lambda nn: nn.Upsample(scale_factor=2, mode="bicubic", align_corners=True),
        f32(1, 2, 5, 6),
    ),
    module("nn.Upsample", "linear", lambda nn: nn.Upsample(scale_factor=2.5, mode="linear"), f32(2, 2, 7)),
    module(
        "nn.Upsample",
        "trilinear",
        lambda nn: nn.Upsample(size=(5, 2, 6), mode="trilinear"),
        f32(1, 2, 3, 4, 5),
    ),
    module("nn.Upsample", "nearest_3d", lambda nn: nn.Upsample(scale_factor=(1, 2, 3)), f32(1, 2, 2, 3, 2)),
    module(
        "nn.UpsamplingNearest2d", "factor", lambda nn: nn.UpsamplingNearest2d(scale_factor=3), f32(1, 2, 3, 4)
    ),
    module("nn.UpsamplingNearest2d", "size", lambda nn: nn.UpsamplingNearest2d(size=(5, 7)), f32(1, 2, 3, 4)),
    module(
        "nn.UpsamplingBilinear2d",
        "factor",
        lambda nn: nn.UpsamplingBilinear2d(scale_factor=2),
        f32(1, 2, 3, 4),
    ),
    module(
        "nn.UpsamplingBilinear2d", "size", lambda nn: nn.UpsamplingBilinear2d(size=(5, 7)), f32(1, 2, 3, 4)
    ),
    function(
        "F.interpolate",
        "nearest_exact",
        lambda t, x: t.nn.functional.interpolate(x, size=(3, 9), mode="nearest-exact"),
        f32(1, 2, 7, 6),
    ),
    function(
        "F.upsample",
        "trilinear",
        lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.5, mode="trilinear"),
        f32(1, 2, 3, 4, 5),
    ),
    function(
        "F.upsample",
        "bilinear",
        lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.5, mode="bilinear"),
        f32(1, 2, 5, 6),
    ),
    function(
        "F.upsample_nearest",
        "factor",
        lambda t, x: t.nn.functional.interpolate(x, scale_factor=2),
        f32(1, 2, 5, 6),
    ),
    function(
        "F.upsample_nearest",
        "size",
        lambda t, x: t.nn.functional.interpolate(x, size=(4, 11)),
        f32(1, 2, 5, 6),
    ),
    function(
        "F.upsample",
        "bicubic",
        lambda t, x: t.nn.functional.interpolate(x, size=(4, 11), mode="bicubic", align_corners=True),
        f32(1, 2, 5, 6),
    ),
    function(
        "F.upsample",
        "computed_size",
        lambda t, x: t.nn.functional.interpolate(
            x, size=[(t.ceil(t.tensor(x.size(i)) / 4) * 4).to(t.int64) for i in (2, 3)], mode="bilinear"
        ),
        f32(1, 2, 6, 7),
    ),
    function("F.pad", "constant", lambda t, x: t.nn.functional.pad(x, (1, 2, 0, 3), value=1.5), f32(2, 3, 4)),
    function("F.pad", "default_value", lambda t, x: t.nn.functional.pad(x, (2, 2)), f32(1, 5)),
    function("F.pad", "crop", lambda t, x: t.nn.functional.pad(x, (-1, 2, 1, -2)), f32(1, 2, 5, 4)),
    function(
        "F.pad",
        "reflect",
        lambda t, x: t.nn.functional.pad(x, (2, 1, 1, 3), mode="reflect"),
        f32(1, 2, 5, 4),
        also=((f32(2, 2, 6, 5),),),
    ),
    function(
        "F.pad",
        "replicate",
        lambda t, x: t.nn.functional.pad(x, (2, 1, 1, 3, 0, 1), mode="replicate"),
        f32(1, 2, 2, 3, 4),
    ),
    function("F.pad", "circular", lambda t, x: t.nn.functional.pad(x, (2, 1), mode="circular"), f32(2, 2, 5)),
    function("F.pad", "i64", lambda t, x: t.nn.functional.pad(x, (2, 1), value=7), i64(2, 3)),
    module(
        "nn.ZeroPad2d",
        "plain",
        lambda nn: nn.ZeroPad2d((1, 2, 3, 0)),
        f32(1, 2, 4, 3),
        also=((f32(2, 1, 2, 2),),),
    ),
    module("nn.ConstantPad1d", "plain", lambda nn: nn.ConstantPad1d((2, 1), 3.5), f32(1, 2, 4)),
    module("nn.ConstantPad2d", "crop", lambda nn: nn.ConstantPad2d((1, -1, 2, 0), -1), f32(1, 2, 4, 3)),
    module("nn.ConstantPad3d", "plain", lambda nn: nn.ConstantPad3d(1, 0.5), f32(1, 2, 2, 3, 2)),
    module("nn.ReflectionPad1d", "plain", lambda nn: nn.ReflectionPad1d((3, 1)), f32(2, 2, 5)),
    module("nn.ReflectionPad2d", "plain", lambda nn: nn.ReflectionPad2d((3, 1, 0, 2)), f32(1, 2, 4, 5)),
    module("nn.ReplicationPad1d", "plain", lambda nn: nn.ReplicationPad1d((3, 1)), f32(2, 2, 5)),
    module("nn.ReplicationPad2d", "plain", lambda nn: nn.ReplicationPad2d(2), f32(1, 2, 4, 5)),
    module(
        "nn.ReplicationPad3d", "plain", lambda nn: nn.ReplicationPad3d((1, 2, 0, 1, 2, 0)), f32(1, 2, 2, 3, 4)
    ),
    module("nn.ReplicationPad2d", "f64_unbatched", lambda nn: nn.ReplicationPad2d(1), tensor("f64", 2, 3, 4)),
]
