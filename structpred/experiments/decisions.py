"""Losses of predict-then-optimise beside each other, on the synthetic problems of the literature."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from structpred.core.oracle import Oracle
from structpred.data.decisions import Decisions, knapsack_data, portfolio_data, shortest_path_data, travelling_salesman_data
from structpred.experiments.experiment import Experiment, Wanted
from structpred.layers.perturbed import PerturbedLoss
from structpred.layers.smoothed_difference import SmoothedDifferenceLayer
from structpred.models.decision.model import DecisionModel
from structpred.oracles.cp_sat_tours import CpSatTravellingSalesman
from structpred.oracles.knapsack import KnapsackOracle
from structpred.oracles.portfolio import PortfolioOracle
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.oracles.travelling_salesman import TravellingSalesmanOracle

#: passes of Adam, and at most of bcfw, whose C gives lam = 0.01
_PASSES, _PROVEN_PASSES, _LAM = 10, 60, 0.01


@dataclass(frozen=True)
class DecisionRow:
    """One method on one problem: means over the seeds. gap: the relative duality gap; None where there is no certificate."""

    problem: str
    method: str
    regret: float
    cpu_seconds: float
    gap: float | None


class Problem(NamedTuple):
    """An oracle, what makes its data, (how many, seed=) -> data, and how many instances are for training and for the test."""

    oracle: Callable[[], Oracle]
    data: Callable[..., Decisions]
    train: int
    test: int


#: paths on a grid of 5 x 5, knapsacks of 32 items in two rows, tours of 8 nodes and, by CP-SAT, of 22; portfolios by cvxpy
PROBLEMS = {
    "paths": Problem(ShortestPathOracle, partial(shortest_path_data, degree=6, noise=0.5), 1000, 1000),
    "knapsacks": Problem(KnapsackOracle, partial(knapsack_data, degree=6, noise=0.5), 1000, 1000),
    "tours": Problem(TravellingSalesmanOracle, partial(travelling_salesman_data, degree=6, noise=0.5), 1000, 1000),
    "large-tours": Problem(CpSatTravellingSalesman, partial(travelling_salesman_data, n_nodes=22, degree=4, noise=0.5), 40, 30),
    "portfolios": Problem(PortfolioOracle, partial(portfolio_data, n_assets=20, degree=6), 50, 100),
}


def methods(oracle: Oracle, n: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The settings of DecisionModel that are compared, with a name each: two where a decision takes milliseconds."""
    from sklearn.linear_model import LinearRegression

    yield "least squares, then the oracle", {"regressor": LinearRegression()}
    for name in ("spo+",) if oracle.expensive else ("spo+", "perceptron", "hinge", "pg"):
        yield f"{name}, adam", {"loss": name}
    if oracle.expensive:
        return
    yield "perturbed, 10 samples, adam", {"loss": PerturbedLoss(oracle, samples=10)}
    yield "imle, 10 samples, adam", {"loss": SmoothedDifferenceLayer(oracle, samples=10)}
    yield f"spo+, bcfw, lam = {_LAM}", {"trainer": "bcfw", "C": 1.0 / (_LAM * n), "tol": 0.01, "max_iter": _PROVEN_PASSES}


def compared(problem: str, n: int, seeds: Sequence[int]) -> list[DecisionRow]:
    """The rows of one problem: n instances to train on, and others to test."""
    found: dict[str, list[tuple[float, float, float | None]]] = {}
    for seed in seeds:
        oracle, data = PROBLEMS[problem].oracle(), PROBLEMS[problem].data(n + PROBLEMS[problem].test, seed=seed)
        train, test = data.rows(slice(n)), data.rows(slice(n, None))
        for name, settings in methods(oracle, n):
            model = DecisionModel(oracle, **{"shape": data.shape, "max_iter": _PASSES, **settings})
            start = time.process_time()
            model.fit(train.features, train.costs, values=train.values)
            seconds = time.process_time() - start
            lost = 1.0 - model.score(test.features, test.costs, values=test.values)
            found.setdefault(name, []).append((lost, seconds, model.certificate_.relative_gap))
    rows = []
    for name, runs in found.items():
        gaps = [gap for _, _, gap in runs if gap is not None]
        regret, seconds = (sum(run[k] for run in runs) / len(runs) for k in (0, 1))  # type: ignore[misc]
        rows.append(DecisionRow(problem, name, regret, seconds, max(gaps) if gaps else None))
    return rows


class DecisionLosses(Experiment):
    """Train decision models with several losses on synthetic paths, knapsacks, tours and portfolios, and measure their regret.

    The problems are those of Elmachtoub & Grigas (2022) and of PyEPO: 1,000 instances to train on and 1,000 to test, degree 6,
    noise 1/2; fewer, and SPO+ alone, for tours of 22 nodes and portfolios, where each decision takes milliseconds.
    Regret is normalised; CPU seconds are those of training, after everything has been compiled.
    Takes some seconds a problem, a minute for tours of 22 nodes, and needs no data.
    """

    name = "decisions"
    summary = "Losses of predict-then-optimise: regret and seconds."
    tables = tuple(PROBLEMS)
    draws: ClassVar = True

    def run(self, folder: Path, wanted: Wanted) -> list[DecisionRow]:
        """The rows: three seeds and all instances; one seed and at most 60 instances if quick."""
        most, seeds = (60, [0]) if wanted.quick else (1000, [0, 1, 2])
        names = wanted.chosen(PROBLEMS)

        def rows(name: str) -> list[DecisionRow]:
            compared(name, 2, [0])  # so that no row pays for what is compiled
            return compared(name, min(most, PROBLEMS[name].train), seeds)

        return [row for name in names for row in wanted.kept(name, list[DecisionRow], partial(rows, name))]

    def text(self, figures: list[DecisionRow]) -> str:
        """One line a method."""
        lines = [f"{'':<11} {'':<32} {'regret':>8} {'CPU s':>8} {'gap':>8}"]
        for row in figures:
            gap = "" if row.gap is None else f"{100 * row.gap:.2f} %"
            lines.append(f"{row.problem:<11} {row.method:<32} {row.regret:>8.4f} {row.cpu_seconds:>8.3f} {gap:>8}")
        return "\n".join(lines)
