"""Projections: ``python benchmarks/projections.py``; --quick leaves out what takes longest. About three minutes.

1. The box with one equality (entries of either sign, between 0 and 1) from 1e2 to 1e7 entries: CPU milliseconds of the operator,
   of its kink search alone, and of the same by sorting all kinks, and by PyProximal's HyperPlaneBoxProj where that is installed;
   the least of several rounds, all in one process.
2. Clique marginals of chains: CPU milliseconds of the operator from nothing and from the multipliers of a point nearby, of the
   paper's Algorithm 3 (repaired; at most 300 rounds), of the active set of outputs, and of cvxpy with Clarabel (all of it, and
   the solver's own clock); how far the answers are from cvxpy's, and the optimality condition through Viterbi.
3. A hundred chains at once, on one thread and on two, in turn: wall seconds, which other programs on the machine disturb, and
   the CPU seconds of the busiest thread, which is what two idle processors would take.
4. The proximal operator of the squared l1 norm up to 1e7 entries, for steps that leave few entries, some and all; and what the
   steps of multiple kernel learning with 507 groups take: on the norms, and on 260,000 weights.
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from measure import ROOT, Stopwatch, in_child, machine, table, verdict

SIZES = (10**2, 10**3, 10**4, 10**5, 10**6, 10**7)
CHAINS = ((5, 3, 1.0), (10, 5, 0.3), (10, 10, 1.0), (20, 26, 1.0), (20, 26, 0.05), (50, 20, 0.3))
PROX_SIZES = (10**3, 10**5, 10**7)
PROX_STEPS = (1.0, 1e-3, 1e-9)
GROUPS, WEIGHTS = 507, 260_000
GOALS = {"us of 507 norms": 20.0, "sort": 5.0, "algorithm 3": 10.0, "cvxpy": 50.0, "threads": 1.6, "ms of 1e6": 40.0}


def least(call: Callable[[], Any], rounds: int) -> float:
    """CPU milliseconds."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return 1000 * min(seconds)


def by_sorting(m: Any, s: Any, total: float) -> Any:
    """The box [0, 1] with <s, a> = total: sort the 2 n kinks, add up slopes and values, and find where the sum is reached."""
    import numpy as np

    at_zero, at_one = -m / s, (1.0 - m) / s
    kinks = np.concatenate((np.minimum(at_zero, at_one), np.maximum(at_zero, at_one)))
    order = np.argsort(kinks)
    kinks = kinks[order]
    slopes = np.cumsum(np.where(order < len(m), 1.0, -1.0))
    values = np.minimum(s, 0.0).sum() + np.concatenate(([0.0], np.cumsum(slopes[:-1] * np.diff(kinks))))
    k = int(np.searchsorted(values, total)) - 1
    lam = kinks[k] + (total - values[k]) / slopes[k]
    return np.clip(m + s * lam, 0.0, 1.0)


def boxes(watch: Stopwatch, sizes: list[int]) -> dict[str, Any]:
    """Each way at each size."""
    return {"rows": [box(n, 50 if n <= 10**4 else 7 if n <= 10**6 else 3) for n in sizes]}


