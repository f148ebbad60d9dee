"""Outer bounds and training on grids with cycles: ``python benchmarks/loopy.py [--size N] [--states K] [--steps N]``.

Random grids: the value of the best output (all listed, on 3 x 3), the linear program over the local polytope by HiGHS, and value,
outer bound and CPU seconds of the proximal point method over clique marginals; then a max-margin Markov network over two grids,
labelled by weights and noise, by the excessive gap method, to a gap of a thousandth of the relaxed objective.
"""

import argparse
import time
from typing import Any

import numpy as np
from measure import machine, table, verdict
from scipy.optimize import linprog

from structpred.features.parts import PartFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.mrf import graph_of, graph_shape
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.mrf_lp import RelaxedMRF, graph_cliques
from structpred.projections.clique_marginals import largest_over_cliques
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.pragam import Pragam
from structpred.trainers.problem import Problem

#: the gap at which training ends, as a share of the objective
GOAL = 1e-3


def grid(size: int, n_states: int) -> Any:
    """size x size nodes, each joined to the one on its right and the one below."""
    across = [(r * size + c, r * size + c + 1) for r in range(size) for c in range(size - 1)]
    down = [(r * size + c, r * size + size + c) for r in range(size - 1) for c in range(size)]
    return graph_shape(size * size, n_states, across + down)


def compared(shape: Any, seed: int) -> tuple[list[str], bool]:
    """A row of the table for normal scores, and whether the bounds are in order and meet."""
    scores = np.random.default_rng(seed).normal(size=graph_of(shape).n_parts)
    best = ""
    if shape[0] <= 9:
        oracle = EnumerationMRF()
        best = f"{scores[oracle.parts(oracle.argmax(scores, shape), shape)].sum():.6f}"
    A, lower, upper = RelaxedMRF().polytope(shape)
    equal = np.flatnonzero(lower == upper)
    start = time.process_time()
    value = -linprog(-scores, A_eq=A[equal], b_eq=lower[equal], method="highs").fun
    middle = time.process_time()
    found = largest_over_cliques(scores, graph_cliques(shape))
    end = time.process_time()
    figures = f"{value:.6f}", f"{middle - start:.2f}", f"{found.value:.6f}", f"{found.bound:.6f}", str(found.n_steps)
    ordered = (not best or float(best) <= found.bound + 1e-6) and value <= found.bound + 1e-6 and found.bound - found.value < 1e-5
    return [f"{shape[0]} nodes, {shape[1]} states", best, *figures, f"{end - middle:.2f}"], ordered


def main() -> None:
    """Print both tables and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--states", type=int, default=4)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    large, small = grid(options.size, options.states), grid(3, 3)
    compared(small, 0)
    figures, right = zip(*(compared(shape, seed) for shape in (small, large) for seed in range(3)), strict=True)
    print(f"\n{machine()}\n")
    print(table(["grid", "best output", "HiGHS", "CPU s", "value", "outer bound", "steps", "CPU s"], list(figures)))
    print(
        verdict("best output <= linear program <= outer bound, value and bound meet", all(right), f"{sum(right)} of {len(right)}")
    )
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(graph_of(large).n_parts, 5)) for _ in range(2)]
    true = rng.normal(size=5)
    labels = [RelaxedMRF().argmax(one @ true + rng.normal(size=len(one)), large) for one in rows]
    problem = Problem(Task(PartFeatures(rows), RelaxedMRF(), labels, [large] * 2, Hamming()), MarginRescaling(), 1.0)
    train(problem, Pragam(), RunSettings(max_iter=1))  # compiled code is loaded
    result = train(problem, Pragam(), RunSettings(max_iter=options.steps, tol=GOAL, check_every=25))
    history = [row for row in result.history if row["dual"] is not None]
    print()
    bounds = [
        [str(row["passes"]), *(f"{row[name]:.6f}" for name in ("primal", "dual", "gap")), f"{row['cpu_seconds']:.1f}"]
        for row in history
    ]
    print(table(["step", "relaxed objective", "dual", "gap", "CPU s"], bounds))
    ordered = max(r["dual"] for r in history) <= min(r["primal"] for r in history)
    print(verdict("every dual below every objective", ordered, f"{history[-1]['dual']:.6f} and {history[-1]['primal']:.6f}"))
    gap = result.certificate.relative_gap
    print(verdict("a gap of a thousandth", gap is not None and gap <= GOAL, f"{gap:.1e} after {result.passes} steps"))


if __name__ == "__main__":
    main()
