"""Searches on random point sets against a look at all points: maxima, numbers of queries, and bounds under every kind of stop."""

from typing import Any

import numpy as np
import pytest
from point_sets import Points, Sloppy, random_points, unit_of

from structpred.slack import kbest
from structpred.slack.ledger import Goal, Ledger
from structpred.slack.problem import Candidate
from structpred.slack.search import METHODS, SearchResult, search

PLAIN = ("hull", "bisecting", "binary")


def check_bound(problem: Points, result: SearchResult, context: Any) -> None:
    """What every result promises, whatever stopped the search."""
    top = float(problem.phi.max())
    assert result.phi == pytest.approx(problem.phi[result.label], rel=1e-12), context
    assert result.upper_bound >= top * (1.0 - 1e-11), context
    assert result.upper_bound >= result.phi, context
    if result.exact:
        assert result.phi >= top * (1.0 - 1e-8) - 1e-12, context


def exact_run(rng: np.random.Generator, seed: int) -> None:
    """One random set: angular and hybrid = enumeration, from a cold start or from an output known already."""
    h, g = random_points(rng)
    problem = Points(h, g, compare=("product", "slope")[seed % 2], loss_unit=unit_of(g) if seed % 3 else 0.0)
    top, m = float(problem.phi.max()), problem.n_positive
    start: Candidate | None = None
    if rng.random() < 0.5:  # a warm start puts lam0 exactly on an output
        start = problem.rescore(int(rng.integers(len(h))))
    for method in ("angular", "hybrid"):
        result = search(problem, method, start)
        assert result.phi >= top * (1.0 - 1e-11), (seed, method)
        assert result.upper_bound <= top * (1.0 + 1e-8) + 1e-12, (seed, method)
        assert result.n_constrained <= 2 * m + 1, (seed, method)
        check_bound(problem, result, (seed, method))


def stopped_run(rng: np.random.Generator, seed: int) -> None:
    """One random set: every search, cut short, with thresholds, tolerances and incumbents; then with inexact answers."""
    h, g = random_points(rng)
    top = float(Points(h, g).phi.max())
    options: dict[str, Any] = {}
    if rng.random() < 0.7:
        options["max_queries"] = int(rng.integers(1, 6))
    threshold = float(top * rng.choice([0.3, 1.0, 1.5])) if rng.random() < 0.5 else None
    if rng.random() < 0.3:
        options["rel"], options["abs"] = float(rng.choice([0.0, 0.1])), float(rng.choice([0.0, 0.01]))
    if rng.random() < 0.5:
        options["incumbent"] = Points(h, g).rescore(int(rng.integers(len(h))))
    unit = unit_of(g) if rng.random() < 0.5 else 0.0
    for method in ("angular", "hybrid", *PLAIN, "sarawagi"):
        limit = threshold if method != "sarawagi" or (threshold or 0.0) > 0.0 else 1.0
        for problem in (Points(h, g, loss_unit=unit), Sloppy(h, g, rng=rng, loss_unit=unit)):
            result = search(problem, method, threshold=limit, **options)
            check_bound(problem, result, (seed, method, options, limit))
            asked = result.n_plain + result.n_constrained
            assert asked <= options.get("max_queries", 10_000) + 2 * (method == "sarawagi"), (seed, method)
            if result.status == "below_threshold":
                assert top <= (limit or 0.0) * (1 + 1e-11), (seed, method)
            if method in ("angular", "hybrid") and type(problem) is Points and "max_queries" not in options:
                found = result.phi > (limit or 0.0) * (1 + 1e-9)
                good = top > (limit or 0.0) * (1 + 1e-8) and not options.get("rel") and not options.get("abs")
                assert not good or (found and result.phi >= top * (1 - 1e-11)), (seed, method)


def test_exact_searches_equal_enumeration() -> None:
    """600 random sets: the maximum, within 2 M + 1 queries, and a bound that meets it."""
    rng = np.random.default_rng(0)
    for seed in range(600):
        exact_run(rng, seed)


@pytest.mark.slow
def test_bounds_hold_however_a_search_ends() -> None:
    """400 random sets, every search, exact and inexact answers: the bound is never below the best output."""
    rng = np.random.default_rng(1)
    for seed in range(400):
        stopped_run(rng, seed)


@pytest.mark.slow
def test_exact_searches_equal_enumeration_3000_times() -> None:
    """3,000 random sets."""
    rng = np.random.default_rng(2)
    for seed in range(3_000):
        exact_run(rng, seed)


@pytest.mark.slow
def test_bounds_hold_however_a_search_ends_2500_times() -> None:
    """2,500 random sets with every search."""
    rng = np.random.default_rng(3)
    for seed in range(2_500):
        stopped_run(rng, seed)