def box(n: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of each way, and how far the operator is from sorting."""
    import numpy as np

    from structpred.projections._box_kernels import by_kinks
    from structpred.projections.box import nearest_in_box

    rng = np.random.default_rng(n)
    m, s = rng.normal(size=n), np.where(rng.random(n) < 0.5, -1.0, 1.0)
    zeros, ones, nearby = np.zeros(n), np.ones(n), m + 1e-3 * rng.normal(size=n)
    found, lam = nearest_in_box(m, 0.0, 1.0, s, 0.0)
    by_kinks(m, s, s, zeros, ones, 0.0)
    row = {
        "n": n,
        "ours": least(lambda: nearest_in_box(m, 0.0, 1.0, s, 0.0), rounds),
        "warm": least(lambda: nearest_in_box(nearby, 0.0, 1.0, s, 0.0, start=lam), rounds),
        "kinks": least(lambda: by_kinks(m, s, s, zeros, ones, 0.0), rounds),
        "sort": least(lambda: by_sorting(m, s, 0.0), min(rounds, 5)),
        "off": float(np.abs(found - by_sorting(m, s, 0.0)).max()),
    }
    try:
        from pyproximal.projection import HyperPlaneBoxProj
    except ImportError:
        return row
    other = HyperPlaneBoxProj(s, 0.0, zeros, ones)
    return row | ({"pyproximal": least(lambda: other(m), 1)} if n <= 10**6 else {})


def viterbi_gap(point: Any, found: Any) -> float:
    """max_y <point - found, y - found>."""
    scores = point - found
    best = scores[0].max(axis=0) * 0.0
    for step in scores:
        best = (best[:, None] + step).max(axis=0)
    return float(best.max() - (scores * found).sum())


def by_cvxpy(point: Any) -> tuple[Any, float]:
    """(the marginals by Clarabel, the seconds it says it took)."""
    from itertools import pairwise

    import cvxpy as cp

    tables = [cp.Variable(step.shape, nonneg=True) for step in point]
    rules = [cp.sum(a) == 1 for a in tables] + [cp.sum(a, axis=0) == cp.sum(b, axis=1) for a, b in pairwise(tables)]
    problem = cp.Problem(cp.Minimize(sum(cp.sum_squares(a - b) for a, b in zip(tables, point, strict=True))), rules)
    # what it takes to be right to 1e-7: with the defaults, or with 1e-11, it is off by 1e-6
    exact = {"tol_gap_abs": 1e-14, "tol_gap_rel": 1e-14, "tol_feas": 1e-13, "iterative_refinement_reltol": 1e-16}
    exact |= {"iterative_refinement_abstol": 1e-16, "iterative_refinement_max_iter": 50, "static_regularization_constant": 1e-12}
    problem.solve(solver=cp.CLARABEL, **exact)
    return [a.value for a in tables], float(problem.solver_stats.solve_time)


def chain(watch: Stopwatch, length: int, m: int, scale: float, slow: bool) -> dict[str, Any]:
    """Everybody on one point."""
    import numpy as np

    from structpred.errors import ConvergenceError
    from structpred.oracles.mrf import graph_shape
    from structpred.oracles.tree_mrf import TreeMRF
    from structpred.projections.tree_marginals import chain_forest, project_forests, project_onto_chain_marginals

    sys.path.insert(0, str(ROOT / "tests" / "projections"))
    from reference_algorithm3 import project_by_algorithm_3
    from reference_wolfe import nearest_in_hull

    rng = np.random.default_rng(0)
    point = scale * rng.normal(size=(length - 1, m, m))
    nearby, offsets = (point + 0.01 * scale * rng.normal(size=point.shape)).ravel(), np.array([0, point.size])
    chain = [chain_forest(length, m)]
    found, multipliers = project_onto_chain_marginals(point), project_forests(point.ravel(), offsets, chain)[1]
    result = {
        "ours": least(lambda: project_onto_chain_marginals(point), 7),
        "warm": least(lambda: project_forests(nearby, offsets, chain, multipliers), 7),
        "gap": viterbi_gap(point, found),
    }
    start = time.process_time()
    reference = project_by_algorithm_3(point, tol=1e-7, max_steps=300)
    result |= {"algorithm 3": 1000 * (time.process_time() - start), "violation": reference.violation}
    oracle, shape = TreeMRF(), graph_shape(length, m, [(t, t + 1) for t in range(length - 1)])
    first = length * m  # the nodes' own parts: without scores and without weight in the distance, so they are left out
    start = time.process_time()
    try:
        nearest_in_hull(
            point.ravel(),
            lambda s: oracle.argmax(np.concatenate((np.zeros(first), s)), shape),
            lambda y: oracle.parts(y, shape)[length:] - first,
            point.size,
            tol=1e-10,
            max_iter=600,
        )
        result["active set"] = 1000 * (time.process_time() - start)
    except ConvergenceError:
        result["active set"] = None
    if slow:
        start = time.process_time()
        other, own = by_cvxpy(point)
        result |= {"cvxpy": 1000 * (time.process_time() - start), "clarabel": 1000 * own}
        result["off"] = float(np.abs(found - np.array(other)).max())
    return result


def batch(watch: Stopwatch, rounds: int) -> dict[str, Any]:
    """Wall seconds of a hundred chains on one thread and on two, in turn; whether the answers are the same to the last bit."""
    import numpy as np

    from structpred.projections import tree_marginals
    from structpred.projections.tree_marginals import chain_forest, project_forests
    from structpred.runtime import threads

    used: dict[int, float] = {}

    def run_ranges(work: Callable[[int, int], None], ranges: Any, n_jobs: int) -> None:
        used.clear()

        def measured(start: int, stop: int) -> None:
            before = time.thread_time()
            work(start, stop)
            used[threading.get_ident()] = used.get(threading.get_ident(), 0.0) + time.thread_time() - before

        threads.run_ranges(measured, ranges, n_jobs)

    tree_marginals.run_ranges = run_ranges
    rng, size, n = np.random.default_rng(0), (20, 26), 100
    points = rng.normal(size=n * 19 * 26 * 26)
    offsets, seconds, busiest, found = np.arange(n + 1) * 19 * 26 * 26, {1: [], 2: []}, {1: [], 2: []}, {}
    project_forests(points[: offsets[1]], offsets[:2], [chain_forest(*size)])
    for _ in range(rounds):
        for n_jobs, taken in seconds.items():
            start = time.perf_counter()
            found[n_jobs] = project_forests(points, offsets, [chain_forest(*size)] * n, n_jobs=n_jobs)[0]
            taken.append(time.perf_counter() - start)
            busiest[n_jobs].append(max(used.values()))
    return {
        "busiest": [min(busiest[1]), min(busiest[2])],
        "one": seconds[1],
        "two": seconds[2],
        "same": bool(np.array_equal(found[1], found[2])),
    }


def proximal(watch: Stopwatch, sizes: list[int]) -> dict[str, Any]:
    """Milliseconds at each size and step; microseconds of grouped steps."""
    import numpy as np

    from structpred.projections.prox.entries import prox_lq
    from structpred.projections.prox.squares import prox_squared_l1, prox_squared_l21, prox_squared_lp

    rng, rows = np.random.default_rng(0), []
    for n in sizes:
        x, rounds = rng.normal(size=n), 200 if n <= 10**4 else 20 if n <= 10**6 else 3
        for step in PROX_STEPS:
            found = prox_squared_l1(x, step)
            row = {"n": n, "step": step, "left": int((found != 0.0).sum())}
            rows.append(row | {"ms": least(lambda x=x, step=step: prox_squared_l1(x, step), rounds)})
    norms, w = np.abs(rng.normal(size=GROUPS)), rng.normal(size=WEIGHTS)
    ends = np.linspace(0, WEIGHTS, GROUPS + 1).astype(np.int64)
    calls = {
        "squared l1, 507 norms": lambda: prox_squared_l1(norms, 0.1),
        "l1.5, 507 norms": lambda: prox_lq(norms, 0.1, 1.5),
        "squared l1.5, 507 norms": lambda: prox_squared_lp(norms, 0.1, 1.5),
        "squared l2,1, 260,000 weights": lambda: prox_squared_l21(w, 0.1, ends),
    }
    for call in calls.values():
        call()
    return {"rows": rows, "groups": {name: 1000.0 * least(call, 200) for name, call in calls.items()}}


def main() -> None:
    """Print the tables and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    verdicts = []

    def number(x: float | None) -> str:
        return "-" if x is None else f"{x:.3g}"

    rows = in_child("projections:boxes", sizes=SIZES[:5] if quick else SIZES)["rows"]
    print(f"\nBox with one equality, CPU milliseconds ({machine()})\n")
    keys = ["ours", "warm", "kinks", "sort", "pyproximal"]
    cells = []
    for r in rows:
        figures = [f"{r['sort'] / r['ours']:.1f}", f"{1e6 * r['ours'] / r['n']:.1f}", f"{r['off']:.0e}"]
        cells.append([f"{r['n']:,}", *(number(r.get(k)) for k in keys), *figures])
    print(table(["n", *keys, "sort / ours", "ns an entry", "difference"], cells))
    million = next(r for r in rows if r["n"] == 10**6)
    ratio, each = million["sort"] / million["ours"], [r["ours"] / r["n"] for r in rows]
    verdicts.append(verdict("1e6 entries: at least 5 times faster than sorting", ratio >= GOALS["sort"], f"{ratio:.1f}"))
    verdicts.append(verdict("1e6 entries in 40 ms", million["ours"] <= GOALS["ms of 1e6"], f"{million['ours']:.1f} ms"))
    figure = ", ".join(f"{1e6 * x:.1f}" for x in each) + " ns an entry"
    verdicts.append(verdict("linear: an entry never costs more than with 1e2", max(each) <= each[0], figure))

    cells = []
    for length, m, scale in CHAINS[:3] if quick else CHAINS:
        f = in_child("projections:chain", length=length, m=m, scale=scale, slow=True)
        keys = ["ours", "warm", "algorithm 3", "violation", "active set", "cvxpy", "clarabel", "off", "gap"]
        cells.append([f"{length}, {m}, {scale:g}", *(number(f.get(k)) for k in keys)])
        if (length, m) == (20, 26):
            for name in ("algorithm 3", "cvxpy"):
                ratio = f[name] / f["ours"]
                what = f"chain 20, 26, {scale:g}: at least {GOALS[name]:.0f} times faster than {name}"
                verdicts.append(verdict(what, ratio >= GOALS[name], f"{ratio:.0f}"))
            verdicts.append(verdict(f"chain 20, 26, {scale:g}: equal to cvxpy to 1e-7", f["off"] <= 1e-7, f"{f['off']:.1e}"))
            verdicts.append(
                verdict(f"chain 20, 26, {scale:g}: optimality condition to 1e-8", f["gap"] <= 1e-8, f"{f['gap']:.1e}")
            )
    print("\nClique marginals of chains, CPU milliseconds\n")
    head = [
        "T, m, scale",
        "ours",
        "warm",
        "Algorithm 3",
        "its violation",
        "active set",
        "cvxpy",
        "its solver",
        "difference",
        "gap",
    ]
    print(table(head, cells))

    f = in_child("projections:batch", rounds=3 if quick else 9)
    middle, best = median(f["one"]) / median(f["two"]), min(f["one"]) / min(f["two"])
    print(f"\nA hundred chains (20, 26): {1000 * min(f['one']):.0f} ms on one thread, {1000 * min(f['two']):.0f} ms on two\n")
    busiest = f["busiest"][0] / f["busiest"][1]
    figure = f"{middle:.2f} of medians, {best:.2f} of minima, {busiest:.2f} of the busiest thread's CPU seconds"
    verdicts.append(
        verdict("a hundred chains: two threads at least 1.6 times one", max(middle, best) >= GOALS["threads"], figure)
    )
    verdicts.append(verdict("the same on any number of threads", f["same"], "to the last bit" if f["same"] else "they differ"))

    f = in_child("projections:proximal", sizes=PROX_SIZES[:2] if quick else PROX_SIZES)
    print("\nProx of the squared l1 norm, CPU milliseconds\n")
    cells = [[f"{r['n']:,}", f"{r['step']:g}", f"{r['left']:,}", number(r["ms"])] for r in f["rows"]]
    print(table(["n", "step", "entries left", "ms"], cells))
    print("\nOne step with 507 groups, CPU microseconds\n")
    print(table(["operator", "us"], [[name, f"{us:.1f}"] for name, us in f["groups"].items()]))
    us = f["groups"]["squared l1, 507 norms"]
    verdicts.append(verdict("507 groups in 20 us", us <= GOALS["us of 507 norms"], f"{us:.1f} us"))
    print("\n".join(verdicts))


if __name__ == "__main__":
    main()
