"""Drawings of random graphs keep what a layered drawing promises."""

import random

import pytest

from service.graph.layout import lay_out


@pytest.mark.parametrize("seed", range(8))
def test_consumers_lie_below_and_nothing_overlaps(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randrange(2, 60)
    sizes = [(chance.uniform(20, 200), chance.choice([20.0, 40.0])) for _ in range(count)]
    edges = [
        (chance.randrange(node), node) for node in range(1, count) for _ in range(chance.randrange(1, 3))
    ]
    drawn = lay_out(sizes, edges)
    for producer, consumer in edges:
        lower = drawn.centres[producer][1] + sizes[producer][1] / 2
        assert lower < drawn.centres[consumer][1] - sizes[consumer][1] / 2
    boxes = [
        (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        for (x, y), (w, h) in zip(drawn.centres, sizes, strict=True)
    ]
    for place, (left, top, right, bottom) in enumerate(boxes):
        assert left >= 0
        assert top >= 0
        assert right <= drawn.width
        assert bottom <= drawn.height
        for other in boxes[:place]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    for (producer, consumer), path in zip(edges, drawn.paths, strict=True):
        assert path[0][0] == drawn.centres[producer][0]
        assert path[-1][0] == drawn.centres[consumer][0]
        assert [y for _, y in path] == sorted(y for _, y in path)


def test_a_chain_is_a_straight_line() -> None:
    drawn = lay_out([(50.0, 20.0)] * 5, [(node, node + 1) for node in range(4)])
    assert len({x for x, _ in drawn.centres}) == 1


def test_no_node_at_all() -> None:
    assert lay_out([], []).centres == []


def test_a_long_edge_goes_around() -> None:
    drawn = lay_out([(50.0, 20.0)] * 5, [*((node, node + 1) for node in range(4)), (0, 4)])
    assert len(drawn.paths[-1]) == 5


def test_of_an_edge_beyond_many_ranks_the_ends_remain() -> None:
    nodes = 40
    drawn = lay_out([(50.0, 20.0)] * nodes, [*((n, n + 1) for n in range(nodes - 1)), (0, 20), (0, 39)])
    assert drawn.stubs[-2:] == [False, True]
    assert (len(drawn.paths[-2]), len(drawn.paths[-1])) == (21, 2)


def test_bends_of_dense_graphs_are_bounded() -> None:
    nodes = 200
    edges = [(upper, lower) for lower in range(nodes) for upper in range(max(0, lower - 20), lower)]
    drawn = lay_out([(50.0, 20.0)] * nodes, edges)
    assert sum(len(path) - 2 for path in drawn.paths) <= 2 * nodes
    assert drawn.stubs.count(False) >= nodes - 1


def test_lines_that_need_not_cross_do_not() -> None:
    drawn = lay_out([(50.0, 20.0)] * 6, [(0, 5), (1, 4), (2, 3)])
    places = [drawn.centres[node][0] for node in range(6)]
    assert sorted(range(3), key=places.__getitem__) == [
        5 - n for n in sorted((3, 4, 5), key=places.__getitem__)
    ]
