import numpy as np

from tests.zoo.network import Input, Network, padded, pictures


def test_sizes_of_inputs() -> None:
    text = Input("?,128?:i64", 30522)
    assert (text.fixed, text.shape) == ("1,128:i64", (1, 128))
    assert Input("?,3,224?,224?").fixed == "1,3,224,224"
    assert Input("2?,80,3000").shape == (2, 80, 3000)


def test_ids_are_of_the_whole_vocabulary_and_numbers_of_both_signs() -> None:
    inputs = (Input("?,128?:i64", 30522), Input("?,128?:i64", is_mask=True), Input("?,3"))
    network = Network("transformers", dict, inputs, ())
    ids, mask, numbers = network.arrays([(20, 300), (20, 300), (20, 3)])
    assert ids.min() < 50
    assert 30470 < ids.max() < 30522
    assert (mask.dtype, numbers.dtype) == (np.dtype("int64"), np.dtype("float32"))
    assert numbers.min() < 0 < numbers.max()
    assert all(np.array_equal(*pair) for pair in zip(network.arrays(), network.arrays(), strict=True))


def test_pictures_differ_from_place_to_place() -> None:
    picture = pictures("timm", dict, 224, sides=True).arrays([(2, 3, 160, 200)])[0]
    assert (picture.shape, picture.dtype) == ((2, 3, 160, 200), np.dtype("float32"))
    assert picture[:, :, :32, :32].mean((2, 3)).std() > 0.5


def test_masks_pad_at_both_ends() -> None:
    assert padded((2, 12)).tolist() == [[1] * 9 + [0] * 3, [0] * 4 + [1] * 8]


def test_pictures_are_checked_at_three_shapes() -> None:
    assert pictures("timm", dict, 224).shapes == (
        ((1, 3, 224, 224),),
        ((2, 3, 224, 224),),
        ((5, 3, 224, 224),),
    )
    network = pictures("timm", dict, 224, sides=True)
    assert network.inputs[0].spec == "?,3,224?,224?"
    assert network.shapes == (((1, 3, 224, 224),), ((2, 3, 160, 256),), ((5, 3, 352, 128),))
