"""Linear support vector machines beside liblinear (scikit-learn's LinearSVC): ``python benchmarks/linear.py [--only PART ...]``.

Two classes: a9a and w8a, hinge, C = 1, no intercept. CPU seconds of a whole fit until the objective is within a share of the
optimum; LinearSVC is run again with more and more iterations until it is, and the run that got there counts. Many classes: vowel,
and made-up texts of 1,000 classes, against multi_class="crammer_singer". All runs of a part in one process, in turns, the least
of three counts.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table, verdict
from multiclass import objective, texts

LADDER = (25, 50, 75, 100, 150, 200, 300, 500, 1_000, 2_000, 3_000, 4_000, 6_000, 10_000, 20_000)
CLOSE = (1e-3, 1e-6)
TURNS = 3
PER_NONZERO = 1.5


def rows_of(name: str) -> tuple[Any, Any]:
    """A LIBSVM file of the data folder, as scikit-learn reads it."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(next(data_folder().glob(f"*/{name}.gz"))))
    X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")
    return X, y


def vowel() -> tuple[Any, Any]:
    """The training rows of vowel: two numbers that say how many, then ten features and a class a line."""
    import gzip

    import numpy as np

    with gzip.open(data_folder() / "multiclass_vowel" / "vowel.train.gz", "rt") as lines:
        table = np.loadtxt(lines, skiprows=2)
    return table[:, :-1], table[:, -1]


def least(watch: Stopwatch, name: str, call: Callable[[], Any], turns: int = TURNS) -> tuple[float, Any]:
    """The least CPU seconds of several calls, and what the last one returned."""
    times, found = [], None
    for _ in range(turns):
        before = watch.seconds.get(name, 0.0)
        with watch(name):
            found = call()
        times.append(watch.seconds[name] - before)
    return min(times), found


def two(watch: Stopwatch, name: str) -> dict[str, Any]:
    """Seconds of both until each closeness, and the cost of a pass per non-zero in nanoseconds."""
    import numpy as np
    from sklearn.svm import LinearSVC

    from structpred.models import LinearClassifier
    from structpred.rows.linear_task import LinearTask

    warnings.simplefilter("ignore")
    X, y = rows_of(name)
    task = LinearTask(X, y)

    def peer(most: int) -> Any:
        return LinearSVC(loss="hinge", fit_intercept=False, C=1.0, tol=1e-9, max_iter=most, random_state=0).fit(X, y)

    def ours(tol: float, **settings: Any) -> Any:
        return LinearClassifier(fit_intercept=False, C=1.0, tol=tol, **{"max_iter": 5_000, **settings}).fit(X, y)

    def primal(model: Any) -> float:
        w = model.coef_.ravel()
        return float(0.5 * w @ w / len(y) + np.maximum(0.0, 1.0 - task.margins(w)).mean())

    best = ours(1e-11).certificate_.dual  # compiles, too
    found: dict[str, Any] = {"n": len(y), "close": []}
    for close in CLOSE:
        most = next((k for k in LADDER if primal(peer(k)) <= (1.0 + close) * best), LADDER[-1])
        others = least(watch, "LinearSVC", partial(peer, most))
        mine = least(watch, "structpred", partial(ours, close))
        gap = mine[1].certificate_.relative_gap
        found["close"].append([close, others[0], mine[0], most, mine[1].n_iter_, gap, primal(others[1]) / best - 1.0])
    w, shares = ours(1e-2).coef_.ravel(), np.full(len(y), 1.0 / len(y))
    runs = {
        "LinearSVC, an iteration": lambda: peer(21),
        "without": lambda: peer(1),
        "fused pass": lambda: [task.terms(w, np.arange(len(y)), shares) for _ in range(20)],
        "scores": lambda: [task.margins(w) for _ in range(20)],
        "sdca": lambda: ours(0.0, max_iter=21, check_every=100),
        "sdca without": lambda: ours(0.0, max_iter=1, check_every=100),
    }
    cost = {key: least(watch, key, call, 2 * TURNS)[0] / 20 for key, call in runs.items()}
    cost["LinearSVC, an iteration"] -= cost.pop("without")
    cost["sdca"] -= cost.pop("sdca without")
    found["nanoseconds"] = {key: 1e9 * value / X.nnz for key, value in cost.items()}
    return found


