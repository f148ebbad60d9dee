"""One label out of many: ``python benchmarks/multiclass.py``, compared with LinearSVC(multi_class="crammer_singer").

Texts of 50 words from 20,000, made here: a text takes some of its words from those that its class prefers, the others from all by
Zipf's law; rows have length one. Both minimise 1/2 |W|^2 + C sum_i max_l ((l != y_i) + <w_l - w_{y_i}, x_i>), C = 1, without
intercepts, in one process, one after the other.
"""

import argparse
from typing import Any

from measure import Stopwatch, in_child, machine, table, verdict

SIZES = [(2_000, 100), (3_000, 1_000)]
WORDS, LENGTH, PREFERRED, SHARE = 20_000, 50, 8, 0.43
CLOSE, SLOWER = 1e-3, 3.0


def texts(n: int, n_classes: int, seed: int = 0) -> tuple[Any, Any]:
    """A CSR matrix with a row of length one a text, and the classes, numbered without holes."""
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    preferred = rng.integers(0, WORDS, (n_classes, PREFERRED))
    zipf = 1.0 / np.arange(1, WORDS + 1)
    common = rng.choice(WORDS, (n, LENGTH), p=zipf / zipf.sum())
    own = preferred[y[:, None], rng.integers(0, PREFERRED, (n, LENGTH))]
    words = np.where(rng.random((n, LENGTH)) < SHARE, own, common)
    X = sparse.csr_matrix((np.ones(n * LENGTH), (np.repeat(np.arange(n), LENGTH), words.ravel())), shape=(n, WORDS))
    X.sum_duplicates()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sparse.csr_matrix(X.multiply(1.0 / lengths[:, None])), np.unique(y, return_inverse=True)[1]


def objective(W: Any, X: Any, y: Any) -> float:
    """The objective divided by n; W has a column per class."""
    import numpy as np

    scores, here = X @ W, np.arange(len(y))
    margins = scores + 1.0 - scores[here, y][:, None]
    margins[here, y] = 0.0
    return float((0.5 * (W**2).sum() + margins.max(axis=1).sum()) / len(y))


def both(watch: Stopwatch, n: int, n_classes: int) -> dict[str, Any]:
    """The objectives of both; the seconds are in the sections."""
    import warnings

    import numpy as np
    from sklearn.svm import LinearSVC

    from structpred import LabelRows
    from structpred.models import StructuredPredictor
    from structpred.oracles.multiclass import MulticlassOracle

    warnings.simplefilter("ignore", FutureWarning)
    settings: dict[str, Any] = {"trainer": "projected_ascent", "max_iter": 200, "tol": CLOSE, "check_every": 5}
    small, few = texts(20, 3)  # compiles what is compiled on first use
    StructuredPredictor(MulticlassOracle(), **settings).fit(LabelRows(small, 3), few[:, None])
    X, y = texts(n, n_classes)
    k = int(y.max()) + 1
    with watch("LinearSVC"):
        peer = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=1.0, max_iter=10_000).fit(X, y)
    with watch("structpred"):
        ours = StructuredPredictor(MulticlassOracle(), C=1.0, **settings).fit(LabelRows(X, k), y[:, None])
    W = np.asarray(ours.coef_, dtype=np.float64).reshape(-1, k)
    found = {"LinearSVC": objective(peer.coef_.T, X, y), "structpred": objective(W, X, y)}
    bounds = ours.certificate_.primal, ours.certificate_.dual
    return {"found": found, "passes": ours.n_iter_, "bounds": bounds, "nonzeros": X.nnz / n, "classes": k}


def main() -> None:
    """Print the table and the verdicts."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rows, verdicts = [], []
    for n, n_classes in SIZES:
        run = in_child("multiclass:both", n=n, n_classes=n_classes)
        value, peer = run["found"]["structpred"], run["found"]["LinearSVC"]
        seconds, others = run["seconds"]["structpred"], run["seconds"]["LinearSVC"]
        shown = [f"{peer:.6f}", f"{others:.1f}", f"{value:.6f}", f"{run['bounds'][1]:.6f}", run["passes"], f"{seconds:.1f}"]
        rows.append([f"{n:,}", f"{run['classes']:,}", *shown, f"{seconds / others:.2f}"])
        name = f"{n:,} texts, {n_classes:,} classes"
        verdicts.append(
            verdict(f"{name}: LinearSVC's objective to a thousandth", value <= (1 + CLOSE) * peer, f"{value / peer:.5f}")
        )
        if n_classes == 1_000:
            verdicts.append(verdict(f"{name}: CPU <= {SLOWER:.0f} x", seconds <= SLOWER * others, f"{seconds / others:.2f} x"))
    print(f"\nMulticlass, C = 1, {WORDS:,} words, {LENGTH} a text ({machine()})\n")
    print(
        table(
            ["texts", "classes", "LinearSVC: objective / n", "CPU s", "structpred: primal", "dual", "passes", "CPU s", "x"], rows
        )
    )
    print("\n" + "\n".join(verdicts))


if __name__ == "__main__":
    main()
