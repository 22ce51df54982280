"""Shuffles, extremes, norms and what else was compiled for images and sequences alike."""

from typing import Any

from tests.differential.drawing import Drawing
from tests.differential.families.family import family


@family(4, weight=3)
def shuffle(d: Drawing, x: str) -> None:
    _, channels, rows, columns = d.shape(x)
    factor = d.pick((2, 2, 3))
    kind = d.pick(("shuffle", "unshuffle", "channels"))
    if kind == "channels":
        groups = d.pick([count for count in range(1, channels + 1) if channels % count == 0])
        d.add("nn.ChannelShuffle", [x], groups=groups)
    elif kind == "shuffle" and channels % factor**2 == 0:
        name = d.pick(("nn.PixelShuffle", "F.pixel_shuffle"))
        d.add(name, [x], named=name[0] == "F", upscale_factor=factor)
    elif rows % factor == 0 == columns % factor:
        name = d.pick(("nn.PixelUnshuffle", "F.pixel_unshuffle"))
        d.add(name, [x], named=name[0] == "F", downscale_factor=factor)


@family(weight=3)
def extreme(d: Drawing, x: str) -> None:
    axis = d.number(0, d.rank(x) - 1)
    kind = d.pick(("torch.amax", "torch.amin", "torch.max", "torch.min", "torch.var", "torch.norm"))
    if kind in ("torch.amax", "torch.amin"):
        d.add(kind, [x], named=True, dim=(axis,), keepdim=d.chance(0.5))
    elif kind in ("torch.max", "torch.min"):
        if d.chance(0.5):
            d.add(kind, [x], named=True)
        else:
            d.add(kind, [x], gives=2, named=True, dim=axis, keepdim=d.chance(0.5))
    elif kind == "torch.var" and d.shape(x)[axis] > 1:
        d.add(kind, [x], named=True, dim=(axis,), keepdim=d.chance(0.5), unbiased=d.chance(0.5))
    elif kind == "torch.norm":
        d.add(kind, [x], named=True, dim=(axis,), keepdim=d.chance(0.5), p=d.pick((2, 1, "fro")))


@family(weight=3)
def scale(d: Drawing, x: str) -> None:
    rank, shape = d.rank(x), d.shape(x)
    kind = d.pick(("F.normalize", "rms_norm", "softmin", "clamp", "glu", "log_softmax", "softmax2d"))
    if kind == "F.normalize":
        d.add(kind, [x], named=True, dim=(d.number(0, rank - 1),), eps=1e-12, p=d.pick((2.0, 1.0)))
    elif kind == "rms_norm":
        last = shape[-1:]
        if d.chance(0.3):
            d.add("F.rms_norm", [x, d.constant(last)], eps=1e-6, normalized_shape=last)
        else:
            given: dict[str, Any] = {"elementwise_affine": True, "eps": 1e-6, "normalized_shape": last}
            d.add("nn.RMSNorm", [x], weights={"weight": last}, **given)
    elif kind == "softmin":
        name = d.pick(("nn.Softmin", "F.softmin"))
        d.add(name, [x], named=name[0] == "F", dim=d.number(0, rank - 1))
    elif kind == "log_softmax":
        d.add("nn.LogSoftmax", [x], dim=d.number(0, rank - 1))
    elif kind == "softmax2d" and rank in (3, 4):
        d.add("nn.Softmax2d", [x])
    elif kind == "clamp":
        low, high = d.pick(((-0.5, 0.75), (0.1, None), (None, 0.3)))
        d.add("torch.clamp", [x], named=True, min=low, max=high)
    elif kind == "glu":
        name = d.pick(("nn.GLU", "F.glu"))
        axes = [axis for axis in range(rank) if shape[axis] % 2 == 0]
        if axes:
            d.add(name, [x], named=name[0] == "F", dim=d.pick(axes))


@family(3, 4, weight=3)
def normalise_image(d: Drawing, x: str) -> None:
    rank, channels = d.rank(x), d.shape(x)[1]
    kind = d.pick(("instance", "instance", "local"))
    if kind == "local":
        name = d.pick(("nn.LocalResponseNorm", "F.local_response_norm"))
        given: dict[str, Any] = {"size": d.number(1, 5), "alpha": 0.01, "beta": 0.75, "k": 1.0}
        d.add(name, [x], named=name[0] == "F", **given)
    elif d.chance(0.3):
        d.add("F.instance_norm", [x], named=True, eps=1e-5)
    else:
        affine, tracks = d.chance(0.5), d.chance(0.3)
        weights = {"weight": (channels,), "bias": (channels,)} if affine else {}
        weights |= {"running_mean": (channels,), "running_var": (channels,)} if tracks else {}
        d.add(
            f"nn.InstanceNorm{rank - 2}d",
            [x],
            weights=weights,
            affine=affine,
            eps=1e-5,
            num_features=channels,
            track_running_stats=tracks,
        )


@family(4, weight=2)
def enlarge(d: Drawing, x: str) -> None:
    """Bilinear resizing by its old names, and modes that are rarer."""
    given: dict[str, Any] = {"size": (d.number(1, 16), d.number(1, 16)), "scale_factor": None}
    if d.chance(0.5):
        given = {"size": None, "scale_factor": (2.0, 2.0)}
    kind = d.pick(("nn.UpsamplingBilinear2d", "F.upsample_bilinear", "F.interpolate", "F.interpolate"))
    if kind == "F.interpolate":
        mode = d.pick(("bicubic", "area", "nearest-exact"))
        corners = d.chance(0.5) if mode == "bicubic" else None
        given |= {"align_corners": corners, "mode": mode, "recompute_scale_factor": None}
    d.add(kind, [x], named=kind == "F.interpolate", **given)
