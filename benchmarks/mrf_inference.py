"""Inference in pairwise MRFs: ``python benchmarks/mrf_inference.py``.

1. Milliseconds of CPU time per call, everybody on the same normal scores in one process, each call to its Python end, the least
   of several rounds. Complete graphs of two states (14 labels is the size of the multi-label sets): the relaxed optimum by roof
   duality, message passing and the simplex method (OR-Tools' GLOP, kept warm from call to call, is the yardstick), the exact one
   by enumeration and branch and bound, and the slack-rescaled argmax (the largest loss times height; the loss counts labels).
2. A 40x40 grid with 5 states, normal and attractive Potts scores: how far the message-passing bound lies above the LP's value
   after how many seconds, compared with HiGHS (scipy) and GLOP, each once and cold.

--quick leaves out the larger graphs, and GLOP on the grid.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from measure import Stopwatch, in_child, machine, table, verdict

SIZES = (14, 20, 30, 50, 100)
ENUMERATED = 18  # the most nodes to enumerate
BRANCHED = 30  # the most nodes for branch and bound here
GLOP_UP_TO = 30
STATES = 5


def complete(n: int) -> Any:
    """All pairs of n nodes, two states."""
    from structpred.oracles.mrf import graph_shape

    return graph_shape(n, 2, [(i, j) for i in range(n) for j in range(i + 1, n)])


def grid(side: int) -> Any:
    """A square grid with STATES states."""
    from structpred.oracles.mrf import graph_shape

    across = [(r * side + c, r * side + c + 1) for r in range(side) for c in range(side - 1)]
    down = [(r * side + c, r * side + side + c) for r in range(side - 1) for c in range(side)]
    return graph_shape(side * side, STATES, across + down)


def slack_terms(rng: Any, scores: Any, n: int) -> tuple[Any, Any]:
    """Costs and offsets of max (1 + score(y) - score(truth)) * (wrong labels of y), for a random truth."""
    import numpy as np

    from structpred.oracles.qpbo import QPBO

    truth, costs = rng.integers(0, 2, n), np.zeros(len(scores))
    costs[: 2 * n] = 1.0
    costs[2 * np.arange(n) + truth] = 0.0
    return costs, np.array([1.0 - scores[QPBO().parts(truth, complete(n))].sum(), 0.0])


def one_size(watch: Stopwatch, n: int, rounds: int, calls: int) -> dict[str, Any]:
    """Milliseconds a call of everybody, and the largest relative difference between GLOP's values and roof duality's."""
    import numpy as np

    from structpred.oracles.branch_and_bound import BranchAndBoundMRF
    from structpred.oracles.dual_mrf import DualMRF
    from structpred.oracles.mrf_enumeration import EnumerationMRF
    from structpred.oracles.mrf_lp import RelaxedMRF
    from structpred.oracles.qpbo import QPBO

    rng, shape = np.random.default_rng(n), complete(n)
    scores = [rng.normal(size=QPBO().n_parts(shape)) for _ in range(calls)]
    terms = [slack_terms(rng, theta, n) for theta in scores]
    roof, dual, simplex, all_, branch = QPBO(), DualMRF(), RelaxedMRF(), EnumerationMRF(), BranchAndBoundMRF()

    def products(oracle: Any) -> None:
        for theta, (costs, offsets) in zip(scores, terms, strict=True):
            oracle.argmax_product(theta, costs, offsets, shape)

    jobs: dict[str, Callable[[], Any]] = {
        "roof duality": lambda: [roof.argmax_relaxed(theta, shape) for theta in scores],
        "TRW-S bound": lambda: [dual.argmax_bound(theta, shape) for theta in scores],
    }
    if n <= GLOP_UP_TO:
        jobs["GLOP, warm"] = lambda: [simplex.argmax_relaxed(theta, shape) for theta in scores]
    if n <= ENUMERATED:
        jobs["enumeration"] = lambda: [all_.argmax(theta, shape) for theta in scores]
        jobs["enumeration, product"] = lambda: products(all_)
    if n <= BRANCHED:
        jobs["branch and bound"] = lambda: [branch.argmax(theta, shape) for theta in scores]
        jobs["branch and bound, product"] = lambda: products(branch)
    seconds = dict.fromkeys(jobs, np.inf)
    for _ in range(rounds + 1):  # the first one loads and compiles
        for name, job in jobs.items():
            start = time.process_time()
            job()
            seconds[name] = min(seconds[name], (time.process_time() - start) / calls)
    gap = 0.0
    for theta in scores if n <= GLOP_UP_TO else []:
        value = float(roof.argmax_relaxed(theta, shape) @ theta)
        gap = max(gap, abs(value - float(simplex.argmax_relaxed(theta, shape) @ theta)) / abs(value))
    return {"milli": {name: 1e3 * s for name, s in seconds.items()}, "gap": gap}


def grid_scores(kind: str, side: int) -> Any:
    """Normal scores everywhere; or normal nodes and edges that reward equal states, by up to 1."""
    import numpy as np

    rng, shape = np.random.default_rng(0), grid(side)
    n, n_edges = side * side, (len(shape) - 2) // 2
    scores = rng.normal(size=n * STATES + n_edges * STATES**2)
    if kind == "Potts":
        scores[n * STATES :] = (rng.random((n_edges, 1, 1)) * np.eye(STATES)).ravel()
    return scores


def highs_grid(watch: Stopwatch, kind: str, side: int) -> dict[str, Any]:
    """HiGHS' dual simplex method, through scipy: value and seconds."""
    import numpy as np
    from scipy.optimize import linprog

    from structpred.oracles.mrf_lp import RelaxedMRF

    scores = grid_scores(kind, side)
    rows, lower, _ = RelaxedMRF().polytope(grid(side))
    equal = rows.shape[0] - len(scores)
    start = time.process_time()
    found = linprog(-scores, A_eq=rows[:equal], b_eq=np.asarray(lower)[:equal], bounds=(0, None), method="highs-ds")
    return {"value": -float(found.fun), "cpu": time.process_time() - start}


