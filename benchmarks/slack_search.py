"""One slack-rescaling search among 14 labels, each design compared with GLOP's: ``python benchmarks/slack_search.py``.

The task is a multi-label one: a complete graph over the labels, Hamming loss, instances and weights from a planted model with
noise (weights that are neither random nor finished). Milliseconds of CPU time for a search (`structpred.slack.search`) at given
weights and scores, everybody in one process on the same instances, the least of several rounds: other programs on the machine
only ever add time. What is solved is checked: exact searches agree with each other, relaxed ones with each other, and a
relaxation is never below the exact value.

"rebuilt" makes a new GLOP model for each query; otherwise a model is made once for the graph and re-solved from the last basis.
The second table is about dependency trees: angular and hybrid searches with the constrained oracle. --quick: fewer instances.
"""

import argparse
import time
from itertools import combinations
from typing import Any, NamedTuple

from measure import Stopwatch, in_child, machine, table, verdict

N_LABELS = 14
#: designs that take tens of milliseconds or more are given so many instances
FEW = 3
LENGTHS = (5, 10, 15, 20, 25)


class Design(NamedTuple):
    """A search: its name, the oracle, the method, whether it works on the relaxation, and whether it is slow."""

    name: str
    oracle: Any
    method: str
    relaxed: bool
    slow: bool = False


def designs() -> list[Design]:
    """All designs; the yardsticks are the incremental GLOP searches."""
    from structpred.oracles import mrf_lp
    from structpred.oracles.branch_and_bound import BranchAndBoundMRF
    from structpred.oracles.cp_sat import CpSatMRF
    from structpred.oracles.mrf_enumeration import EnumerationMRF
    from structpred.oracles.mrf_lp import RelaxedMRF
    from structpred.oracles.qpbo import QPBO

    class Rebuilt(RelaxedMRF):
        """A new model for each question."""

        def argmax_relaxed(self, scores: Any, shape: Any) -> Any:
            """Nothing is kept."""
            mrf_lp._kept.models.clear()
            return super().argmax_relaxed(scores, shape)

    return [
        Design("GLOP rebuilt, hull", Rebuilt(), "hull", True),
        Design("GLOP incremental, hull", RelaxedMRF(), "hull", True),
        Design("GLOP incremental, angular", RelaxedMRF(), "angular", True),
        Design("roof duality (QPBO), hull", QPBO(), "hull", True),
        Design("CP-SAT, angular", CpSatMRF(), "angular", False, slow=True),
        Design("enumeration, angular", EnumerationMRF(), "angular", False),
        Design("enumeration, hybrid", EnumerationMRF(), "hybrid", False),
        Design("enumeration, direct", EnumerationMRF(), "direct", False),
        Design("branch and bound, hybrid", BranchAndBoundMRF(), "hybrid", False),
        Design("branch and bound, direct", BranchAndBoundMRF(), "direct", False),
    ]


def planted(n: int, n_features: int = 20) -> tuple[Any, Any]:
    """(make, w): make(oracle) is the task of n instances; w are weights near those that the labels come from."""
    import numpy as np

    from structpred.features.graphs import GraphFeatures
    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.mrf import graph_shape
    from structpred.oracles.mrf_enumeration import EnumerationMRF
    from structpred.task.task import Task

    rng = np.random.default_rng(0)
    edges = list(combinations(range(N_LABELS), 2))
    shape = graph_shape(N_LABELS, 2, edges)
    first, types, pairs = np.zeros(N_LABELS, np.int64), np.arange(N_LABELS), np.arange(len(edges))
    features = GraphFeatures(
        [shape] * n, rng.normal(size=(n, n_features)), [first] * n, [types] * n, edge_type=[pairs] * n,
        n_node_types=N_LABELS, n_edge_types=len(edges), n_states=2,
    )  # fmt: skip
    truth = rng.normal(size=features.dim) * 0.5
    labels = [EnumerationMRF().argmax(features.scores(truth, i), shape) for i in range(n)]
    w = truth + 0.3 * rng.normal(size=features.dim)
    return lambda oracle: Task(features, oracle, labels, [shape] * n, Hamming()), w