def many(watch: Stopwatch, name: str) -> dict[str, Any]:
    """Seconds and objectives of both for more than two classes."""
    from sklearn.svm import LinearSVC

    from structpred.models import LinearClassifier

    warnings.simplefilter("ignore")
    X, y = vowel() if name == "vowel" else texts(3_000, 1_000)
    small, few = texts(20, 3)
    LinearClassifier(max_iter=2).fit(small, few)  # compiles what is compiled on first use
    codes = y.astype("int64") - int(y.min())
    turns, rows = TURNS if name == "vowel" else 1, []
    for tol in (1e-2, 1e-4, 1e-5):
        settings: dict[str, Any] = {"multi_class": "crammer_singer", "fit_intercept": False, "max_iter": 100_000, "tol": tol}
        spent, model = least(watch, "peer", partial(LinearSVC(random_state=0, **settings).fit, X, codes), turns)
        rows.append(["LinearSVC", tol, spent, objective(model.coef_.T, X, codes), None])
    for tol in CLOSE:
        own = LinearClassifier(fit_intercept=False, tol=tol, max_iter=5_000)
        spent, model = least(watch, "ours", partial(own.fit, X, codes), turns)
        rows.append(["structpred", tol, spent, objective(model.coef_.T, X, codes), model.certificate_.dual])
    return {"rows": rows}


def show_two(name: str) -> list[str]:
    """Print the tables of a two-class problem; the verdicts."""
    run = in_child("linear:two", name=name)
    head = [
        "objective within",
        "LinearSVC CPU s",
        "structpred CPU s",
        "x",
        "its iterations",
        "our passes",
        "our proven gap",
        "its own",
    ]
    rows, verdicts = [], []
    for close, peer, ours, most, passes, gap, within in run["close"]:
        cells = [f"{peer:.3f}", f"{ours:.3f}", f"{ours / peer:.2f}", most, passes, f"{gap:.1e}", f"{within:.1e}"]
        rows.append([f"{close:g}", *cells])
        if close == CLOSE[-1]:
            verdicts.append(verdict(f"{name}: {close:g} with a proof in LinearSVC's time", ours <= peer, f"{ours / peer:.2f} x"))
    print(f"\n{name}\n\n{table(head, rows)}\n")
    cost = run["nanoseconds"]
    print(table(["a pass over the rows", "ns per non-zero"], [[key, f"{value:.2f}"] for key, value in cost.items()]))
    ratio = cost["fused pass"] / cost["LinearSVC, an iteration"]
    return [*verdicts, verdict(f"{name}: a fused pass <= {PER_NONZERO} x LinearSVC's", ratio <= PER_NONZERO, f"{ratio:.2f} x")]


def show_many(name: str) -> list[str]:
    """Print the table of a problem of many classes; the verdict."""
    rows = in_child("linear:many", name=name)["rows"]
    shown = [
        [who, f"{tol:g}", f"{s:.2f}", f"{value:.9f}", "" if dual is None else f"{dual:.9f}"] for who, tol, s, value, dual in rows
    ]
    print(f"\n{name}\n\n{table(['', 'tol', 'CPU s', 'objective / n', 'dual'], shown)}")
    *_, (_, _, ours, value, dual) = rows
    peers = [s for who, _, s, found, _ in rows if who == "LinearSVC" and found <= (1 + CLOSE[-1]) * dual]
    same = verdict(f"{name}: the optimum to a millionth", value <= (1 + CLOSE[-1]) * dual, f"{value / dual - 1:.1e}")
    peer = min(peers, default=max(row[2] for row in rows if row[0] == "LinearSVC"))
    return [same, verdict(f"{name}: not slower than LinearSVC where it is as close", ours <= peer, f"{ours / peer:.2f} x")]


PARTS: dict[str, Callable[[str], list[str]]] = {"a9a": show_two, "w8a": show_two, "vowel": show_many, "texts": show_many}


def main() -> None:
    """Print the tables and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    print(machine())
    verdicts = [line for name in parser.parse_args().only for line in PARTS[name](name)]
    print("\n" + "\n".join(verdicts))


if __name__ == "__main__":
    main()