@pytest.mark.parametrize("lengths", [(2,), (1, 3), (2, 4, 8), (32,)])
def test_lists_of_any_length_give_bounds(lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """200 random sets: no bound is below the best output, none is above that of plain queries, and lists of all are exact."""
    monkeypatch.setattr(kbest, "LENGTHS", lengths)
    rng, exact, by_plain = np.random.default_rng(10), 0, 0
    for seed in range(200):
        h, g = random_points(rng)
        options = {"max_queries": int(rng.integers(1, 6))} if seed % 3 == 0 else {}
        problem = Points(h, g, ("kbest",), loss_unit=unit_of(g) if seed % 2 else 0.0)
        plain, result = search(problem, "hull", **options), search(problem, "kbest", **options)
        check_bound(problem, result, seed)
        assert result.upper_bound <= plain.upper_bound * (1 + 1e-12), seed
        assert result.phi >= plain.phi * (1 - 1e-12), seed
        assert result.exact or lengths != (32,) or options, seed
        exact, by_plain = exact + result.exact, by_plain + plain.exact
    assert exact > by_plain + 20


def test_the_bound_falls_as_theorem_4_says() -> None:
    """After t queries of angular search: best Phi / Phi found <= v^(4 / (t + 1)), v the capacity of the first output's angle."""
    rng, seen = np.random.default_rng(4), 0
    for seed in range(400):
        h, g = random_points(rng)
        problem = Points(h, g)
        if problem.n_positive < 3:
            continue
        first = search(problem, "angular", max_queries=1)
        slope = first.g / first.h
        v = max(slope, 1.0 / slope)  # lam0 = 1
        for t in range(1, 8):
            result = search(problem, "angular", max_queries=t)
            assert problem.phi.max() <= result.phi * v ** (4.0 / (t + 1)) * (1 + 1e-9), (seed, t)
            seen += 1
    assert seen > 500


def test_a_threshold_saves_queries_and_changes_no_decision() -> None:
    """A thresholded search finds a violator iff there is one, and then the same maximum, with fewer queries in all."""
    rng, with_, without = np.random.default_rng(5), 0, 0
    for _ in range(300):
        h, g = random_points(rng)
        problem = Points(h, g)
        full = search(problem, "angular")
        xi = full.phi * float(rng.choice([0.9, 1.1])) + 1e-15
        limited = search(problem, "angular", threshold=xi)
        assert (limited.phi > xi) == (full.phi > xi)
        assert full.phi <= xi or limited.phi == pytest.approx(full.phi, rel=1e-11)
        with_, without = with_ + limited.n_constrained, without + full.n_constrained
    assert with_ < without


def test_hybrid_asks_fewer_constrained_queries() -> None:
    """Over many sets hybrid search asks fewer constrained queries than angular search, and often none."""
    rng, counts = np.random.default_rng(6), []
    for _ in range(300):
        h, g = random_points(rng)
        counts.append([search(Points(h, g), method).n_constrained for method in ("angular", "hybrid")])
    angular, hybrid = np.array(counts).T
    assert hybrid.sum() < 0.6 * angular.sum()
    assert (hybrid == 0).mean() > 0.2


def test_hull_is_as_good_as_any_plain_search() -> None:
    """No other plain search finds a better output or a better bound; and hull search needs fewer queries in all."""
    rng, queries = np.random.default_rng(7), dict.fromkeys(PLAIN, 0)
    for seed in range(300):
        h, g = random_points(rng)
        if not Points(h, g).phi.max() > 0:
            continue
        results = {method: search(Points(h, g), method) for method in PLAIN}
        for method, result in results.items():
            queries[method] += result.n_plain
            assert results["hull"].upper_bound <= result.upper_bound * (1 + 1e-9), seed
            assert results["hull"].phi >= result.phi * (1 - 1e-9), (seed, method)
    assert 2 * queries["hull"] < min(queries["bisecting"], queries["binary"])


def test_levels_of_the_loss_sharpen_the_bound() -> None:
    """With whole losses the bound of plain queries is the best of g times the upper hull at the levels g, to 1e-9."""
    rng, sharper = np.random.default_rng(8), 0
    for seed in range(300):
        m = int(rng.integers(1, 20))
        h, g = np.append(1.0, 3 * rng.normal(size=m) - 1), np.append(0.0, rng.integers(0, 9, m).astype(float))
        result = search(Points(h, g, loss_unit=1.0), "hull")
        best = 0.0
        for level in range(1, int(g.max()) + 1):  # the upper hull at a level: the best mixture of a point on either side
            left, right = np.flatnonzero(g <= level), np.flatnonzero(g >= level)
            for a in left:
                t = (level - g[a]) / np.where(g[right] > g[a], g[right] - g[a], 1.0)
                best = max(best, level * float(((1 - t) * h[a] + t * h[right])[(g[right] > g[a]) | (g[right] == level)].max()))
            best = max(best, level * float(h[g == level].max(initial=-1.0)))
        assert result.upper_bound == pytest.approx(best, rel=1e-9, abs=1e-9), seed
        plain = search(Points(h, g), "hull")
        assert result.upper_bound <= plain.upper_bound * (1 + 1e-9) + 1e-12
        assert result.phi >= plain.phi
        sharper += result.exact and not plain.exact
    assert sharper > 10


def test_a_margin_that_holds_is_proven_by_plain_queries() -> None:
    """Where every wrong output has h <= 0, whole losses let plain queries prove that there is no violator."""
    h, g = [1.0, -0.5, -2.0, -4.0], [0.0, 1.0, 2.0, 3.0]
    assert search(Points(h, g, loss_unit=1.0), "hull").status == "proven"
    assert search(Points(h, g, loss_unit=1.0), "hull").upper_bound == 0.0
    assert search(Points(h, g), "hull").upper_bound > 0.1


def test_fuzz_reaches_every_search() -> None:
    """The lists above hold every search but the direct one, which asks nothing."""
    assert set(METHODS) == {"angular", "hybrid", "sarawagi", "direct", "kbest", *PLAIN}


def test_levels_allow_for_rounding() -> None:
    """At a large lam h is what is left of two large numbers: the bound read at the level is still not below the output there."""
    rng = np.random.default_rng(9)
    for _ in range(300):
        h = float(rng.random())
        ledger = Ledger(Points([1.0, h], [0.0, 1.0], loss_unit=1.0), Goal())
        ledger.plain(float(2.0**39 * (1 + rng.random())))
        assert h <= ledger.top_level()[1] <= h + 1e-2
