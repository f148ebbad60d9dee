"""What a pass of SDCA costs with other losses and with sign constraints: ``python benchmarks/signs.py [--only a9a w8a]``.

CPU nanoseconds per non-zero of the early passes over a9a and w8a, before shrinking leaves rows out, beside LinearSVC's; lambda =
1/n, random signs. Then passes and seconds until the proven gap is 1e-4 and 1e-6 of the objective. All in one process, in turns.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

from linear import least, rows_of
from measure import Stopwatch, in_child, machine, table, verdict

TURNS, FEW, MANY = 8, 1, 5
PER_NONZERO, WITH_SIGNS = 1.5, 1.3


def problems(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """X, y, and the problems of each loss with and without signs."""
    import numpy as np

    from structpred.objectives.regularisers.l2 import L2, SignConstraints
    from structpred.objectives.scalar.margins import Hinge, Logistic, SmoothedHinge
    from structpred.rows.linear_task import LinearTask
    from structpred.trainers.problem import Problem

    X, y = rows_of(name)
    task, signs = LinearTask(X, y), np.random.default_rng(0).integers(-1, 2, X.shape[1])
    losses = {"hinge": Hinge(), "smoothed hinge 0.01": SmoothedHinge(0.01), "logistic": Logistic()}
    kinds = {"": L2(), ", signs": SignConstraints(signs)}
    return X, y, {f"{a}{b}": Problem(task, losses[a], 1.0 / len(y), regulariser=kinds[b]) for a in losses for b in kinds}


def measured(watch: Stopwatch, name: str) -> dict[str, Any]:
    """Nanoseconds per non-zero of a pass, and the way to each closeness."""
    from sklearn.svm import LinearSVC

    from structpred.trainers.loop import RunSettings, train
    from structpred.trainers.sdca import SDCA

    warnings.simplefilter("ignore")
    X, y, given = problems(name)

    def passes(problem: Any, most: int) -> Callable[[], Any]:
        return lambda: train(problem, SDCA(), RunSettings(max_iter=most, tol=0.0, check_every=100))

    def peer(most: int) -> Callable[[], Any]:
        model = LinearSVC(loss="hinge", fit_intercept=False, C=1.0, tol=1e-9, max_iter=most, random_state=0)
        return lambda: model.fit(X, y)

    runs = {"LinearSVC, hinge": peer, **{key: (lambda most, p=p: passes(p, most)) for key, p in given.items()}}
    times: dict[str, dict[int, float]] = {key: {FEW: 1e9, MANY: 1e9} for key in runs}
    for make in runs.values():
        make(FEW)()  # compiles, and warms the caches
    for _ in range(TURNS):
        for key, make in runs.items():
            for most in (FEW, MANY):
                times[key][most] = min(times[key][most], least(watch, key, make(most), 1)[0])
    cost = {key: 1e9 * (t[MANY] - t[FEW]) / (MANY - FEW) / X.nnz for key, t in times.items()}
    ways = []
    for key, problem in given.items():
        for tol in (1e-4, 1e-6):
            spent, result = least(
                watch, f"{key} {tol}", lambda p=problem, t=tol: train(p, SDCA(), RunSettings(max_iter=2000, tol=t)), 1
            )
            ways.append([key, tol, result.passes, spent, result.certificate.primal, result.certificate.relative_gap])
    return {"cost": cost, "ways": ways}


def show(name: str) -> list[str]:
    """Print the tables of a file; the verdicts."""
    run = in_child("signs:measured", name=name)
    cost = run["cost"]
    print(f"\n{name}\n\n{table(['a pass', 'ns per non-zero'], [[key, f'{value:.2f}'] for key, value in cost.items()])}\n")
    rows = [
        [key, f"{tol:g}", passes, f"{s:.2f}", f"{value:.8f}", f"{gap:.1e}"] for key, tol, passes, s, value, gap in run["ways"]
    ]
    print(table(["", "tol", "passes", "CPU s", "objective", "proven gap"], rows))
    peer, found = cost["LinearSVC, hinge"], []
    for key in ("hinge", "smoothed hinge 0.01"):
        for told, ratio, most in (
            (f"{key}: a pass <= {PER_NONZERO} x LinearSVC's", cost[key] / peer, PER_NONZERO),
            (f"{key}: signs <= {WITH_SIGNS} x none", cost[f"{key}, signs"] / cost[key], WITH_SIGNS),
        ):
            found.append(verdict(f"{name}, {told}", ratio <= most, f"{ratio:.2f} x"))
    return found


def main() -> None:
    """Print the tables and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=("a9a", "w8a"), default=["a9a", "w8a"])
    print(machine())
    verdicts = [line for name in parser.parse_args().only for line in show(name)]
    print("\n" + "\n".join(verdicts))


if __name__ == "__main__":
    main()
