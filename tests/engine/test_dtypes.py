import numpy as np

from engine.dtypes import PNNX_COMPUTE, PNNX_STORAGE, TORCH_DTYPES, pnnx_name, widen


def test_every_type_has_storage_and_compute_dtype() -> None:
    names = ["f32", "f64", "f16", "i32", "i64", "i16", "i8", "u8", "bool", "c64", "c128", "c32", "bf16"]
    assert sorted(PNNX_STORAGE) == sorted(names) == sorted(PNNX_COMPUTE)


def test_names_go_there_and_back() -> None:
    for name, dtype in PNNX_STORAGE.items():
        if name not in ("bf16", "c32"):
            assert pnnx_name(dtype) == name
    assert pnnx_name(np.uint16) == "uint16"


def test_torch_names() -> None:
    assert TORCH_DTYPES["torch.float"] == TORCH_DTYPES["torch.float32"] == np.float32
    assert TORCH_DTYPES["torch.long"] == np.int64
    assert TORCH_DTYPES["torch.bfloat16"] == np.float32


def test_widen() -> None:
    floats = np.array([1, -2.5, np.inf, 0], np.float32)
    np.testing.assert_array_equal(widen((floats.view(np.uint32) >> 16).astype(np.uint16), "bf16"), floats)
    pairs = np.array([(1, 2), (-0.5, 0)], PNNX_STORAGE["c32"])
    np.testing.assert_array_equal(widen(pairs, "c32"), np.array([1 + 2j, -0.5], np.complex64))
    assert widen(floats, "f32") is floats
