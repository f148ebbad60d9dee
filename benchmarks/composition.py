"""Composed oracles beside general solvers, on the same instances: ``python benchmarks/composition.py``.

Chains whose distant words are linked, too (skip chains), and chains with budgets of labels, scores N(0, 1). For each kind: the
answers of a member, CPU seconds of all instances (ours in one batch), the share proven best, and how far the bounds lie
above the best on average. `rounds` is `Composed(max_nodes=None)`, without a search; the integer programs have a variable for
each label and each pair of an edge, as HiGHS (scipy.optimize.milp) and CP-SAT (scores in millionths, one thread) take them.

AD3 (the package `ad3`) does not build on current Python versions. Measured earlier, on skip chains of 6 x 3 and budgets over
7 x 3: it asked a member 14 times each (the better of rho = .1 and 1) until its bound was within .01 % of the relaxation's value.
tests/oracles/test_composed.py counts ours in the same measure.

--quick: three small instances of each kind.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import machine, table

from structpred.core.oracle import Oracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.composed import Composed, Member
from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape
from structpred.oracles.mrf import graph_shape
from structpred.oracles.tree_mrf import TreeMRF


class Counted(Oracle):
    """An oracle that counts what it answers."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.answers = inner, 0
        self.n_parts, self.parts, self.example_shapes = inner.n_parts, inner.parts, inner.example_shapes  # type: ignore[method-assign]

    def argmax(self, scores: Any, shape: Any) -> Any:
        """One answer."""
        return self.argmax_batch(scores, np.array([0, len(scores)]), [shape])[0]

    def argmax_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        """As many as there are shapes."""
        self.answers += len(shapes)
        return self.inner.argmax_batch(scores, offsets, shapes)

    def n_parts(self, shape: Any) -> int:
        """Replaced in each object, as are the next two."""
        raise NotImplementedError

    def parts(self, labels: Any, shape: Any) -> Any:
        """Those of the oracle inside."""
        raise NotImplementedError

    @staticmethod
    def example_shapes() -> Any:
        """Those of the oracle inside."""
        raise NotImplementedError


class Linked(Composed):
    """shape = (T, L, links, budgets): a chain, pairs of linked words, and how often labels may come (None: any number)."""

    def __init__(self, max_nodes: int | None = 100_000) -> None:
        super().__init__([], max_nodes=max_nodes)
        self.asked = Counted(ChainOracle()), Counted(TreeMRF()), Counted(KnapsackOracle())

    def members(self, shape: Any) -> list[Member]:
        """The chain, an edge for each link, a knapsack for each budget."""
        t, k, links, budgets = shape
        chain, edge, budget = self.asked
        unary, first = np.arange(t * k).reshape(t, k), t * k + k * k
        found = [Member(chain, (t, k), np.arange(first))]
        for e, (i, j) in enumerate(links):
            pairs = first + e * k * k + np.arange(k * k)
            found.append(Member(edge, graph_shape(2, k, [(0, 1)]), np.concatenate((unary[i], unary[j], pairs))))
        for label, most in enumerate(budgets):
            if most is not None:
                found.append(Member(budget, knapsack_shape(np.ones(t), most), unary[:, label]))
        return found

    def parts(self, labels: Any, shape: Any) -> Any:
        """Those of the chain and the links; ValueError where a budget is exceeded."""
        t, k, links, budgets = shape
        counts = np.bincount(labels, minlength=k)
        if any(most is not None and counts[label] > most for label, most in enumerate(budgets)):
            raise ValueError("a budget is exceeded")
        pairs = [t * k + (1 + e) * k * k + labels[i] * k + labels[j] for e, (i, j) in enumerate(links)]
        return np.concatenate((ChainOracle().parts(labels, (t, k)), np.array(pairs, dtype=np.int64)))


def program(scores: Any, shape: Any) -> tuple[Any, list[tuple[list[int], list[int], float]], list[tuple[list[int], float]]]:
    """(costs of the variables, equations (plus, minus, value), limits (variables, most)): labels, then the pairs of all edges."""
    t, k, links, budgets = shape
    edges = [*((i, i + 1) for i in range(t - 1)), *links]
    tables = [scores[t * k : t * k + k * k]] * (t - 1) + list(scores[t * k + k * k :].reshape(-1, k * k))
    costs = np.concatenate((scores[: t * k], *tables))
    equations: list[tuple[list[int], list[int], float]] = [([i * k + a for a in range(k)], [], 1.0) for i in range(t)]
    for e, (i, j) in enumerate(edges):
        pair = t * k + e * k * k
        for a in range(k):
            equations.append(([pair + a * k + b for b in range(k)], [i * k + a], 0.0))
            equations.append(([pair + b * k + a for b in range(k)], [j * k + a], 0.0))
    limits = [([i * k + a for i in range(t)], float(most)) for a, most in enumerate(budgets) if most is not None]
    return costs, equations, limits


