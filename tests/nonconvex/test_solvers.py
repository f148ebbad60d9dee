"""Solvers of the semi-supervised support vector machine: what they promise, and what they reach on two moons."""

from dataclasses import replace

import numpy as np
import pytest
from moons import best_of_all, problem

from structpred.errors import ParameterError
from structpred.nonconvex.alternating import AlternatingOptimisation
from structpred.nonconvex.annealing import Annealing
from structpred.nonconvex.branch_and_bound import BranchAndBound
from structpred.nonconvex.pdm import PDM
from structpred.nonconvex.pdm_rounds import PDMRounds
from structpred.nonconvex.printed_pdm import PrintedPDM
from structpred.nonconvex.problem import SemiSupervisedProblem
from structpred.nonconvex.search import Search, random_labels, resolve_solver, solvers
from structpred.nonconvex.staged import StagedSearch

#: (points, C2, s2, whether there is a balance, seed, the proven optimum, the share of wrong labels in it)
PROVEN = [
    (16, 1, 0.1, True, 0, 4.03480, 0.43), (16, 1, 0.1, False, 0, 2.15059, 0.50), (20, 1, 0.1, True, 0, 3.97259, 0.22),
    (24, 1, 0.1, True, 0, 4.60666, 0.36), (30, 1, 0.1, False, 0, 2.68250, 0.43), (30, 1, 0.1, True, 0, 5.80309, 0.29),
    (40, 10, 0.3, True, 0, 13.39664, 0), (40, 100, 0.3, True, 0, 13.39664, 0), (40, 10, 0.1, True, 0, 6.91540, 0),
    (60, 100, 0.1, True, 0, 7.22983, 0), (60, 10, 0.3, True, 0, 13.82256, 0), (200, 100, 0.1, True, 0, 12.8951, 0),
    (200, 10, 0.1, True, 1, 7.7814, 0), (200, 10, 0.1, True, 2, 11.4778, 0), (200, 10, 0.1, True, 3, 8.3450, 0),
    (200, 10, 0.1, True, 4, 7.6641, 0), (200, 10, 0.1, True, 5, 11.5598, 0), (200, 10, 0.05, True, 1, 8.6865, 0),
]  # fmt: skip


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("n", "C2", "s2", "balance", "seed", "optimum", "error"), PROVEN)
def test_branch_and_bound_proves_the_optimum(
    n: int, C2: float, s2: float, balance: bool, seed: int, optimum: float, error: float
) -> None:
    """Without a start it closes at the known optimum, with its bound there, and keeps no more open decisions than points."""
    p, truth = problem(n, float(C2), s2, seed, balance)
    found = BranchAndBound().solve(p)
    assert found.level == "global"
    assert found.objective == pytest.approx(optimum, abs=1e-4)
    assert (1.0 - 2e-6) * found.objective <= found.lower_bound <= found.objective
    assert (found.labels != truth).mean() == pytest.approx(error, abs=0.01)
    assert found.report["deepest"] <= p.u


def test_annealing_ends_at_the_whole_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """C2 rises by a constant factor from the first share to the whole of it, where labels and classifier alternate once more."""
    seen: list[float] = []
    climb = Search.climb

    def recorded(self: Search, p: np.ndarray, start: object = None) -> object:
        seen.append(self.problem.C2)
        return climb(self, p, start)

    monkeypatch.setattr(Search, "climb", recorded)
    made, _ = problem(24, 2.0, 0.1, 0, True)
    Annealing(steps=9, first=1e-2).solve(made)
    np.testing.assert_allclose(seen, 2.0 * np.geomspace(1e-2, 1.0, 9), rtol=1e-12)


