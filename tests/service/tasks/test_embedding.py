from typing import Any

import numpy as np
import pytest

from engine import Array, Port
from service.config.model_config import ModelConfig, ModelConfigError
from service.errors import ServiceError
from service.tasks import TaskModel
from service.tasks.embedding import MAX_COMPARED, Embedding, VectorEmbedding


def task(shape: tuple[int | None, ...] | None = None, **keys: Any) -> VectorEmbedding:
    config = ModelConfig.model_validate({"task": "embedding", "embedding": keys})
    return VectorEmbedding(TaskModel(config, [], [Port("out0", "1", shape, "f32")]))


def embedded(model: VectorEmbedding, output: Array, **parameters: Any) -> list[Embedding]:
    return [one for (one,) in model.predict([output], (), parameters)]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_vectors_of_length_1_and_their_cosines() -> None:
    first, second = embedded(task(), np.array([[3, 4], [4, -3]], np.float32))
    np.testing.assert_allclose(first.vector, [0.6, 0.8])
    np.testing.assert_allclose(second.vector, [0.8, -0.6])
    assert (first.norm, second.norm) == (5, 5)
    np.testing.assert_allclose([first.cosines or (), second.cosines or ()], [[1, 0], [0, 1]], atol=1e-12)


def test_one_item_is_compared_with_nothing() -> None:
    (one,) = embedded(task(), numbers(1, 4))
    assert one.cosines is None
    many = embedded(task(), numbers(MAX_COMPARED + 1, 4))
    assert all(item.cosines is None for item in many)


def test_vectors_as_they_are() -> None:
    output = numbers(2, 5)
    for model, parameters in ((task(normalise=False), {}), (task(), {"normalise": False})):
        found = embedded(model, output, **parameters)
        np.testing.assert_array_equal([one.vector for one in found], output)
    lengths = np.linalg.norm(
        [one.vector for one in embedded(task(normalise=False), output, normalise=True)], axis=1
    )
    np.testing.assert_allclose(lengths, 1)


@pytest.mark.parametrize("pooling", ["mean", "max", "first"])
@pytest.mark.parametrize("shape", [(2, 6, 5), (2, 5, 2, 3)])
def test_pooling(pooling: str, shape: tuple[int, ...]) -> None:
    output = numbers(*shape)
    positions = output if len(shape) == 3 else np.moveaxis(output, 1, -1).reshape(2, 6, 5)
    expected = {"mean": positions.mean(1), "max": positions.max(1), "first": positions[:, 0]}[pooling]
    found = embedded(task(shape, pooling=pooling, normalise=False), output)
    np.testing.assert_allclose([one.vector for one in found], expected, rtol=1e-6)


def test_as_pytorch_pools_and_normalises() -> None:
    torch = pytest.importorskip("torch")
    output = torch.from_numpy(numbers(3, 8, 4, 4))
    pooled = torch.nn.functional.adaptive_avg_pool2d(output, 1).flatten(1)
    expected = torch.nn.functional.normalize(pooled)
    found = embedded(task(pooling="mean"), output.numpy())
    np.testing.assert_allclose([one.vector for one in found], expected.numpy(), atol=1e-6)
    cosines = torch.nn.functional.cosine_similarity(pooled[None], pooled[:, None], dim=2)
    np.testing.assert_allclose([one.cosines or () for one in found], cosines.numpy(), atol=1e-6)


def test_trailing_dimensions_of_1() -> None:
    (one,) = embedded(task((None, 4, 1, 1)), numbers(1, 4, 1, 1))
    assert len(one.vector) == 4


def test_vectors_without_a_direction_are_said() -> None:
    output = np.array([[0, 0], [1, 0], [np.nan, 1]], np.float32)
    found = task().predict([output], (), {})
    assert "item 0, 2 of the batch" in (task().remark(found) or "")
    assert np.isnan(found[1][0].cosines or ())[[0, 2]].all()
    assert task().remark(found[1:2]) is None


@pytest.mark.parametrize(
    ("shape", "keys", "key"),
    [
        ((None, 4, 7, 7), {}, "embedding.pooling"),
        ((None, 4), {"pooling": "mean"}, "embedding.pooling"),
        ((None, 4), {"output": "x"}, "embedding.output"),
    ],
)
def test_models_that_do_not_fit(shape: tuple[int | None, ...], keys: dict[str, Any], key: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        task(shape, **keys)
    assert caught.value.key == key


@pytest.mark.parametrize("shape", [(3,), (1, 4, 2), (1, 0)])
def test_outputs_of_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ServiceError) as caught:
        embedded(task(), np.zeros(shape, np.float32))
    assert (caught.value.status, caught.value.code) == (422, "no_vector")
