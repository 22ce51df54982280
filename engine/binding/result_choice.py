"""Choice of the results that an operator's outputs are, as the exporter writes any of them in any order.

It writes nn.LSTM with one output whether a model uses the output, the hidden or the cell state, and renumbers operands;
two outputs are in the order in which the model uses them first. So a file may be ambiguous, and an interpretation of
it, the results that an operator's outputs are, is chosen by these rules:

1. `outputs=h_n,c_n` among the operator's parameters, which a user adds, names the results.
2. Otherwise interpretations must fit the declared types. Of those that do, the ones are preferred by which hidden
   states become initial hidden states of the next layer, and cell states initial cell states.
3. If all that remain give the same values at these shapes, any of them will do.
4. Otherwise the one in which the results are in PyTorch's order is taken, if there is exactly one.
5. Otherwise, if they differ in one output only and that is a state, it is taken to be the hidden state: models that
   use only the hidden state are common, and models that use only the cell state are not.
6. Otherwise the graph is not built: any choice could give wrong results.

A choice that does not follow from the types alone is reported in a warning.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from engine.binding.results import ResultPlaces, Results, Traits, fits
from engine.errors import BuildError, LayerError, ParameterError, describe_problem
from engine.pnnx import Operator, TensorType
from engine.pnnx.tensor_type import format_tensor_type
from engine.spec import Spec

_STATES = ("h_n", "c_n", "Y_h", "Y_c")
"""Names of states among results, PyTorch's and ONNX's."""
PARAMETER = "outputs"
"""The parameter that names the results that an operator's outputs are: `outputs=output,c_n`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence about an operator's outputs.

    Attributes:
        types: declared types.
        results: the layer's results for inputs of the declared types, once for each of two placeholder extents.
        traits: what is known of the results; None where the file does not declare the inputs.
        uses: operand -> name of the result that it is used as.
    """

    types: Sequence[TensorType | None]
    results: tuple[Sequence[Spec], Sequence[Spec]] | None
    traits: Traits | None
    uses: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ResultChoice:
    """The results that an operator's outputs are.

    Attributes:
        places: place of a result for each output.
        others: interpretations that give the same values at the declared shapes, and maybe not at others.
        warning: a warning for the user; None if it is certain.
    """

    places: ResultPlaces
    others: tuple[ResultPlaces, ...] = ()
    warning: str | None = None


def choose(operator: Operator, results: Results, evidence: Evidence) -> ResultChoice:
    """Decide which results an operator's outputs are.

    Raises:
        ParameterError: `outputs=` names other results than there are, or ones that do not fit the declared types.
        BuildError: there are several equally likely interpretations.
    """
    place = f"{operator.type} {operator.name}"
    if PARAMETER in operator.params:
        return ResultChoice(_stated(place, operator, results, evidence))
    count = len(operator.outputs)
    natural = tuple(range(len(results.names)))
    if count > len(natural):
        return ResultChoice(tuple(range(count)))  # the layer's shape rule reports the error
    traits = evidence.traits or Traits(natural, (natural,))
    fitting = _fitting(list(permutations(natural, count)), evidence)
    used = [places for places in fitting if _agrees(places, operator, results, evidence.uses)] or fitting
    in_order = [places for places in used if any(_follows(places, order) for order in traits.orders)]
    if len(_values(used, traits)) == 1:
        chosen = (in_order or used)[0]
    elif len(_values(in_order, traits)) == 1 or _differ_in_a_state(in_order, results, evidence, traits):
        chosen = in_order[0]
    else:
        raise BuildError(_refusal(place, operator, results, in_order or used))
    same = [places for places in used if _values([places], traits) == _values([chosen], traits)]
    others = tuple(places for places in same if places != chosen)
    warning = _warning(place, operator, results, chosen, used) if len(fitting) > 1 else None
    return ResultChoice(chosen, others, warning)


def check_same(
    operator: Operator, results: Results, given: Sequence[Any], interpretations: Sequence[ResultPlaces]
) -> None:
    """Check that results which are the same at the declared shapes have one shape here, so are the same still.

    Args:
        operator: the operator.
        results: its layer's results by name.
        given: the results, or their specs.
        interpretations: what the operator's outputs may be.

    Raises:
        LayerError: they differ.
    """
    for operand, *places in zip(operator.outputs, *interpretations, strict=True):
        shapes = {given[place].shape: results.names[place] for place in places}
        if len(shapes) > 1:
            place = f"{operator.type} {operator.name}, operand {operand!r}"
            problem = (
                f"may be {' or '.join(shapes.values())}, which are the same at the declared shapes only; "
                f"here they are {' and '.join(map(str, shapes))}"
            )
            raise LayerError(
                describe_problem(place, problem, f"{PARAMETER}=… on its line of the .param file")
            )


def _stated(place: str, operator: Operator, results: Results, evidence: Evidence) -> ResultPlaces:
    """Return the results that the parameter names."""
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


def _fitting(interpretations: list[ResultPlaces], evidence: Evidence) -> list[ResultPlaces]:
    """Return the interpretations that the declared types allow; all, where none is."""
    if evidence.results is None:
        return interpretations
    first, second = evidence.results
    exact = [
        r
        for r in interpretations
        if all(map(fits, (first[p] for p in r), evidence.types, (second[p] for p in r)))
    ]
    return (
        exact
        or [r for r in interpretations if all(map(fits, (first[p] for p in r), evidence.types))]
        or interpretations
    )


def _agrees(
    interpretation: ResultPlaces, operator: Operator, results: Results, uses: Mapping[str, str]
) -> bool:
    named = zip(operator.outputs, interpretation, strict=True)
    return all(uses.get(operand, results.names[place]) == results.names[place] for operand, place in named)


def _follows(interpretation: ResultPlaces, order: ResultPlaces) -> bool:
    """Return whether an interpretation is an order without some of its results."""
    left: Iterator[int] = iter(order)
    return all(place in left for place in interpretation)


def _differ_in_a_state(
    interpretations: Sequence[ResultPlaces], results: Results, evidence: Evidence, traits: Traits
) -> bool:
    """Return whether interpretations differ in one output only, a state, and the first has no value twice."""
    if evidence.results is None or not interpretations:
        return False
    differing = [set(places) for places in zip(*interpretations, strict=True) if len(set(places)) > 1]
    (first,) = _values(interpretations[:1], traits)
    if len(differing) != 1 or len(set(first)) < len(first):
        return False
    states = {traits.values[place] for place in differing[0] if results.names[place] in _STATES}
    return states == {traits.values[place] for place in differing[0]}


def _values(interpretations: Sequence[ResultPlaces], traits: Traits) -> set[ResultPlaces]:
    return {tuple(traits.values[place] for place in interpretation) for interpretation in interpretations}


def _refusal(
    place: str, operator: Operator, results: Results, interpretations: Sequence[ResultPlaces]
) -> str:
    spelled = [_spell(interpretation, results) for interpretation in interpretations]
    outputs = ", ".join(map(repr, operator.outputs))
    problem = f"its outputs {outputs} may be {' or '.join(spelled)}; the exporter does not record which"
    return describe_problem(
        place, problem, f"{PARAMETER}={f' or {PARAMETER}='.join(spelled)} on its line of the .param file"
    )


def _warning(
    place: str,
    operator: Operator,
    results: Results,
    chosen: ResultPlaces,
    interpretations: Sequence[ResultPlaces],
) -> str:
    outputs, spelled = ", ".join(map(repr, operator.outputs)), _spell(chosen, results)
    others = " or ".join(
        _spell(interpretation, results) for interpretation in interpretations if interpretation != chosen
    )
    which = f", and not for {others}" if others else ""
    return (
        f"{place}: its outputs {outputs} are taken for {spelled}{which}, which shapes alone do not determine; "
        f"write {PARAMETER}={spelled} on its line of the .param file to confirm it, or what they are instead"
    )


def _declared(known: TensorType | None) -> str:
    return "nothing" if known is None else format_tensor_type(known)


def _spell(interpretation: ResultPlaces, results: Results) -> str:
    return ",".join(results.names[place] for place in interpretation)
