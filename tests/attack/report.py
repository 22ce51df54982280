"""The table that `make attack` prints."""

from collections.abc import Sequence

from tests.attack.measurement import Measurement

_HEAD = (
    "attack",
    "size",
    "sent",
    "RSS at rest / peak / after, MB",
    "livez p50 / p99, ms",
    "honest p99 idle / attacked, ms",
    "attacker got",
    "exceeds",
)


def markdown(measurements: Sequence[Measurement]) -> str:
    """Return the table of some attacks."""
    rows = [_HEAD, tuple("---" for _ in _HEAD), *map(_row, measurements)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(of: Measurement) -> tuple[str, ...]:
    memory = " / ".join(f"{size / 1e6:.0f}" for size in (of.rest, of.peak, of.after))
    livez = f"{1e3 * of.livez.percentile(50):.0f} / {1e3 * of.livez.percentile(99):.0f}"
    honest = f"{1e3 * of.idle.percentile(99):.0f} / {1e3 * of.honest.percentile(99):.0f}"
    replies = ", ".join(f"{count} x {reply}" for reply, count in sorted(of.replies.items())) or "nothing"
    return (
        of.attack.name,
        f"{of.size} {of.attack.unit}",
        _bytes(of.sent),
        memory,
        livez,
        honest + _refused(of),
        replies,
        "; ".join((*of.faults, *of.excesses())) or "-",
    )


def _refused(of: Measurement) -> str:
    """Say how many honest questions got anything but an answer."""
    refused, total = of.honest.refused, of.honest.replies.total()
    return f" ({refused} of {total} refused)" if refused else ""


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