def glop_grid(watch: Stopwatch, kind: str, side: int) -> dict[str, Any]:
    """GLOP, the oracle as it is, model building included: value and seconds."""
    from structpred.oracles.mrf_lp import RelaxedMRF

    scores, shape, oracle = grid_scores(kind, side), grid(side), RelaxedMRF(pdlp_from=10**9)
    start = time.process_time()
    mu = oracle.argmax_relaxed(scores, shape)
    return {"value": float(mu @ scores), "cpu": time.process_time() - start}


def dual_grid(watch: Stopwatch, kind: str, side: int) -> dict[str, Any]:
    """TRW-S at several tolerances, compiled beforehand: bound, labels' score and seconds (the least of three)."""
    import numpy as np

    from structpred.oracles.dual_mrf import DualMRF

    scores, shape = grid_scores(kind, side), grid(side)
    DualMRF(n_iter=1).argmax_bound(scores, shape)
    rows = {}
    for tol in (1e-3, 1e-4, 1e-5, 1e-6):
        oracle, seconds = DualMRF(tol=tol), np.inf
        for _ in range(3):
            start = time.process_time()
            labels, bound = oracle.argmax_bound(scores, shape)
            seconds = min(seconds, time.process_time() - start)
        rows[f"{tol:g}"] = {"bound": bound, "score": float(scores[oracle.parts(labels, shape)].sum()), "cpu": seconds}
    return {"rows": rows}


def _digits(milli: float) -> str:
    return f"{milli:.3f}" if milli < 10 else f"{milli:.1f}"


def dense(quick: bool) -> list[str]:
    """The first table, and what it must show."""
    found = {}
    for n in SIZES[:2] if quick else SIZES:
        calls = 40 if n <= 20 else 10
        found[n] = in_child("mrf_inference:one_size", n=n, rounds=3 if quick else 10, calls=calls)
    columns = list(found[14]["milli"])
    rows = [[n, *(_digits(one["milli"][c]) if c in one["milli"] else "-" for c in columns)] for n, one in found.items()]
    print(f"\nComplete graphs, two states ({machine()}); milliseconds of CPU time per call\n")
    print(table(["labels", *columns], rows))
    gap = max(one["gap"] for one in found.values())
    milli = found[14]["milli"]
    glop = milli["GLOP, warm"]
    relaxed, exact = glop / milli["roof duality"], glop / min(milli["enumeration"], milli["branch and bound"])
    return [
        verdict("roof duality = GLOP to a relative 1e-9", gap <= 1e-9, f"{gap:.1g}"),
        verdict("14 labels, relaxed: 20 times as fast as GLOP", relaxed >= 20, f"{relaxed:.0f} times"),
        verdict("14 labels, exact: 50 times as fast as GLOP's relaxed call", exact >= 50, f"{exact:.0f} times"),
    ]


def grids(quick: bool) -> list[str]:
    """The second table, and what it must show."""
    side, lines, rows = 20 if quick else 40, [], []
    for kind in ("normal", "Potts"):
        highs = in_child("mrf_inference:highs_grid", kind=kind, side=side)
        value = highs["value"]
        rows.append([kind, "HiGHS", f"{value:.3f}", "-", "-", f"{highs['cpu']:.3f}"])
        fastest = highs["cpu"]
        if not quick:
            glop = in_child("mrf_inference:glop_grid", kind=kind, side=side)
            rows.append([kind, "GLOP", f"{glop['value']:.3f}", "-", "-", f"{glop['cpu']:.3f}"])
            fastest = min(fastest, glop["cpu"])
        for tol, one in in_child("mrf_inference:dual_grid", kind=kind, side=side)["rows"].items():
            gap = (one["bound"] - value) / abs(value)
            figures = [f"{100 * gap:.4f} %", f"{one['score']:.3f}", f"{one['cpu']:.4f}"]
            rows.append([kind, f"TRW-S, tol {tol}", f"{one['bound']:.3f}", *figures])
            if tol == "1e-05":  # the default
                faster = fastest / one["cpu"]
                what = f"{side}x{side}, {kind}: bound within 1 % of the LP, 20 times as fast as the faster solver"
                lines.append(verdict(what, gap <= 0.01 and faster >= 20, f"{100 * gap:.3f} %, {faster:.0f} times"))
    print(f"\n{side}x{side} grid, {STATES} states; seconds of CPU time\n")
    print(table(["scores", "method", "bound", "above the LP", "labels' score", "seconds"], rows))
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small graphs, few rounds, no GLOP on the grid")
    quick = parser.parse_args().quick
    print("\n" + "\n".join([*dense(quick), *grids(quick)]))
