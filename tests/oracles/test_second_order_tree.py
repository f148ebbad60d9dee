"""Second-order trees: the best by enumeration, bounds of the local polytope, and scores by the definition of parts."""

import numpy as np
import pytest
from scipy.optimize import linprog

from structpred.contracts.checks import check_oracle
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.head_lists import candidate_shape, candidates_of, head_lists
from structpred.errors import DataError
from structpred.oracles.second_order_tree import SecondOrderTree

KINDS = pytest.mark.parametrize("projective", [False, True], ids=["crossing", "projective"])
#: n, projective: the best value, the best heads, the bound of the local polytope
TABLE = {
    (2, False): (2.050812, (2, 0), 2.050812),
    (3, False): (1.822368, (0, 3, 1), 2.458976),
    (4, False): (2.792674, (2, 3, 4, 0), 3.432656),
    (5, False): (4.886526, (2, 3, 5, 2, 0), 5.711517),
    (6, False): (9.697629, (6, 0, 5, 3, 6, 2), 9.776914),
    (2, True): (2.050812, (2, 0), 2.050812),
    (3, True): (1.822368, (0, 3, 1), 2.458976),
    (4, True): (2.792674, (2, 3, 4, 0), 3.432656),
    (5, True): (4.433221, (2, 3, 5, 3, 0), 4.981582),
    (6, True): (9.032104, (6, 3, 5, 3, 6, 0), 9.032104),
}


def scores_of(shape, arc, sibling, grandparent):
    """The scores of all parts from functions of words; sibling gets the side, 1 for the right one, 0 for start and end."""
    (sizes, words, ends, parts, copies, _), n = head_lists(shape), shape[0]
    theta = np.zeros(parts[-1] + 1)
    for m in range(1, n + 1):
        theta[(m - 1) * (n + 1) : m * (n + 1)] = [arc(h, m) for h in range(n + 1)]
    for h, (_, left, right) in enumerate(sizes.tolist()):
        own, found = words[ends[h] : ends[h + 1]].tolist(), []
        modifiers, above = own[: left + right], own[left + right :]
        for side, listed in enumerate((modifiers[:left], modifiers[left:])):
            for j, m in enumerate([*listed, 0]):
                found += [sibling(h, s, m, side) for s in [0, *listed[:j]]]
        found += [grandparent(g, h, m) if g != m else FORBIDDEN for m in modifiers for g in above]
        theta[parts[copies[h] + len(own) : copies[h + 1]]] = found
    return theta


def value(heads, arc, sibling, grandparent):
    """The score of a tree by definition."""
    n = len(heads)
    total = sum(arc(h, m) for m, h in enumerate(heads, 1))
    total += sum(grandparent(heads[h - 1], h, m) for m, h in enumerate(heads, 1) if h)
    for h in range(n + 1):
        below = [m for m in range(1, n + 1) if heads[m - 1] == h]
        for side, listed in enumerate(([m for m in reversed(below) if m < h], [m for m in below if m > h])):
            total += sum(sibling(h, s, m, side) for s, m in zip([0, *listed], [*listed, 0], strict=True))
    return total


def local_polytope(oracle, theta, shape):
    """The best score in the local polytope, by HiGHS: shares of each member's outputs that agree on shared parts."""
    members, columns, gains, rows = oracle.members(shape), [], [], []
    holders = np.bincount(np.concatenate([member.parts for member in members]))
    shared = np.flatnonzero(holders > 1)
    theta = np.where(theta > FORBIDDEN, theta, -100.0)
    for k, member in enumerate(members):
        for labels in member.oracle.enumerate(member.shape):
            parts = member.parts[member.oracle.parts(labels, member.shape)]
            column = np.zeros(len(members) * (len(shared) + 1))
            column[k] = 1.0
            column[len(members) + k * len(shared) + np.searchsorted(shared, np.intersect1d(parts, shared))] = 1.0
            columns.append(column)
            gains.append((theta[parts] / holders[parts]).sum())
    A = np.array(columns).T
    for i, part in enumerate(shared.tolist()):
        held = [k for k, member in enumerate(members) if part in member.parts]
        at = [len(members) + k * len(shared) + i for k in held]
        rows += [A[at[0]] - A[other] for other in at[1:]]
    A_eq = np.array([*A[: len(members)], *rows])
    b_eq = np.concatenate([np.ones(len(members)), np.zeros(len(rows))])
    return -linprog(-np.array(gains), A_eq=A_eq, b_eq=b_eq, method="highs").fun


