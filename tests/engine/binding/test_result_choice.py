"""Which results an operator's outputs are, where the exporter writes any in any order."""

import numpy as np
import pytest

from engine import BuildError, pnnx
from engine.binding.result_choice import Evidence, ResultChoice, choose
from engine.binding.results import Results, Traits
from engine.pnnx import TensorType
from engine.spec import TensorSpec

F32 = np.dtype(np.float32)
NAMES = Results(("output", "h_n", "c_n"))
PLAIN = Traits((0, 1, 2), ((0, 1, 2),))
ONE_STEP = Traits((0, 0, 2), ((0, 1, 2),))
ANY_PLACE = Traits((0, 1, 2), ((0, 1, 2), (1, 0, 2), (1, 2, 0)))
LONG, STATE = TensorSpec((5, 2, 4), F32), TensorSpec((1, 2, 4), F32)


def choice(
    *declared: TensorSpec | None,
    traits: Traits = PLAIN,
    results: tuple[TensorSpec, ...] | None = (LONG, STATE, STATE),
    uses: dict[str, str] | None = None,
    **params: str,
) -> ResultChoice:
    names = list("abc"[: len(declared)])
    operator = pnnx.Operator("nn.LSTM", "lstm", ["x"], names, dict(params), {}, {})
    types = [None if spec is None else TensorType(spec.shape, "f32") for spec in declared]
    known = None if results is None else (results, results)
    return choose(operator, NAMES, Evidence(types, known, traits, uses or {}))


def test_what_shapes_show_is_certain() -> None:
    assert choice(LONG) == ResultChoice((0,))
    assert choice(LONG, STATE, results=(LONG, STATE, TensorSpec((1, 2, 3), F32))) == ResultChoice((0, 1))


def test_states_come_in_pytorchs_order_with_a_warning() -> None:
    made = choice(STATE, STATE)
    assert (made.places, made.others) == ((1, 2), ())
    assert made.warning is not None
    assert "nn.LSTM lstm: its outputs 'a', 'b' are taken for h_n,c_n" in made.warning
    assert choice(STATE, STATE, LONG, traits=ANY_PLACE).places == (1, 2, 0)


@pytest.mark.parametrize(
    ("declared", "places"), [((STATE,), (1,)), ((LONG, STATE), (0, 1))], ids=["one", "two"]
)
def test_one_of_two_states_is_the_hidden_one_with_a_warning(
    declared: tuple[TensorSpec, ...], places: tuple[int, ...]
) -> None:
    made = choice(*declared)
    assert made.places == places
    assert made.warning is not None
    assert "h_n, and not for " in made.warning
    assert "c_n, which shapes alone do not determine" in made.warning


def test_only_result_of_one_step_is_the_output_with_a_warning() -> None:
    made = choice(STATE, traits=ONE_STEP, results=(STATE,) * 3)
    assert (made.places, made.others) == ((0,), ((1,),))
    assert made.warning is not None
    assert "and not for h_n or c_n" in made.warning


def test_two_results_of_one_step_are_refused() -> None:
    """Not the hidden state twice: nobody keeps the same twice."""
    with pytest.raises(BuildError, match="lstm: its outputs 'a', 'b' may be "):
        choice(STATE, STATE, traits=ONE_STEP, results=(STATE,) * 3)


def test_order_is_no_help_where_the_exporter_keeps_none() -> None:
    unbatched = Traits((0, 0, 2), ANY_PLACE.orders)
    with pytest.raises(BuildError, match="output,h_n,c_n or h_n,output,c_n or h_n,c_n,output"):
        choice(STATE, STATE, STATE, traits=unbatched, results=(STATE,) * 3)
    assert choice(STATE, STATE, STATE, traits=ONE_STEP, results=(STATE,) * 3).places == (0, 1, 2)


def test_results_that_are_the_same_are_as_good_as_each_other() -> None:
    made = choice(STATE, traits=ONE_STEP, results=(STATE, STATE, LONG))
    assert (made.places, made.others) == ((0,), ((1,),))
    assert made.warning is not None


def test_use_as_initial_state_shows() -> None:
    assert choice(STATE, uses={"a": "c_n"}).places == (2,)
    assert choice(STATE, STATE, uses={"a": "c_n", "b": "h_n"}).places == (2, 1)
    one_step = choice(STATE, STATE, traits=ONE_STEP, results=(STATE,) * 3, uses={"a": "h_n", "b": "c_n"})
    assert one_step.places == (1, 2)
    assert one_step.warning is not None


def test_use_that_no_reading_agrees_with_is_no_help() -> None:
    assert choice(LONG, uses={"a": "c_n"}).places == (0,)


def test_statement_is_believed() -> None:
    assert choice(STATE, outputs="c_n") == ResultChoice((2,))
    assert choice(STATE, STATE, outputs="c_n,h_n") == ResultChoice((2, 1))


def test_file_without_types_is_believed_where_it_keeps_everything() -> None:
    assert choice(None, None, None, results=None).places == (0, 1, 2)
    with pytest.raises(BuildError, match="output or outputs=h_n or outputs=c_n"):
        choice(None, results=None)
