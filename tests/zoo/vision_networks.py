"""Networks of timm, Ultralytics and segmentation-models-pytorch, with weights from a seed."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.zoo.building import import_torchvision
from tests.zoo.network import Network, pictures


def _timm(name: str) -> Any:
    import_torchvision()
    import timm

    return timm.create_model(name, pretrained=False)


def _ultralytics(name: str) -> Any:
    import_torchvision()
    from ultralytics import YOLO

    module: Any = YOLO(f"{name}.yaml").model
    module.eval()
    head = module.model[-1]
    head.export, head.format = True, "torchscript"
    return module


def _smp(name: str, encoder: str) -> Any:
    import_torchvision()
    import segmentation_models_pytorch as smp

    return getattr(smp, name)(encoder, encoder_weights=None, classes=5)


def _of(package: str, build: Callable[..., Any], side: int, sides: bool, *arguments: str) -> Network:
    return pictures(package, partial(build, *arguments), side, sides)


_CONVOLUTIONAL = (
    "resnet18",
    "resnet50",
    "resnext50_32x4d",
    "efficientnet_b0",
    "mobilenetv2_100",
    "mobilenetv3_large_100",
    "convnext_tiny",
    "convnextv2_nano",
    "regnety_008",
    "mobileone_s0",
    "poolformer_s12",
    "densenet121",
    "inception_v3",
    "edgenext_small",
    "ghostnet_100",
    "repvgg_a0",
    "res2net50_26w_4s",
    "dla34",
    "hrnet_w18_small",
    "ese_vovnet19b_dw",
    "cspdarknet53",
    "inception_next_tiny",
    "repvit_m1",
)
_FIXED = {
    224: (
        "vgg11", "nest_tiny", "hiera_tiny_224", "volo_d1_224", "levit_128", "swin_tiny_patch4_window7_224",
        "deit_tiny_patch16_224", "vit_small_patch16_224", "maxvit_tiny_tf_224", "coat_lite_tiny", "coatnet_nano_rw_224",
        "pvt_v2_b0", "mixer_s16_224", "gmlp_s16_224", "xcit_nano_12_p16_224", "tnt_s_patch16_224", "cait_xxs24_224",
        "efficientformer_l1", "twins_svt_small", "davit_tiny", "visformer_tiny", "gcvit_xxtiny", "focalnet_tiny_srf",
        "eva02_tiny_patch14_224", "convit_tiny", "pit_xs_224", "mvitv2_tiny", "beitv2_base_patch16_224",
    ),
    240: ("crossvit_tiny_240",),
    256: ("halonet26t", "mobilevit_s", "swinv2_tiny_window8_256", "fastvit_t8", "botnet26t_256", "mobilevitv2_100"),
}  # fmt: skip
_YOLO = {
    224: ("yolov8n-cls", "yolo11n-cls"),
    320: ("yolov5n", "yolov8n", "yolov8n-seg", "yolov8n-pose", "yolov9t", "yolov10n", "yolo11n", "yolo11n-seg",
          "yolo11n-obb", "yolo12n", "yolo26n"),
}  # fmt: skip
_SMP = (
    ("Unet", "resnet18"), ("UnetPlusPlus", "resnet18"), ("FPN", "resnet18"), ("DeepLabV3Plus", "resnet18"),
    ("MAnet", "resnet18"), ("Linknet", "resnet18"), ("PAN", "resnet18"), ("PSPNet", "mobilenet_v2"),
    ("Segformer", "mit_b0"), ("UPerNet", "resnet18"),
)  # fmt: skip

NETWORKS = {
    **{name: _of("timm", _timm, 224, True, name) for name in _CONVOLUTIONAL},
    **{name: _of("timm", _timm, side, False, name) for side, names in _FIXED.items() for name in names},
    **{
        name: _of("ultralytics", _ultralytics, side, False, name)
        for side, names in _YOLO.items()
        for name in names
    },
    **{f"smp-{name.lower()}": _of("smp", _smp, 256, True, name, encoder) for name, encoder in _SMP},
}