def highs(scores: Any, shape: Any) -> tuple[float, float]:
    """(best score found, bound) by HiGHS."""
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    costs, equations, limits = program(scores, shape)
    rows = sparse.lil_array((len(equations) + len(limits), len(costs)))
    low, high = np.full(rows.shape[0], -np.inf), np.empty(rows.shape[0])
    for r, (plus, minus, value) in enumerate(equations):
        rows[[r], plus], low[r], high[r] = 1.0, value, value
        if minus:
            rows[[r], minus] = -1.0
    for r, (variables, most) in enumerate(limits, len(equations)):
        rows[[r], variables], high[r] = 1.0, most
    constraint, options = LinearConstraint(rows.tocsr(), low, high), {"mip_rel_gap": 0.0}
    found = milp(-costs, integrality=np.ones(len(costs)), bounds=Bounds(0, 1), constraints=constraint, options=options)
    return -found.fun, -found.mip_dual_bound


def cp_sat(scores: Any, shape: Any) -> tuple[float, float]:
    """(best score found, bound) by CP-SAT."""
    from ortools.sat.python import cp_model

    costs, equations, limits = program(scores, shape)
    model = cp_model.CpModel()
    x = [model.new_bool_var("") for _ in costs]
    for plus, minus, value in equations:
        model.add(sum(x[v] for v in plus) - sum(x[v] for v in minus) == int(value))
    for variables, most in limits:
        model.add(sum(x[v] for v in variables) <= int(most))
    model.maximize(sum(int(c) * v for c, v in zip(np.rint(1e6 * costs), x, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers, solver.parameters.cp_model_presolve = 1, False
    solver.solve(model)
    return solver.objective_value / 1e6, solver.best_objective_bound / 1e6


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rng, n, t = np.random.default_rng(0), 3 if quick else 20, 8 if quick else 25
    links = tuple(sorted({tuple(sorted(rng.choice(t, 2, replace=False).tolist())) for _ in range(t // 3)}))
    links = tuple((i, j) for i, j in links if j > i + 1)
    kinds = {f"skip chain, {t} x 4": (t, 4, links, ()), f"budgets, {t} x 4": (t, 4, (), (t // 6, t // 5, None, t // 4))}
    print(machine())
    rows = []
    for name, shape in kinds.items():
        ours, quickly = Linked(), Linked(None)
        thetas = [rng.normal(size=ours.n_parts(shape)) for _ in range(n)]

        flat, offsets = np.concatenate(thetas), np.arange(n + 1) * len(thetas[0])

        def composed(oracle: Linked, shape: Any = shape, flat: Any = flat, offsets: Any = offsets) -> list[tuple[float, float]]:
            labels, _, bounds = oracle.argmax_bound_batch(flat, offsets, [shape] * (len(offsets) - 1))
            pairs = zip(flat.reshape(len(bounds), -1), labels.reshape(len(bounds), -1), bounds, strict=True)
            return [(float(scores[oracle.parts(y, shape)].sum()), float(bound)) for scores, y, bound in pairs]

        solvers: dict[str, Callable[[], list[tuple[float, float]]]] = {
            "Composed": lambda oracle=ours, run=composed: run(oracle),
            "rounds": lambda oracle=quickly, run=composed: run(oracle),
            "HiGHS": lambda shape=shape, thetas=thetas: [highs(scores, shape) for scores in thetas],
            "CP-SAT": lambda shape=shape, thetas=thetas: [cp_sat(scores, shape) for scores in thetas],
        }
        best = None
        for solver, solve in solvers.items():
            if solver in ("Composed", "rounds"):
                solve()  # compiled
            asked = {"Composed": ours, "rounds": quickly}.get(solver)
            for one in asked.asked if asked else ():
                one.answers = 0
            start = time.process_time()
            found = solve()
            seconds = time.process_time() - start
            best = [value for value, _ in found] if best is None else best
            answers = sum(one.answers for one in asked.asked) / n / len(asked.members(shape)) if asked else None
            proven = sum(bound - value <= 1e-5 for value, bound in found) / n
            above = sum(bound - top for (_, bound), top in zip(found, best, strict=True)) / n
            missed = sum(value < top - 1e-5 for (value, _), top in zip(found, best, strict=True))
            calls = "" if answers is None else f"{answers:.1f}"
            rows.append([name, solver, calls, f"{seconds:.3f}", f"{proven:.2f}", f"{above:.4f}", str(missed)])
    print(table(["instances", "solver", "calls a member", "CPU s", "proven", "bound above the best", "best missed"], rows))


if __name__ == "__main__":
    main()
