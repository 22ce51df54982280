"""How much the kept runs of `make fuzz` have tried."""

from tests.fuzz.tally import describe, read_tally


def render() -> str:
    """Return the sums, by target."""
    tally = read_tally()
    return "No run is kept in this repository." if tally is None else describe(tally)
