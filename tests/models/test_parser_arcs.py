"""What a parser does with arcs: which trees cross, constraints as scores, and which heads pruning keeps."""

import itertools

import numpy as np
import pytest

from structpred.models.arcs import choose_projective


def crossing_by_definition(heads: list[int]) -> list[bool]:
    """For each word whether the arc to it crosses another: their ends alternate."""
    arcs = [(min(m, h), max(m, h)) for m, h in enumerate(heads, 1)]
    return [any(a < c < b < d or c < a < d < b for c, d in arcs) for a, b in arcs]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_crossing_arcs_are_all_found(n: int) -> None:
    """Every array of heads up to five words, trees or not: exactly the arcs whose ends alternate with those of another."""
    from structpred.core._arc_kernels import mark_crossing

    everything = [h for h in itertools.product(range(n + 1), repeat=n) if all(m != head for m, head in enumerate(h, 1))]
    heads = np.array(everything, dtype=np.int64).ravel()
    marks = np.zeros(len(heads), np.uint8)
    mark_crossing(heads, n * np.arange(len(everything) + 1), marks)
    expected = [crossing_by_definition(list(h)) for h in everything]
    np.testing.assert_array_equal(marks.reshape(-1, n).astype(bool), expected)


def test_fewer_than_one_crossing_arc_in_a_hundred_is_projective() -> None:
    """None decides by the share of arcs that cross another one; True and False are what they say."""
    crossed, straight = [3, 4, 0, 3], [0, 1, 2, 3]  # 2 <- 4 crosses 1 <- 3 and 0 -> 3
    assert crossing_by_definition(crossed) == [True, True, True, False]
    for n_straight, expected in ((74, False), (75, True)):  # 3 of 300, 3 of 304
        heads = np.array(crossed + straight * n_straight)
        offsets = 4 * np.arange(n_straight + 2)
        for asked, answer in ((None, expected), (True, True), (False, False)):
            found, sentences = choose_projective(asked, heads, offsets)
            assert found is answer
            assert sentences.tolist() == [True] + [False] * n_straight