@pytest.mark.parametrize("balance", [True, False])
def test_branch_and_bound_is_best_of_all_labels(balance: bool) -> None:
    """On random points with no structure its optimum is that of enumeration, also where a copy makes the kernel singular."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        X = rng.normal(size=(11, 2))
        X[-1] = X[0]
        gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
        p = SemiSupervisedProblem(gram, np.r_[1, -1, 1, np.zeros(8, int)], 10.0, 1.0, 4 if balance else None)
        assert BranchAndBound().solve(p).objective == pytest.approx(best_of_all(p), abs=1e-5)


def test_branch_and_bound_stops_at_any_time() -> None:
    """Cut short it says local, with a bound below the optimum; with eps it says eps-global and keeps what it promises."""
    p, _ = problem(30, 1.0, 0.1)
    cut, within = BranchAndBound(max_inner=200).solve(p), BranchAndBound(eps=0.3).solve(p)
    assert (cut.level, within.level) == ("local", "eps-global")
    assert cut.lower_bound <= 5.80309 <= cut.objective + 1e-4
    assert within.objective * 0.7 <= within.lower_bound <= 5.80309 + 1e-4
    assert within.n_inner < 3000


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", solvers())
def test_every_solver_keeps_its_promises(name: str) -> None:
    """Labels within the balance whose own optimum is the objective, a falling history, a true bound; the same seed, the same."""
    p, _ = problem(24, 1.0, 0.1)
    start = random_labels(p, np.random.default_rng(1))
    solver = replace(resolve_solver(name), max_inner=1500 if name == "pdm" else 3000)
    found = solver.solve(p, seed=2, start=start)
    assert found.p.sum() == p.positives
    assert found.objective == pytest.approx(p.solve(found.p, tol=1e-8).objective, rel=1e-6)
    assert found.lower_bound <= 4.60666 + 1e-4 <= found.objective + 2e-4
    values = [row["objective"] for row in found.history]
    assert values == sorted(values, reverse=True)
    assert values[-1] == found.objective
    assert found.level == ("global" if name in ("branch_and_bound", "staged") else "local")
    assert solver.solve(p, seed=2, start=start).p.tolist() == found.p.tolist()


@pytest.mark.parametrize("name", solvers())
def test_every_solver_works_without_balance_and_without_unlabelled_points(name: str) -> None:
    """No balance: some labels; nothing to label: the support vector machine, which is proven."""
    p, _ = problem(16, 1.0, 0.1, balance=False)
    assert replace(resolve_solver(name), max_inner=500).solve(p).objective >= 2.15059 - 1e-4
    done = SemiSupervisedProblem(p.gram, np.where(np.arange(16) % 2, 1, -1), 1.0, 1.0)
    assert resolve_solver(name).solve(done).level == "global"


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("n", "C2", "s2", "optimum"), [(16, 1.0, 0.1, 4.0348), (40, 10.0, 0.1, 6.9154)])
def test_pdm_reaches_the_optimum(n: int, C2: float, s2: float, optimum: float) -> None:
    """From random labels, without branch and bound over all of them: in three runs of three."""
    p, _ = problem(n, C2, s2)
    for seed in range(3):
        assert PDM(max_inner=4000).solve(p, seed).objective == pytest.approx(optimum, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "C2", "s2", "seed"), [(n, C2, s2, seed) for n, C2, s2, balance, seed, *_ in PROVEN if balance and n <= 40]
)
def test_pdm_reaches_the_optimum_in_eighteen_of_twenty_runs(n: int, C2: float, s2: float, seed: int) -> None:
    """From random labels, with up to 40 points."""
    p, _ = problem(n, float(C2), s2, seed)
    optimum = BranchAndBound().solve(p).objective
    assert sum(PDM().solve(p, run).objective <= optimum * (1.0 + 1e-4) for run in range(20)) >= 18


@pytest.mark.slow
def test_the_degree_trades_time_for_quality() -> None:
    """Doubling m never makes the labels of a run worse and never takes fewer inner problems; in the mean it makes them better."""
    objectives, inner = [], []
    for seed in range(4):
        p, _ = problem(60, 1.0, 0.1, seed)
        found = [PDMRounds(degree=degree).solve(p, seed) for degree in (0.05, 0.1, 0.2, 0.4, 0.8)]
        objectives.append([one.objective for one in found])
        inner.append([one.n_inner for one in found])
    assert (np.diff(objectives) <= 0.0).all()
    assert (np.diff(inner) > 0).all()
    assert (np.diff(np.mean(objectives, axis=0)) < 0.0).all(), np.mean(objectives, axis=0)


def test_pdm_as_printed_improves_nothing() -> None:
    """No ray from the anchor meets the level set within the box, so it returns the local solution that it started from."""
    p, _ = problem(40, 10.0, 0.1)
    for seed in range(5):
        found = PrintedPDM().solve(p, seed)
        assert (found.report["reached"], found.report["improved"]) == (0, 0)
        assert found.report["rays"] > 0
        assert len(found.history) == 1


@pytest.mark.parametrize(("seed", "best"), [(0, 10.8613), (1, 8.6743)])
def test_the_default_solver_reaches_the_best_known_labels(seed: int, best: float) -> None:
    """Two moons, 200 points, C2 = 1, where nobody can prove it: the best known objective, no wrong label, and no claim."""
    p, truth = problem(200, 1.0, 0.05, seed)
    found = StagedSearch(max_inner=1000).solve(p, seed=5)
    assert found.objective == pytest.approx(best, abs=1e-4)
    assert (found.labels == truth).all()
    assert (found.level, found.lower_bound < 2.0) == ("local", True)
    assert AlternatingOptimisation().solve(p).objective > best + 4.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("C2", "s2", "seed", "inner", "best"),
    [
        (1.0, 0.05, 0, False, 10.8613), (1.0, 0.05, 1, False, 8.6743), (10.0, 0.05, 0, False, 11.4410),
        (10.0, 0.05, 1, False, 8.6865), (1.0, 0.1, 0, True, 9.8858), (10.0, 0.1, 0, True, 12.8951), (10.0, 0.1, 1, True, 7.7814),
    ],
)  # fmt: skip
def test_the_default_solver_succeeds_where_local_methods_fail(C2: float, s2: float, seed: int, inner: bool, best: float) -> None:
    """Ten random starts: the best known objective in eight and no wrong label; a third of them wrong in the median of others."""
    p, truth = problem(200, C2, s2, seed, inner=inner)
    starts = [random_labels(p, np.random.default_rng(run)) for run in range(10)]
    ours = [StagedSearch().solve(p, run, start) for run, start in enumerate(starts)]
    assert sum(one.objective <= best + 1e-3 for one in ours) >= 8
    assert np.median([(one.labels != truth).mean() for one in ours]) <= 0.02
    for name in ("ao", "cccp"):
        wrong = [(resolve_solver(name).solve(p, run, start).labels != truth).mean() for run, start in enumerate(starts)]
        assert np.median(wrong) > 0.3


@pytest.mark.parametrize(("C2", "seed", "best"), [(1.0, 0, 9.8858), (10.0, 0, 12.8951), (10.0, 1, 7.7814)])
def test_the_default_solver_starts_from_inner_tips(C2: float, seed: int, best: float) -> None:
    """Labels where each moon reaches into the other one: the best known labels, from which the first dive leads away."""
    p, truth = problem(200, C2, 0.1, seed, inner=True)
    found = StagedSearch(max_inner=1000).solve(p)
    assert found.objective == pytest.approx(best, abs=1e-4)
    assert (found.labels == truth).all()
    assert BranchAndBound(max_inner=1000).solve(p).objective > 2.0 * best


@pytest.mark.slow
def test_a_thousand_points_are_proven() -> None:
    """Two moons of 1,000 points: closed at the true labels within 5,000 inner problems."""
    p, truth = problem(1000, 10.0, 0.1)
    found = BranchAndBound(max_inner=5000).solve(p)
    assert (found.level, (found.labels == truth).all()) == ("global", True)
    assert found.objective == pytest.approx(18.6983, abs=1e-4)


def test_wrong_solvers_settings_and_starts_are_refused() -> None:
    """An unknown name, an object of another kind, settings out of range, a start outside its set, half a positive."""
    p, _ = problem(16, 1.0, 0.1)
    with pytest.raises(ParameterError, match="did you mean 'staged'"):
        resolve_solver("stage")
    with pytest.raises(ParameterError, match="an instance of a solver"):
        resolve_solver(PDM)
    for solver in (PDM(idle=0), PDMRounds(degree=0.0), BranchAndBound(eps=1.0), StagedSearch(first=0.9), PDM(max_inner=0)):
        with pytest.raises(ParameterError):
            solver.solve(p)
    with pytest.raises(ParameterError, match="one per unlabelled point"):
        PDM().solve(p, start=np.full(p.u, 2.0))
    p.positives = 6.5
    with pytest.raises(ParameterError, match="whole number of positives"):
        PDM().solve(p)
