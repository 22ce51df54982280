"""Uses of a recurrent layer's outputs as initial hidden or cell states of the next one."""

from engine.binding.argument_binding import argument_names
from engine.model.operator import RuntimeOperator

_STATES = {
    "nn.RNN": {"hx": "h_n"},
    "nn.GRU": {"hx": "h_n"},
    "nn.LSTM": {"hx": "h_n", "cx": "c_n"},
}
"""Type -> argument that is an initial state -> the result that goes there from another layer; in order of arguments."""


def uses_of(operator: RuntimeOperator) -> dict[str, str]:
    """Return for each output that is an initial state the name of the result that it is used as."""
    uses: dict[str, str] = {}
    for operand in operator.outputs:
        names = {
            state
            for consumer in operand.consumers
            if consumer.type in _STATES
            for state in _states_of(consumer, operand.name)
        }
        if len(names) == 1:
            uses[operand.name] = names.pop()
    return uses


def _states_of(consumer: RuntimeOperator, operand: str) -> list[str]:
    """Return the results that an operand may be, as an input of a recurrent layer."""
    states = _STATES[consumer.type]
    named = argument_names(consumer.source)
    if named:
        return [
            states[argument] for argument, name in named.items() if name == operand and argument in states
        ]
    inputs = consumer.source.inputs[1:]
    return [state for state, name in zip(states.values(), inputs, strict=False) if name == operand]