def searches(watch: Stopwatch, n: int, rounds: int) -> dict[str, Any]:
    """Each design over the same instances: milliseconds and queries per search, and whether the answers agree."""
    from structpred.slack.search import search
    from structpred.slack.task_problem import TaskProblem

    make, w = planted(n)
    rows: dict[str, Any] = {}
    values: dict[bool | None, list[float]] = {}
    disagree = 0.0
    for design in designs():
        task, count = make(design.oracle), FEW if design.slow else n
        seconds, found = [float("inf")] * count, [None] * count
        for _ in range(1 if design.slow else rounds + 1):  # the first round loads and compiles
            for i in range(count):
                problem: Any = TaskProblem(task, w, i, relaxed=design.relaxed)
                start = time.process_time()
                found[i] = search(problem, design.method)
                seconds[i] = min(seconds[i], time.process_time() - start)
        results: list[Any] = found
        queries = sum(r.n_plain + r.n_constrained for r in results) / count
        rows[design.name] = {"milli": 1e3 * sum(seconds) / count, "queries": queries, "relaxed": design.relaxed}
        if design.relaxed and design.method == "angular":  # it stops where its oracle returns the ends of an angle: a bound
            values[None] = [float(r.upper_bound) for r in results]
            continue
        phi = [float(r.phi) for r in results]
        disagree = max(
            disagree, *(abs(a - b) / (1 + b) for a, b in zip(phi, values.setdefault(design.relaxed, phi), strict=False))
        )
        if not design.slow:
            values[design.relaxed] = phi
    relaxed, exact = values[True], values[False]
    excess = max(b - a for upper, lower in ((relaxed, exact), (values[None], relaxed)) for a, b in zip(upper, lower, strict=True))
    violated = sum(value > 0 for value in exact) / n
    return {"rows": rows, "disagree": disagree, "excess": excess, "violated": violated}


class Given:
    """Features whose one weight multiplies the given scores."""

    def __init__(self, thetas: list[Any]) -> None:
        import numpy as np

        self.thetas, self.dim, self.dtype, self.groups = thetas, 1, np.dtype(np.float64), np.array([0, 1])

    def __len__(self) -> int:
        return len(self.thetas)

    def n_parts(self, i: int) -> int:
        """The number of scores."""
        return len(self.thetas[i])

    def scores(self, w: Any, i: int) -> Any:
        """The scores, times the weight."""
        return w[0] * self.thetas[i]

    def fixed_scores(self, i: int) -> None:
        """None."""
        return None


def sentence(rng: Any, kind: str, n: int) -> tuple[Any, Any]:
    """(scores, gold heads). "parser-like": one head of each token far ahead, and gold as the parser has it but for its doubts."""
    import numpy as np
    from trees import gaussian, parser_like

    from structpred.oracles.arborescence import ArborescenceOracle

    scores = gaussian(rng, n) if kind == "gaussian" else parser_like(rng, n)
    noise = rng.normal(size=len(scores)) * (1.0 if kind == "gaussian" else 2.0)
    gold = ArborescenceOracle().argmax(noise if kind == "gaussian" else scores + noise, (n,))
    return scores, np.asarray(gold)


