"""Label sets with RBF kernels beside nearest neighbours, RBF machines, chains of them and random forests, in one run.

    python benchmarks/label_set_kernels.py            some thirty minutes of CPU time; --sets, --learners
    python benchmarks/label_set_kernels.py --quick    emotions, few passes

Three folds of the training part choose C and gamma of the kernels: along a hierarchy by AU(PRC), elsewhere by the sum of subset
accuracy and micro F1. The folds of ImCLEF07A are of 1,500 of its rows, and its kernel has at most 1,500 columns in structpred.
The test part is seen once. Dense features are standardised by the training part; gamma is a multiple of 1 / (features *
variance of all entries). Chains are scikit-learn's ClassifierChain over SVC, the mean of three random orders of the labels;
a label that all rows have, or none has, is predicted so. Along a hierarchy scikit-learn's labels are the best path where all
rows are one, else their ancestors are added. The log loss, slow along paths of 96 labels, is left out on ImCLEF07A. CPU seconds.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table

SETS = ("emotions", "enron", "yeast", "imclef07a")
FOLDS, ROWS, ORDERS = 3, 1500, 3
FIGURES = ("au_prc", "micro_f1", "subset_accuracy", "label_loss", "accuracy")
GRID = [{"C": C, "gamma": gamma} for gamma in (0.3, 1.0) for C in (1.0, 10.0)]
#: for each learner what folds choose from
LEARNERS: dict[str, list[dict[str, Any]]] = {
    "structpred, margin": GRID,
    "structpred, log loss": GRID,
    "1-nearest neighbour": [{}],
    "SVC, one a label": GRID,
    "chain of SVC": GRID,
    "random forest": [{}],
}
#: what predicts: for each way to decode, pairs of labels and scores, one for each of several models
Predict = Callable[[Any], dict[str, list[tuple[Any, Any]]]]


def load(name: str, folder: str) -> tuple[Any, Any]:
    """The training data and the test data."""
    from structpred.io import read_clus, read_mulan

    if name in ("enron", "imclef07a"):
        at = {"enron": "hierarchical_enron_corr/Enron_corr", "imclef07a": "hierarchical_imclef07a/ImCLEF07A"}[name]
        parts = ("trainvalid", "test") if name == "enron" else ("Train", "Test")
        train, test = (read_clus(f"{folder}/{at}_{part}.arff.gz") for part in parts)
        return train, test
    at = f"{folder}/multilabel_{name}/{name}"
    return read_mulan(f"{at}-train.arff.gz", f"{at}.xml.gz"), read_mulan(f"{at}-test.arff.gz", f"{at}.xml.gz")


def scaled(train: Any) -> tuple[Any, float]:
    """What makes dense rows, standardised where most entries are not zero; and gamma = 1 / (features * variance)."""
    import numpy as np

    X = train.X.toarray()
    mean, size = (X.mean(axis=0), X.std(axis=0)) if train.X.nnz > 0.5 * X.size else (np.zeros(1), np.ones(1))
    size = np.where(size > 0, size, 1.0)
    return lambda rows: (rows.toarray() - mean) / size, float(1.0 / (X.shape[1] * ((X - mean) / size).var()))


def ours(train: Any, quick: bool, log_loss: bool, *, C: float, gamma: float) -> Predict:
    """MultiLabelMRF, or HierarchicalMultiLabel."""
    from structpred.models import HierarchicalMultiLabel, MultiLabelMRF

    kind = MultiLabelMRF if train.hierarchy is None else HierarchicalMultiLabel
    n_components = ROWS if len(train) > ROWS else 0.99
    model = kind(
        "oeg" if log_loss else None, C=C, max_iter=2 if quick else 50, tol=0.01, random_state=0, kernel="rbf",
        gamma=gamma * scaled(train)[1], n_components=n_components,
    ).fit(train)  # fmt: skip

    def predict(rows: Any) -> dict[str, list[tuple[Any, Any]]]:
        if not log_loss:
            return {"": [(model.predict(rows), model.predict_scores(rows))]}
        p = model.predict_marginals(rows)
        return {", best set": [(model.predict(rows), p)], ", labels with p > .5": [((p > 0.5).astype(int), p)]}

    return predict


def machines(train: Any, chained: bool, *, C: float, gamma: float) -> Predict:
    """One SVC a label, which share the kernel matrix, or chains of them."""
    import numpy as np
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.multioutput import ClassifierChain
    from sklearn.svm import SVC

    class Machine(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        """An SVC, which takes one class alone, too."""

        def __init__(self, C: float = 1.0, gamma: float = 1.0, kernel: str = "rbf") -> None:
            self.C, self.gamma, self.kernel = C, gamma, kernel

        def fit(self, X: Any, y: Any) -> "Machine":
            self.classes_ = np.unique(y)
            if len(self.classes_) > 1:
                self.svc_ = SVC(C=self.C, gamma=self.gamma, kernel=self.kernel, cache_size=500).fit(X, y)
            return self

        def decision_function(self, X: Any) -> Any:
            alone = np.full(X.shape[0], 1e3 if self.classes_[0] else -1e3)
            return alone if len(self.classes_) == 1 else self.svc_.decision_function(X)

        def predict(self, X: Any) -> Any:
            return (self.decision_function(X) > 0).astype(int)

    of, width = scaled(train)
    X, Y, one = of(train.X), np.asarray(train.Y, dtype=np.int64), Machine(C, gamma * width)
    if chained:
        chains = [ClassifierChain(one, order="random", random_state=k).fit(X, Y) for k in range(ORDERS)]
        return lambda rows: {"": [(c.predict(of(rows)).astype(int), c.decision_function(of(rows))) for c in chains]}
    K = rbf_kernel(X, gamma=one.gamma)
    alone = [Machine(C, kernel="precomputed").fit(K, y) for y in Y.T]

    def predict(rows: Any) -> dict[str, list[tuple[Any, Any]]]:
        similar = rbf_kernel(of(rows), X, gamma=one.gamma)
        return decoded(train, np.stack([own.decision_function(similar) for own in alone], axis=1))

    return predict


def averages(train: Any, neighbours: bool) -> Predict:
    """The nearest neighbour, or a forest: shares of rows with the label."""
    import numpy as np
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.neighbors import KNeighborsRegressor

    kind = KNeighborsRegressor(1) if neighbours else RandomForestRegressor(100, max_features="sqrt", random_state=0)
    of, _ = scaled(train)
    found = kind.fit(of(train.X), np.asarray(train.Y, dtype=np.float64))
    return lambda rows: decoded(train, found.predict(of(rows)) - 0.5)


def decoded(train: Any, scores: Any) -> dict[str, list[tuple[Any, Any]]]:
    """Labels of scores, positive where a label is rather on."""
    import numpy as np

    from structpred.oracles.label_paths import LabelPaths

    found = (scores > 0).astype(int)
    if train.hierarchy is not None:
        shape = tuple(next(iter(above), -1) for above in train.hierarchy.parents)
        found = train.hierarchy.closed(found).astype(int)
        if (np.asarray(train.Y).sum(axis=1) == 1 + train.hierarchy.depths.max()).all():
            pairs = np.stack((np.zeros_like(scores), scores), axis=2).reshape(len(scores), -1)
            found = np.array([LabelPaths().argmax(row, shape) for row in pairs])
    return {"": [(found, scores)]}


def fitted(learner: str, train: Any, quick: bool, settings: dict[str, Any]) -> Predict:
    """What predicts after training on these data."""
    if learner.startswith("structpred"):
        return ours(train, quick, "log" in learner, **settings)
    return machines(train, "chain" in learner, **settings) if "SVC" in learner else averages(train, "1-" in learner)


def judged(predict: Predict, data: Any) -> dict[str, list[float]]:
    """FIGURES for each way to decode, means over models."""
    import numpy as np

    from structpred.evaluation import evaluate_multilabel

    found = {}
    for way, pairs in predict(data.X).items():
        each = [evaluate_multilabel(data.Y, labels, scores=scores) for labels, scores in pairs]
        found[way] = np.mean([[getattr(one, name) for name in FIGURES] for one in each], axis=0).tolist()
    return found


def compare(watch: Stopwatch, name: str, learner: str, folder: str, quick: bool, rows: int, fold_rows: int) -> dict[str, Any]:
    """A row of the table for each way to decode; what folds choose by is the first way's."""
    import numpy as np

    (train, test), several = load(name, folder), LEARNERS[learner]
    train = train.take(np.sort(np.random.default_rng(0).permutation(len(train))[:rows]))
    order = np.random.default_rng(0).permutation(len(train))[:fold_rows]
    fold = np.arange(len(order)) % FOLDS

    def folded(settings: dict[str, Any]) -> float:
        total = 0.0
        for k in range(FOLDS):
            inside = fold != k
            kept, held = train.take(order[inside]), train.take(order[~inside])
            figures = next(iter(judged(fitted(learner, kept, quick, settings), held).values()))
            total += figures[0] if train.hierarchy is not None else figures[1] + figures[2]
        return total

    start = time.process_time()
    chosen = max(several, key=folded) if len(several) > 1 else several[0]
    folds, start = time.process_time() - start, time.process_time()
    predict = fitted(learner, train, quick, chosen)
    times = [f"{folds:.0f}", f"{time.process_time() - start:.1f}"]
    shown = ", ".join(f"{key} {value:g}" if isinstance(value, float) else str(value) for key, value in chosen.items())
    lines = [[learner + way, shown, *(f"{x:.3f}" for x in row), *times] for way, row in judged(predict, test).items()]
    return {"rows": lines}


def main() -> None:
    """Print a table a set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", nargs="*", choices=SETS)
    parser.add_argument("--rows", type=int, default=100_000, help="at most so many training rows")
    parser.add_argument("--fold-rows", type=int, default=ROWS, help="at most so many of them in the folds")
    parser.add_argument("--learners", nargs="*", default=[*LEARNERS], choices=[*LEARNERS])
    asked = parser.parse_args()
    print(f"Label sets with RBF kernels ({machine()})")
    head = ["learner", "chosen by folds", "AU(PRC)", "micro F1", "subset", "Hamming", "Jaccard", "CPU s: folds", "training"]
    for name in asked.sets or (("emotions",) if asked.quick else SETS):
        call = {
            "name": name,
            "folder": str(data_folder()),
            "quick": asked.quick,
            "rows": asked.rows,
            "fold_rows": asked.fold_rows,
        }
        without = {"enron": "chain of SVC", "imclef07a": "chain of SVC, structpred, log loss"}.get(name, "")
        kinds = [one for one in asked.learners if one not in without]
        rows = [row for one in kinds for row in in_child("label_set_kernels:compare", learner=one, **call)["rows"]]
        print(f"\n{name}\n" + table(head, rows), flush=True)


if __name__ == "__main__":
    main()
