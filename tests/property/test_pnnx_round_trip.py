"""Any graph that the format can express is read back as it was written."""

import math
import re
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.pnnx import Attribute, Graph, Operator, ParameterValue, TensorType, read, write
from engine.pnnx.parameter import format_value, parse_value, same_value
from engine.pnnx.tensor_type import ELEMENT_SIZES, byte_count

words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\v\f\0"), min_size=1, max_size=8
)
keys = words.map(lambda word: word.replace("=", "_")).filter(lambda word: word[0] not in "@$#")
types = words.filter(lambda word: not word.startswith("#"))
integers = st.integers(-(2**63), 2**63 - 1)
reals = st.floats(allow_nan=False) | st.just(math.nan)
complexes = st.complex_numbers(allow_nan=False)
strings = words.filter(lambda word: isinstance(parse_value("key", word), str))
elements = words.map(lambda word: "".join("_" if char in ",()[]%=" else char for char in word))
values: st.SearchStrategy[ParameterValue] = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    reals,
    complexes,
    strings,
    st.lists(integers, min_size=1, max_size=4).map(tuple),
    st.lists(reals, min_size=1, max_size=4).map(tuple),
    st.lists(complexes, min_size=1, max_size=4).map(tuple),
    st.lists(elements, min_size=1, max_size=4)
    .map(tuple)
    .filter(lambda value: isinstance(parse_value("key", f"({','.join(value)})"), tuple))
    .filter(lambda value: same_value(parse_value("key", f"({','.join(value)})"), value)),
)
dtypes = st.sampled_from(sorted(ELEMENT_SIZES))


@st.composite
def attributes(draw: st.DrawFn) -> Attribute:
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    dtype = draw(dtypes)
    size = byte_count(shape, dtype)
    data = draw(st.binary(min_size=size, max_size=size))
    return Attribute(shape, dtype, bytes(byte & 1 for byte in data) if dtype == "bool" else data)


@st.composite
def tensor_types(draw: st.DrawFn) -> TensorType:
    shape = tuple(draw(st.lists(st.none() | st.integers(0, 2**15), max_size=4)))
    names = st.none() | elements
    unknown = [axis for axis, extent in enumerate(shape) if extent is None]
    symbols = ((axis, draw(names)) for axis in unknown)
    return TensorType(shape, draw(dtypes), tuple((axis, name) for axis, name in symbols if name is not None))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    operators: list[Operator] = []
    names = draw(st.lists(words.map(lambda word: word.replace(".", "_")), max_size=4, unique=True))
    operands = draw(st.lists(words, min_size=len(names), max_size=2 * len(names), unique=True))
    for index, name in enumerate(names):
        outputs = operands[index :: len(names)]
        inputs = draw(st.lists(st.sampled_from(operands), max_size=3))
        known = st.dictionaries(keys, st.sampled_from(inputs), max_size=2) if inputs else st.just({})
        params = draw(st.dictionaries(keys.filter(lambda key: key != "expr"), values, max_size=4))
        params |= {"expr": draw(words)} if draw(st.booleans()) else {}
        attrs = draw(
            st.dictionaries(words.map(lambda word: word.replace(".", "_")), attributes(), max_size=3)
        )
        operators.append(Operator(draw(types), name, inputs, outputs, params, attrs, draw(known)))
    used = [operand for operator in operators for operand in (*operator.inputs, *operator.outputs)]
    return Graph(operators, {operand: draw(st.none() | tensor_types()) for operand in dict.fromkeys(used)})


@given(graphs())
@settings(max_examples=40)
def test_a_graph_reads_back_as_it_was_written(graph: Graph) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "m.param"), Path(folder, "m.bin")
        write(graph, *paths)
        copy = read(*paths)
        assert copy == graph
        assert list(copy.operands) == list(graph.operands)
        for found, wanted in zip(copy.operators, graph.operators, strict=True):
            assert list(found.params) == list(wanted.params)
            assert all(same_value(found.params[key], wanted.params[key]) for key in wanted.params)
        first = paths[0].read_bytes(), paths[1].read_bytes()
        write(copy, *paths)
        assert (paths[0].read_bytes(), paths[1].read_bytes()) == first


@given(values)
@settings(max_examples=200)
def test_a_parameter_reads_back_with_its_type(value: ParameterValue) -> None:
    assert same_value(parse_value("key", format_value("key", value)), value)


@given(keys, st.text(max_size=20))
@settings(max_examples=200)
def test_any_text_is_a_value_or_too_large(key: str, text: str) -> None:
    try:
        value = parse_value(key, text)
    except ValueError:
        assert any(len(number) >= 19 for number in re.findall(r"[0-9]+", text))
    else:
        assert same_value(parse_value(key, text), value)
