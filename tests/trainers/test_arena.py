"""The arena of sparse vectors holds what was stored, however blocks grow and shrink."""

import numpy as np
import pytest

from structpred.trainers.blocks.arena import Arena
from structpred.trainers.states import flatten, rebuild


@pytest.mark.mostly_slow
@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_random_stores(seed) -> None:
    """After each of many stores all blocks are as a dictionary of arrays has them; memory stays within a small multiple."""
    rng, n = np.random.default_rng(seed), 12
    arena, truth = Arena.empty(n), {i: (np.empty(0, np.int64), np.empty(0)) for i in range(n)}
    largest = np.zeros(n)
    for step in range(1000):
        i, size = int(rng.integers(n)), int(rng.integers(0, 5 + step // 20))
        idx, val = np.sort(rng.choice(200, size, replace=False)), rng.normal(size=size)
        arena, truth[i], largest[i] = arena.store(i, idx, val), (idx.copy(), val.copy()), max(largest[i], size)
        idx += 1  # the caller's arrays are free again
        k = int(rng.integers(n)) if step % 50 else None
        for j in range(n) if k is None else (i, k):
            np.testing.assert_array_equal(arena.block(j)[0], truth[j][0])
            np.testing.assert_array_equal(arena.block(j)[1], truth[j][1])
    ends = arena.start + arena.room
    order = np.argsort(arena.start)
    assert (ends[order][:-1] <= arena.start[order][1:]).all() or (arena.room == 0).any()  # no overlap
    assert len(arena.idx) <= 4 * (largest.sum() + n * 8)


def test_holes_are_closed_before_they_are_many() -> None:
    """Blocks that outgrow their room never take more than a quarter beyond what is live, and the room of one block."""
    rng, n = np.random.default_rng(0), 60
    arena, sizes = Arena.empty(n), np.zeros(n, np.int64)
    packed = 0
    for _ in range(600):
        i = int(rng.integers(n))
        sizes[i] += int(rng.integers(1, 30))
        before, arena = arena, arena.store(i, np.arange(sizes[i]), np.full(sizes[i], float(i)))
        live, largest = int(arena.room.sum()), int(arena.room.max())
        assert live <= arena.taken <= arena.limit <= live + live // 4 + 2 * largest
        packed += int(before.taken) > int(arena.taken)
    assert packed > 0
    assert all((arena.block(i)[1] == i).all() and len(arena.block(i)[0]) == sizes[i] for i in range(n))


def test_blocks_add_up() -> None:
    """add_all_into adds every block to what is there."""
    arena = Arena.empty(3).store(0, np.array([1, 3]), np.array([1.0, 2.0])).store(2, np.array([3]), np.array([5.0]))
    out = np.ones(4)
    arena.add_all_into(out)
    assert out.tolist() == [1.0, 2.0, 1.0, 8.0]


def test_a_block_that_fits_stays_where_it_is() -> None:
    """Storing less than there is room for returns the same arena and moves nothing."""
    arena = Arena.empty(2).store(0, np.arange(8), np.ones(8))
    start = int(arena.start[0])
    assert arena.store(0, np.arange(5), np.zeros(5)) is arena
    assert int(arena.start[0]) == start
    assert len(arena.block(0)[0]) == 5


def test_what_is_saved_has_no_spare_room() -> None:
    """A checkpoint holds the pairs that are taken and no more; read again the blocks are the same, and can grow."""
    arena = Arena.empty(3).store(0, np.arange(8), np.ones(8)).store(2, np.array([3]), np.array([5.0]))
    saved = flatten(arena)
    assert len(saved["idx"]) == len(saved["val"]) == int(arena.taken) < len(arena.idx)
    again = rebuild(Arena.empty(3), saved, 50)
    for i in range(3):
        np.testing.assert_array_equal(again.block(i), arena.block(i))
    grown = again.store(1, np.arange(40), np.full(40, 2.0))
    for i in (0, 2):
        np.testing.assert_array_equal(grown.block(i), arena.block(i))
    assert grown.block(1)[1].tolist() == [2.0] * 40
