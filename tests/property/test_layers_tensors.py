"""Layers that shape, pick, reduce, create and transform tensors: no call makes them fail but with an engine error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.layer_calls import calls, check_call, types_of

FAMILIES = types_of(
    "arranging",
    "casting",
    "comparison",
    "creation",
    "elementwise",
    "extremes",
    "fourier",
    "indexing",
    "joining",
    "random",
    "reduction",
    "shape",
    "slicing",
    "spectrogram",
    "stft",
    "vectors",
)
DATA_MATTERS = {
    "Tensor.index",
    "Tensor.index_put",
    "torch.as_strided",
    "torch.gather",
    "torch.index_select",
    "torch.istft",
    "torch.repeat_interleave",
    "torch.scatter_add",
    "torchaudio.functional.inverse_spectrogram",
}
"""Layers that may refuse values, such as an index out of range, where shapes and dtypes are in order."""


@pytest.mark.parametrize("family", sorted(FAMILIES))
@given(data=st.data())
def test_any_call_runs_or_fails_cleanly(family: str, data: st.DataObject) -> None:
    call = data.draw(calls(FAMILIES[family]))
    check_call(call, data_matters=call.operator.type in DATA_MATTERS)
