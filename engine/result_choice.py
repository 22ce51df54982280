"""Decides which results the outputs of an operator are, where the exporter writes any of them in any order.

It writes nn.LSTM with one output whether a model uses the output, the hidden or the cell state, and numbers operands
anew; two outputs come in the order in which the model uses them first. So a file may have several readings:

1. `outputs=h_n,c_n` among the operator's parameters, which a user adds, says which one is meant.
2. Else only readings that fit the declared types are left, and of those the ones that make states initial states of the
   next layer, a hidden one as hidden and a cell state as cell state, where the operands go there.
3. If all that are left give the same values, they are as good as each other, at these shapes.
4. Else the one in the order in which the exporter writes PyTorch's results is taken, if there is just one.
5. Else, if they differ in one output only and that is a state, it is taken for the hidden one: models that go on with
   the hidden state alone are common, and ones that go on with the cell state alone are not.
6. Else the graph is not built: any choice could be a wrong answer.

What follows from the types alone goes without saying; every other choice is said in a warning.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from engine.errors import BuildError, LayerError, ParameterError, describe_problem
from engine.pnnx import Operator, TensorType
from engine.pnnx.tensor_type import format_tensor_type
from engine.results import ResultPlaces, Results, Traits, fits
from engine.spec import Spec

_STATES = ("h_n", "c_n", "Y_h", "Y_c")
"""Names of states among results, PyTorch's and ONNX's."""
PARAMETER = "outputs"
"""The parameter by which a file says which results an operator's outputs are, by name: `outputs=output,c_n`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of an operator's outputs.

    Attributes:
        types: what the file declares of each.
        results: what the layer gives for inputs of the declared types, open extents taken as two different numbers.
        traits: what is known of the results; None where the file does not declare the inputs.
        uses: operand -> name of the result that it is used as.
    """

    types: Sequence[TensorType | None]
    results: tuple[Sequence[Spec], Sequence[Spec]] | None
    traits: Traits | None
    uses: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ResultChoice:
    """What an operator's outputs are.

    Attributes:
        places: place of a result for each output.
        others: readings that give the same values at the declared shapes, and maybe not at others.
        warning: what a user should know of it, None where it is certain.
    """

    places: ResultPlaces
    others: tuple[ResultPlaces, ...] = ()
    warning: str | None = None


def choose(operator: Operator, results: Results, evidence: Evidence) -> ResultChoice:
    """Decide which results an operator's outputs are.

    Raises:
        ParameterError: `outputs=` names other results than there are, or ones that do not fit the declared types.
        BuildError: there are several readings, and nothing speaks for one.
    """
    place = f"{operator.type} {operator.name}"
    if PARAMETER in operator.params:
        return ResultChoice(_stated(place, operator, results, evidence))
    count = len(operator.outputs)
    natural = tuple(range(len(results.names)))
    if count > len(natural):
        return ResultChoice(tuple(range(count)))  # the layer's shape rule says what is wrong
    traits = evidence.traits or Traits(natural, (natural,))
    fitting = _fitting(list(permutations(natural, count)), evidence)
    used = [reading for reading in fitting if _agrees(reading, operator, results, evidence.uses)] or fitting
    in_order = [reading for reading in used if any(_follows(reading, order) for order in traits.orders)]
    if len(_values(used, traits)) == 1:
        chosen = (in_order or used)[0]
    elif len(_values(in_order, traits)) == 1 or _differ_in_a_state(in_order, results, evidence, traits):
        chosen = in_order[0]
    else:
        raise BuildError(_refusal(place, operator, results, in_order or used))
    same = [reading for reading in used if _values([reading], traits) == _values([chosen], traits)]
    others = tuple(reading for reading in same if reading != chosen)
    warning = _warning(place, operator, results, chosen, used) if len(fitting) > 1 else None
    return ResultChoice(chosen, others, warning)


def check_same(
    operator: Operator, results: Results, given: Sequence[Any], readings: Sequence[ResultPlaces]
) -> None:
    """Check that results which are the same at the declared shapes have one shape here, so are the same still.

    Args:
        operator: the operator.
        results: its layer's results by name.
        given: the results, or their specs.
        readings: what the operator's outputs may be.

    Raises:
        LayerError: they differ.
    """
    for operand, *places in zip(operator.outputs, *readings, strict=True):
        shapes = {given[place].shape: results.names[place] for place in places}
        if len(shapes) > 1:
            place = f"{operator.type} {operator.name}, operand {operand!r}"
            problem = (
                f"may be {' or '.join(shapes.values())}, which are the same at the declared shapes only; "
                f"here they are {' and '.join(map(str, shapes))}"
            )
            raise LayerError(
                describe_problem(place, problem, f"{PARAMETER}=… on its line of the .param file, to tell")
            )


def _stated(place: str, operator: Operator, results: Results, evidence: Evidence) -> ResultPlaces:
    """Return what the parameter says."""
    value = operator.params[PARAMETER]
    names = value.split(",") if isinstance(value, str) else value
    expected = f"{len(operator.outputs)} of {', '.join(results.names)}"
    where = f"{place}, parameter {PARAMETER!r}"
    if not isinstance(names, list | tuple) or not set(results.names).issuperset(names):
        raise ParameterError(describe_problem(where, f"is {value!r}", expected))
    if len(names) != len(operator.outputs) or len(set(names)) != len(names):
        raise ParameterError(describe_problem(where, f"names {len(set(names))} results", expected))
    places = tuple(results.names.index(str(name)) for name in names)
    if evidence.results is not None:
        for operand, result, known in zip(operator.outputs, places, evidence.types, strict=True):
            if not fits(evidence.results[0][result], known):
                problem = f"operand {operand!r} cannot be {results.names[result]}: the file declares {_declared(known)}"
                raise ParameterError(describe_problem(where, problem, f"{evidence.results[0][result]}"))
    return places


def _fitting(readings: list[ResultPlaces], evidence: Evidence) -> list[ResultPlaces]:
    """Return the readings that the declared types allow; all, where none is."""
    if evidence.results is None:
        return readings
    first, second = evidence.results
    exact = [
        r for r in readings if all(map(fits, (first[p] for p in r), evidence.types, (second[p] for p in r)))
    ]
    return exact or [r for r in readings if all(map(fits, (first[p] for p in r), evidence.types))] or readings


def _agrees(reading: ResultPlaces, operator: Operator, results: Results, uses: Mapping[str, str]) -> bool:
    named = zip(operator.outputs, reading, strict=True)
    return all(uses.get(operand, results.names[place]) == results.names[place] for operand, place in named)


def _follows(reading: ResultPlaces, order: ResultPlaces) -> bool:
    """Tell whether a reading is what is left of an order when some results are dropped."""
    left: Iterator[int] = iter(order)
    return all(place in left for place in reading)


def _differ_in_a_state(
    readings: Sequence[ResultPlaces], results: Results, evidence: Evidence, traits: Traits
) -> bool:
    """Tell whether readings that types allow differ in one output only, a state, and the first has no value twice."""
    if evidence.results is None or not readings:
        return False
    differing = [set(places) for places in zip(*readings, strict=True) if len(set(places)) > 1]
    (first,) = _values(readings[:1], traits)
    if len(differing) != 1 or len(set(first)) < len(first):
        return False
    states = {traits.values[place] for place in differing[0] if results.names[place] in _STATES}
    return states == {traits.values[place] for place in differing[0]}


def _values(readings: Sequence[ResultPlaces], traits: Traits) -> set[ResultPlaces]:
    return {tuple(traits.values[place] for place in reading) for reading in readings}


def _refusal(place: str, operator: Operator, results: Results, readings: Sequence[ResultPlaces]) -> str:
    spelled = [_spell(reading, results) for reading in readings]
    outputs = ", ".join(map(repr, operator.outputs))
    problem = (
        f"its outputs {outputs} may be {' or '.join(spelled)}; the exporter does not write which it keeps"
    )
    return describe_problem(
        place, problem, f"{PARAMETER}={f' or {PARAMETER}='.join(spelled)} on its line of the .param file"
    )


def _warning(
    place: str, operator: Operator, results: Results, chosen: ResultPlaces, readings: Sequence[ResultPlaces]
) -> str:
    outputs, spelled = ", ".join(map(repr, operator.outputs)), _spell(chosen, results)
    others = " or ".join(_spell(reading, results) for reading in readings if reading != chosen)
    which = f", and not for {others}" if others else ""
    return (
        f"{place}: its outputs {outputs} are taken for {spelled}{which}, which shapes alone do not tell; "
        f"write {PARAMETER}={spelled} on its line of the .param file to confirm it, or what they are instead"
    )


def _declared(known: TensorType | None) -> str:
    return "nothing" if known is None else format_tensor_type(known)


def _spell(reading: ResultPlaces, results: Results) -> str:
    return ",".join(results.names[place] for place in reading)