FORMULAS = (
    lambda h, m: np.sin(7 * h + 3 * m),
    lambda h, s, m, side: np.cos(5 * h + 2 * (s or h) + 3 * m + side),
    lambda g, h, m: np.sin(2 * g + 5 * h + 11 * m),
)


@pytest.mark.parametrize(("n", "projective"), TABLE)
def test_the_table(n: int, projective: bool) -> None:
    """Over all arcs: the best of all trees, by definition and by the oracle; the bound without a search is that of the LP."""
    best, heads, bound = TABLE[n, projective]
    oracle, shape = SecondOrderTree(projective), candidate_shape(np.ones((n, n + 1)))
    theta = scores_of(shape, *FORMULAS)
    found = oracle.argmax(theta, shape)
    assert tuple(found) == heads
    assert value(heads, *FORMULAS) == pytest.approx(best, abs=1e-6)
    if n < 6:
        assert max(value(y, *FORMULAS) for y in oracle.enumerate(shape)) == pytest.approx(best, abs=1e-6)
    assert theta[oracle.parts(found, shape)].sum() == pytest.approx(value(heads, *FORMULAS), abs=1e-12)
    assert local_polytope(oracle, theta, shape) == pytest.approx(bound, abs=1e-6)
    relaxed = SecondOrderTree(projective, rounds=300, max_nodes=None).argmax_bound(theta, shape)[1]
    assert bound - 1e-6 <= relaxed <= bound + 0.1


@KINDS
@pytest.mark.parametrize("single_root", [True, False])
def test_the_best_over_candidates(projective: bool, single_root: bool) -> None:
    """Enumeration judges value and bound, whether rounds alone prove the tree or a search does."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 4, 5):
        shape = candidate_shape((rng.random((n, n + 1)) < 0.7) | np.eye(n, n + 1, dtype=np.bool_))
        for rounds in (1, 40):
            oracle = SecondOrderTree(projective, single_root, rounds=rounds)
            hasty = SecondOrderTree(projective, single_root, rounds=rounds, max_nodes=None)
            outputs = list(oracle.enumerate(shape))
            for _ in range(3):
                theta = rng.normal(size=oracle.n_parts(shape))
                best = max(theta[oracle.parts(y, shape)].sum() for y in outputs)
                labels, bound = oracle.argmax_bound(theta, shape)
                assert theta[oracle.parts(labels, shape)].sum() == pytest.approx(best, abs=1e-9)
                assert best - 1e-9 <= bound <= best + 1e-6
                labels, bound = hasty.argmax_bound(theta, shape)
                assert theta[oracle.parts(labels, shape)].sum() <= best + 1e-9 <= bound + 2e-9


def test_the_contract_holds() -> None:
    """All that is promised of an oracle, and of its bounds."""
    check_oracle(SecondOrderTree(max_nodes=None), n_random=3)


@pytest.mark.slow
@KINDS
def test_the_contract_holds_with_a_search(projective: bool) -> None:
    """The same where every answer is proven."""
    check_oracle(SecondOrderTree(projective), n_random=3, max_calls=3000)


def test_what_is_no_tree_over_the_candidates() -> None:
    """A head that is no candidate is refused, and a table without the word before."""
    shape = candidate_shape([[1, 0, 0], [1, 1, 0]])
    assert candidates_of(shape).tolist() == [[True, False, False], [True, True, False]]
    with pytest.raises(ValueError, match="no candidate"):
        SecondOrderTree().parts(np.array([2, 0]), shape)
    with pytest.raises(DataError, match="word before"):
        candidate_shape([[1, 0, 0], [1, 0, 0]])
    with pytest.raises(DataError, match="candidate_shape"):
        SecondOrderTree().n_parts((3,))
