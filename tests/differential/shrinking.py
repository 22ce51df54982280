"""Makes a failing case smaller, as long as it goes on to fail.

Each step proposes simpler cases: another end, a tensor in place of what computes it, an operator left out, an extent
made smaller wherever it stands. Most of them are no graphs at all; then they do not fail either, and are dropped.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from engine import KuiperError
from engine.model.operator import INPUT, OUTPUT
from engine.spec import TensorSpec
from tests.differential.case import GraphCase, Line, Shape, spell
from tests.differential.inference import infer_all

Fails = Callable[[GraphCase], bool]
_NUMBER = re.compile(r"(?<![\w.?])\d+(?![\w.])")
_PLAIN = {"padding": "(0,0)", "stride": "(1,1)", "dilation": "(1,1)", "output_padding": "(0,0)"}


def shrink(case: GraphCase, fails: Fails, most: int = 400) -> GraphCase:
    """Return the smallest case found that still fails, trying at most so many."""
    tried: set[str] = set()
    found = True
    while found:
        found = False
        for smaller in proposals(case):
            text = str(smaller)
            if text in tried:
                continue
            if len(tried) >= most:
                return case
            tried.add(text)
            if fails(smaller):
                case, found = smaller, True
                break
    return case


def proposals(case: GraphCase) -> Iterator[GraphCase]:
    """Yield simpler cases, those that leave out most first."""
    for run in case.runs if len(case.runs) > 1 else ():
        yield replace(case, runs=(run,))
    if len(case.runs) > 1:
        return
    yield from _other_ends(case)
    yield from _cuts(case)
    yield from _bypasses(case)
    yield from _plain_words(case)
    yield from _smaller_extents(case)


def pruned(case: GraphCase, outputs: tuple[str, ...]) -> GraphCase:
    """Return a case whose graph ends in given operands, without what they do not need."""
    needed, kept = set(outputs), []
    for line in reversed(case.operators):
        if needed.intersection(line.outputs):
            needed.update(line.inputs)
            kept.append(line)
    inputs, runs = list(case.inputs), [list(shapes) for shapes in case.runs]
    for place in reversed(range(len(inputs))):
        if inputs[place].outputs[0] not in needed:
            del inputs[place]
            for shapes in runs:
                del shapes[place]
    ends = [Line(OUTPUT, f"out{place}", (name,), ()) for place, name in enumerate(outputs)]
    lines = (*inputs, *reversed(kept), *ends)
    return replace(case, lines=lines, runs=tuple(map(tuple, runs)))


def _other_ends(case: GraphCase) -> Iterator[GraphCase]:
    """Yield the graph up to each operand, and with one output fewer."""
    outputs = case.outputs
    for name in [name for line in case.operators for name in line.outputs]:
        if outputs != (name,):
            yield pruned(case, (name,))
    if len(outputs) > 1:
        for place in range(len(outputs)):
            yield pruned(case, outputs[:place] + outputs[place + 1 :])


def _cuts(case: GraphCase) -> Iterator[GraphCase]:
    """Yield the graph from each operand on, which becomes an input."""
    try:
        specs = infer_all(case, 0)
    except KuiperError:
        return
    for line in reversed(case.operators):
        for name in line.outputs:
            spec = specs.get(name)
            if isinstance(spec, TensorSpec) and spec.dtype.name == "float32":
                yield _cut(case, line, name, spec.shape)


def _cut(case: GraphCase, line: Line, name: str, shape: Shape) -> GraphCase:
    fresh = f"cut_{name}"
    source = Line(INPUT, f"in_{name}", (), (fresh,), (f"#{fresh}={spell(shape)}f32",))
    lines = [other.reading({name: fresh}) for other in case.lines]
    place = len(case.inputs)
    ordered = [*(x for x in lines if x.type == INPUT), source, *(x for x in lines if x.type != INPUT)]
    runs = tuple((*shapes[:place], shape) for shapes in case.runs)
    smaller = replace(case, lines=tuple(ordered), runs=runs)
    return pruned(smaller, smaller.outputs)


def _bypasses(case: GraphCase) -> Iterator[GraphCase]:
    """Yield the graph without each operator, an input of it in place of what it gives."""
    for line in case.operators:
        for source in dict.fromkeys(line.inputs):
            names = dict.fromkeys(line.outputs, source)
            lines = tuple(other.reading(names) for other in case.lines if other is not line)
            smaller = replace(case, lines=lines)
            yield pruned(smaller, smaller.outputs)


def _plain_words(case: GraphCase) -> Iterator[GraphCase]:
    for place, line in enumerate(case.lines):
        for at, word in enumerate(line.words):
            key, _, value = word.partition("=")
            if key in _PLAIN and value != _PLAIN[key] and len(value) == len(_PLAIN[key]):
                words = (*line.words[:at], f"{key}={_PLAIN[key]}", *line.words[at + 1 :])
                lines = (*case.lines[:place], replace(line, words=words), *case.lines[place + 1 :])
                yield replace(case, lines=lines)


def _smaller_extents(case: GraphCase) -> Iterator[GraphCase]:
    """Yield cases in which an extent is smaller wherever it stands, or along one axis of one input."""
    extents = {extent for shapes in case.runs for shape in shapes for extent in shape}
    extents |= {e for line in case.lines for _, shape, _ in line.attributes() for e in shape}
    for extent in sorted(extents, reverse=True):
        for smaller in dict.fromkeys((1, extent // 2, extent * 3 // 4, extent - 1)):
            if 0 < smaller < extent:
                yield _renumbered(case, extent, smaller)
    for place, shape in enumerate(case.runs[0]):
        for axis, extent in enumerate(shape):
            for smaller in dict.fromkeys((1, extent // 2, extent * 3 // 4, extent - 1)):
                if 0 < smaller < extent:
                    yield _with_extent(case, place, axis, smaller)


def _renumbered(case: GraphCase, extent: int, smaller: int) -> GraphCase:
    def change(text: str) -> str:
        return _NUMBER.sub(lambda found: str(smaller) if int(found[0]) == extent else found[0], text)

    lines = []
    for line in case.lines:
        words = []
        for word in line.words:
            key, sign, value = word.partition("=")
            keeps = key.startswith("$") or key in ("expr", "stride", "dilation", "eps")
            body, dtype = (value, "") if not key.startswith(("@", "#")) else _split_type(value)
            words.append(word if keeps else f"{key}{sign}{change(body)}{dtype}")
        lines.append(replace(line, words=tuple(words)))
    runs = tuple(tuple(tuple(smaller if e == extent else e for e in s) for s in run) for run in case.runs)
    return replace(case, lines=tuple(lines), runs=runs)


def _split_type(value: str) -> tuple[str, str]:
    end = value.index(")") + 1
    return value[:end], value[end:]


def _with_extent(case: GraphCase, place: int, axis: int, extent: int) -> GraphCase:
    shapes = [list(shape) for shape in case.runs[0]]
    shapes[place][axis] = extent
    source = case.inputs[place]
    name = source.outputs[0]
    dtype = _split_type(source.words[0])[1]
    reported = replace(source, words=(f"#{name}={spell(tuple(shapes[place]))}{dtype}",))
    lines = tuple(reported if line is source else line for line in case.lines)
    return replace(case, lines=lines, runs=(tuple(map(tuple, shapes)),))
