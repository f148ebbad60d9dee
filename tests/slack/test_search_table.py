"""The table of small sets: every search on every one of them, values, bounds, and the counts of queries that are fixed."""

from typing import Any

import numpy as np
import pytest
from point_sets import AFTER_ONE, ALL, TABLE, Points, hyperbola

from structpred.slack.search import METHODS, search

LAMBDA_ONLY = ("hull", "bisecting", "binary")


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("compare", ["product", "slope"])
@pytest.mark.parametrize("method", ["angular", "hybrid"])
def test_exact_searches_find_the_maximum(name: str, compare: str, method: str) -> None:
    """Value and output are those of the table, proven, within 2 M + 1 constrained queries."""
    h, g, phi, best = TABLE[name]
    problem = Points(h, g, compare=compare)
    result = search(problem, method)
    assert result.phi == pytest.approx(phi, rel=1e-12)
    assert result.label in best
    assert (result.h, result.g) == (h[result.label], g[result.label])
    assert (result.exact, result.status, result.method) == (True, "proven", method)
    assert phi * (1 - 1e-12) <= result.upper_bound <= phi * (1 + 1e-9) + 1e-12
    assert result.n_constrained <= 2 * problem.n_positive + 1


@pytest.mark.parametrize(("name", "queries", "found"), [
    ("D same ray", 1, [3]), ("E h < 0 wins plain", 1, [2]), ("F truth only", 1, [None]), ("G all h <= 0", 1, [None]),
    ("C tie on line", 2, [1, 3]),
])  # fmt: skip
def test_fixed_numbers_of_queries(name: str, queries: int, found: list[int | None]) -> None:
    """Where ties and rounding have no say, angular search asks exactly so often and finds exactly these."""
    problem = Points(*TABLE[name][:2])
    assert search(problem, "angular").n_constrained == queries
    assert problem.asked == found


@pytest.mark.parametrize("name", TABLE)
def test_after_one_query(name: str) -> None:
    """Cut short after one query at lam = 1: best Phi and upper bound are those of the table."""
    result = search(Points(*TABLE[name][:2]), "angular", max_queries=1)
    assert (result.phi, result.upper_bound) == pytest.approx(AFTER_ONE[name[0]], rel=1e-12)
    assert result.n_constrained == 1
    assert result.status == ("proven" if result.phi == result.upper_bound else "max_queries")
    assert result.exact == (result.phi == result.upper_bound)


@pytest.mark.parametrize("m", [2, 3, 5, 10, 50])
def test_the_worst_case_takes_exactly_2m_plus_1(m: int) -> None:
    """m outputs on one hyperbola: Theorem 2 is tight."""
    result = search(Points(*hyperbola(m)), "angular", lam0=1.3)
    assert result.n_constrained == 2 * m + 1
    assert result.phi == pytest.approx(1.0, rel=1e-12)
    assert result.exact


@pytest.mark.parametrize(("m", "queries"), [(10, 15), (50, 33)])
def test_a_tolerance_saves_queries(m: int, queries: int) -> None:
    """With rel = 0.01 the worst case ends early, says so, and keeps the promise."""
    result = search(Points(*hyperbola(m)), "angular", rel=0.01, lam0=1.3)
    assert (result.n_constrained, result.status) == (queries, "tolerance")
    assert 1.0 <= result.upper_bound <= 1.01 * result.phi


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("method", LAMBDA_ONLY)
def test_plain_searches_never_claim_too_much(name: str, method: str) -> None:
    """By plain queries alone: Phi is of an output, the bound holds, and `exact` is said only of the maximum."""
    h, g, phi, best = TABLE[name]
    problem = Points(h, g)
    result = search(problem, method)
    assert result.phi == problem.phi[result.label]
    assert result.phi <= phi * (1 + 1e-12)
    assert result.upper_bound >= phi * (1 - 1e-12)
    assert result.n_constrained == 0
    assert not result.exact or result.label in best
    assert (result.status == "proven") == result.exact


@pytest.mark.parametrize("method", LAMBDA_ONLY)
def test_plain_searches_miss_what_theorem_1_says(method: str) -> None:
    """On set B no plain query can find the best output: Phi is 0.004, the bound about 4, and it is not called exact."""
    result = search(Points(*TABLE["B theorem 1"][:2]), method)
    assert result.phi == pytest.approx(0.004)
    assert result.upper_bound == pytest.approx(4.002, abs=2e-3)
    assert (result.exact, result.status) == (False, "exhausted")


def test_theorem_1_at_any_scale() -> None:
    """H = G = 4, eps = 1e-3, the third output at (H / 2, G / 2): the hull search sees 1e-3 of 4, angular search all of it."""
    h, g = [1, 4, 1e-3, 2], [0, 1e-3, 4, 2]
    assert search(Points(h, g), "hull").phi == pytest.approx(4e-3)
    assert search(Points(h, g), "hull").upper_bound == pytest.approx(4.002, abs=1e-3)
    result = search(Points(h, g), "angular")
    assert (result.phi, result.n_constrained) == (4.0, 4)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("offers", [("slack_argmax",), ("levels",)])