def trees(watch: Stopwatch, kind: str, length: int, n: int, method: str) -> dict[str, Any]:
    """Searches over dependency trees of one length; constrained queries by branch and bound, each within 2,000 sets of trees."""
    import numpy as np

    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.arborescence import ArborescenceOracle
    from structpred.slack.search import search
    from structpred.slack.task_problem import TaskProblem
    from structpred.task.task import Task

    times: list[float] = []

    class Timed(ArborescenceOracle):
        """Constrained queries that are cut short rather than handed to a solver, and timed."""

        argmax_constrained = None

        def argmax_constrained_bound(self, scores: Any, shape: Any, A: Any, b: Any) -> Any:
            """As it is."""
            start = time.process_time()
            answer = super().argmax_constrained_bound(scores, shape, A, b)
            times.append(time.process_time() - start)
            return answer

    rng = np.random.default_rng(length)
    thetas, golds = zip(*(sentence(rng, kind, length) for _ in range(n)), strict=True)
    task = Task(Given(list(thetas)), Timed(), list(golds), [(length,)] * n, Hamming(), compiled=False)
    w = np.ones(1)
    search(TaskProblem(task, w, 0), "angular")  # loads and compiles
    times.clear()
    start = time.process_time()
    results = [search(TaskProblem(task, w, i), method) for i in range(n)]
    return {
        "search": 1e3 * (time.process_time() - start) / n,
        "queries": sum(r.n_constrained for r in results) / n,
        "query": 1e3 * float(np.mean(times)) if times else 0.0,
        "longest": 1e3 * max(times, default=0.0),
        "exact": sum(r.exact for r in results) / n,
    }


def dependency_trees(quick: bool) -> list[str]:
    """The second table, and what it must show."""
    rows, exact = [], 1.0
    for kind in ("parser-like", "gaussian"):
        for method in ("hybrid", "angular"):
            for length in LENGTHS[:3] if quick else LENGTHS:
                n = 10 if quick else 100 if method == "hybrid" else 20
                found = in_child("slack_search:trees", kind=kind, length=length, n=n, method=method)
                times = (f"{found[k]:.2f}" for k in ("search", "query", "longest"))
                rows.append([kind, method, length, *times, f"{found['queries']:.2f}", f"{100 * found['exact']:.0f} %"])
                exact = min(exact, found["exact"]) if method == "hybrid" else exact
    print("\nDependency trees, Hamming loss; constrained queries by branch and bound\n")
    print(table(["scores", "search", "tokens", "ms per search", "ms per query", "longest", "queries", "proven"], rows))
    return [verdict("trees of 5 to 25 tokens: hybrid searches are exact", exact == 1.0, f"{100 * exact:.0f} % at the least")]


def multilabel(quick: bool) -> list[str]:
    """The first table, and what it must show."""
    found = in_child("slack_search:searches", n=20 if quick else 100, rounds=2 if quick else 5)
    rows = found["rows"]
    hull, angular = (rows[f"GLOP incremental, {method}"]["milli"] for method in ("hull", "angular"))
    lines = [
        [
            name, "relaxed" if row["relaxed"] else "exact", f"{row['queries']:.1f}", f"{row['milli']:.3f}",
            f"{hull / row['milli']:.1f}", f"{angular / row['milli']:.1f}",
        ]
        for name, row in rows.items()
    ]  # fmt: skip
    print(f"\n{N_LABELS} labels ({machine()}); {100 * found['violated']:.0f} % of the instances have a violated label\n")
    print(table(["design", "solves", "queries", "ms per search", "GLOP hull / this", "GLOP angular / this"], lines))
    exact = min(rows[f"{name}, direct"]["milli"] for name in ("enumeration", "branch and bound"))
    relaxed = rows["roof duality (QPBO), hull"]["milli"]
    yardstick = "an incremental GLOP search (hull, its fastest)"
    return [
        verdict(f"exact search 50 times as fast as {yardstick}", hull >= 50 * exact, _ratios(hull, angular, exact)),
        verdict(f"relaxed search 20 times as fast as {yardstick}", hull >= 20 * relaxed, _ratios(hull, angular, relaxed)),
        verdict("exact searches agree, and relaxed ones do, to 1e-7", found["disagree"] <= 1e-7, f"{found['disagree']:.1g}"),
        verdict("relaxed values are above the exact ones, bounds above both", found["excess"] <= 1e-7, f"{found['excess']:.1g}"),
    ]


def _ratios(hull: float, angular: float, ours: float) -> str:
    return f"{hull / ours:.0f} times; {angular / ours:.0f} times as fast as the angular one"


def main() -> None:
    """Print the tables and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer instances and rounds")
    quick = parser.parse_args().quick
    verdicts = multilabel(quick) + dependency_trees(quick)
    print("\n" + "\n".join(verdicts))


if __name__ == "__main__":
    main()