def test_direct_maximisation(name: str, offers: tuple[str, ...]) -> None:
    """One call gives the maximum, by the product itself or by the best h for every loss; "auto" takes it."""
    h, g, phi, best = TABLE[name]
    for method in ("direct", "auto"):
        result = search(Points(h, g, offers), method)
        assert result.phi == pytest.approx(phi)
        assert result.label in best or phi == 0.0
        assert (result.exact, result.n_plain, result.n_constrained, result.method) == (True, 0, 1, "direct")


@pytest.mark.parametrize("name", TABLE)
def test_lists_of_the_best_are_exact(name: str) -> None:
    """A list that holds every output gives the maximum, proven; "auto" takes lists where nothing better is offered."""
    h, g, phi, best = TABLE[name]
    for method in ("kbest", "auto"):
        result = search(Points(h, g, ("kbest",)), method)
        assert result.phi == pytest.approx(phi)
        assert result.label in best or phi == 0.0
        assert (result.exact, result.method) == (True, "kbest")
        assert result.upper_bound <= phi * (1 + 1e-9)


@pytest.mark.parametrize("name", TABLE)
def test_sarawagi_decides_by_the_bound(name: str) -> None:
    """With threshold xi: whatever it finds is an output, the bound holds, and "below_threshold" is said only where it is so."""
    h, g, phi, _ = TABLE[name]
    for xi in (0.5, 3.0, 8.0):
        result = search(Points(h, g), "sarawagi", threshold=xi)
        assert result.upper_bound >= phi * (1 - 1e-12)
        assert result.status != "below_threshold" or phi <= xi
    if phi > 0 and "B" not in name:
        assert search(Points(h, g), "sarawagi", threshold=0.5 * phi).phi > 0.5 * phi


@pytest.mark.mostly_slow
@pytest.mark.parametrize("seed", range(12))
def test_sarawagi_searches_where_its_paper_says(seed: int) -> None:
    """The queries come within one per cent of the lam that minimises F'(lam) = max (h + lam g) - 2 sqrt(xi lam)."""
    rng = np.random.default_rng(seed)
    h, g = np.concatenate(([1.0], rng.uniform(0.1, 3.0, 12))), np.concatenate(([0.0], rng.uniform(0.2, 4.0, 12)))
    xi = 0.5 * float((h * g).max())  # something exceeds it, so that the search goes on to its end
    asked: list[float] = []

    class Recording(Points):
        def plain(self, lam: float) -> Any:
            asked.append(lam)
            return super().plain(lam)

    def curve(lam: float) -> float:
        return float((h + lam * g).max() - 2.0 * np.sqrt(xi * lam))

    search(Recording(h, g), "sarawagi", threshold=xi)
    lams = np.exp(np.linspace(np.log(xi / g.max() ** 2), np.log(xi / (1e-3 * g.max()) ** 2), 20_001))
    best = min(lams, key=curve)
    assert min(abs(np.log(lam / best)) for lam in asked) < 0.01
    assert min(map(curve, asked)) == pytest.approx(curve(best), abs=1e-3)


def test_every_method_is_in_the_table_of_methods() -> None:
    """The tests above reach every search there is."""
    assert set(METHODS) == {"angular", "hybrid", "direct", "kbest", "sarawagi", *LAMBDA_ONLY}
    assert np.all([search(Points(*TABLE["I Hamming levels"][:2], ALL), m, threshold=0.1).phi > 0 for m in METHODS])


@pytest.mark.parametrize("name", TABLE)
def test_loose_bounds_do_not_keep_hull_search_asking(name: str) -> None:
    """Where bounds stay a hundredth above the outputs, the hull is known after six queries at most, and the search ends there."""

    class Loose(Points):
        def _found(self, k: int, bound: float) -> Any:
            return super()._found(k, 1.01 * bound)

    assert search(Loose(*TABLE[name][:2]), "hull").n_plain <= 6


def test_levels_of_the_loss_save_lists() -> None:
    """Where losses are whole numbers the lines count at these alone: five sets take 21 lists, where a continuum takes 43."""
    n_lists = 0
    for seed in (136, 209, 265, 267, 388):
        rng = np.random.default_rng(seed)
        n, most = int(rng.integers(20, 200)), int(rng.integers(2, 12))
        g = np.r_[0, rng.integers(1, most + 1, n)].astype(float)
        h = np.r_[1.0, rng.uniform(-1, 2, n) / g[1:] ** rng.uniform(0.5, 2)]
        found = search(Points(h, g, ("kbest",), loss_unit=1.0), "kbest")
        assert found.phi == pytest.approx((np.maximum(h, 0.0) * g).max())
        n_lists += found.n_constrained
    assert n_lists <= 25
