"""What settings and thresholds do for the scores of label sets, beside RBF machines, one a label and in chains.

    python benchmarks/label_set_scores.py            some fifteen minutes of CPU time
    python benchmarks/label_set_scores.py --quick    emotions alone, few passes

Every learner chooses C, ours its edges, too, by three folds of the training part, by the mean Jaccard accuracy; the test part is
seen once. Features of yeast and emotions are standardised by the training part, those of Enron are 0 and 1. RBF columns are those
of the eigenvectors of the kernel matrix of all training rows, up to 99 % of its trace; gamma is 1 / (features * variance
of all entries) everywhere. Chains are scikit-learn's ClassifierChain over SVC, labels in the order of the data; a label that all
rows have, or none has, is predicted so. Seconds are CPU seconds of the folds and of the final training.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table

SETS = ("emotions", "yeast", "enron")
FOLDS, PASSES = 3, 50
#: of losses of sets, whose trainer is `corrective`
FEW_PASSES = 5
#: learner -> what is fixed, and the C that folds choose from
OURS: dict[str, tuple[dict[str, Any], tuple[float, ...]]] = {
    "as shipped, C = 0.1": ({"plain": True}, (0.1,)),
    "linear": ({}, (0.001, 0.01, 0.1, 1.0, 10.0)),
    "linear, threshold f1": ({"threshold": "f1"}, (0.001, 0.01, 0.1, 1.0, 10.0)),
    "linear, loss f1": ({"loss": "f1"}, (0.01, 0.1, 1.0)),
    "linear, loss subset": ({"loss": "subset"}, (0.01, 0.1, 1.0)),
    "RBF columns": ({"columns": True}, (0.1, 1.0, 10.0)),
    "RBF columns, loss f1": ({"columns": True, "loss": "f1"}, (0.1, 1.0, 10.0)),
    "RBF columns, loss subset": ({"columns": True, "loss": "subset"}, (0.1, 1.0, 10.0)),
    "RBF columns, threshold f1": ({"columns": True, "threshold": "f1"}, (0.1, 1.0, 10.0)),
}
THEIRS = {"SVC, one a label": (0.1, 1.0, 10.0), "chain of SVC": (0.1, 1.0, 10.0)}


def load(name: str, folder: str) -> list[Any]:
    """(X, Y) of the training part and of the test part, X dense and as in the file."""
    import numpy as np

    from structpred.io import read_mulan

    at = f"{folder}/multilabel_{name}/{name}"
    parts = [read_mulan(f"{at}-{part}.arff.gz", f"{at}.xml.gz") for part in ("train", "test")]
    return [part for one in parts for part in (one.X.toarray(), np.asarray(one.Y, dtype=np.int64))]


def width(X: Any) -> float:
    """Gamma, as scikit-learn's "scale" has it."""
    return float(1.0 / (X.shape[1] * X.var()))


def columns(X: Any) -> Callable[[Any], Any]:
    """What turns rows into coordinates of the RBF kernel over the rows X."""
    import numpy as np
    from sklearn.metrics.pairwise import rbf_kernel

    gamma = width(X)
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=gamma))
    values, vectors = values[::-1], vectors[:, ::-1]
    n = int(np.searchsorted(np.cumsum(values), 0.99 * values.sum())) + 1
    root = vectors[:, :n] / np.sqrt(values[:n])
    return lambda rows: rbf_kernel(rows, X, gamma=gamma) @ root


def ours(settings: dict[str, Any], quick: bool) -> Callable[..., Any]:
    """What trains a MultiLabelMRF, and returns what gives labels and scores."""
    from structpred.models import MultiLabelMRF

    def fit(X: Any, Y: Any, C: float, edges: Any) -> Any:
        own = {name: value for name, value in settings.items() if name in ("threshold", "loss")}
        passes = 3 if quick else FEW_PASSES if "loss" in own else PASSES
        of = columns(X) if "columns" in settings else lambda rows: rows
        model = MultiLabelMRF(C=C, edges=edges, max_iter=passes, tol=0.01, random_state=0, **own).fit(of(X), Y)
        return lambda rows: (model.predict(of(rows)), model.predict_scores(of(rows)))

    return fit


def theirs(chained: bool) -> Callable[..., Any]:
    """The same of scikit-learn's."""
    import numpy as np
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.multioutput import ClassifierChain
    from sklearn.svm import SVC

    class Machine(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        """An SVC, which takes one class alone, too."""

        def __init__(self, C: float = 1.0, gamma: float = 1.0) -> None:
            self.C, self.gamma = C, gamma

        def fit(self, X: Any, y: Any) -> "Machine":
            self.classes_ = np.unique(y)
            if len(self.classes_) > 1:
                self.svc_ = SVC(C=self.C, gamma=self.gamma, cache_size=500).fit(X, y)
            return self

        def decision_function(self, X: Any) -> Any:
            alone = np.full(X.shape[0], 1e3 if self.classes_[0] else -1e3)
            return alone if len(self.classes_) == 1 else self.svc_.decision_function(X)

        def predict(self, X: Any) -> Any:
            return (self.decision_function(X) > 0).astype(int)

    def fit(X: Any, Y: Any, C: float, edges: Any) -> Any:
        one = Machine(C, width(X))
        if chained:
            chain = ClassifierChain(one, order=None).fit(X, Y)
            return lambda rows: (chain.predict(rows).astype(int), chain.decision_function(rows))
        machines = [Machine(C, one.gamma).fit(X, y) for y in Y.T]

        def labels_and_scores(rows: Any) -> Any:
            scores = np.stack([machine.decision_function(rows) for machine in machines], axis=1)
            return (scores > 0).astype(int), scores

        return labels_and_scores

    return fit


def compare(watch: Stopwatch, name: str, learner: str, folder: str, quick: bool) -> dict[str, Any]:
    """A learner on a set: the C and the edges that the folds choose, and the scores on the test part."""
    import numpy as np

    from structpred.evaluation import evaluate_multilabel

    X, Y, T, U = load(name, folder)
    settings, several = OURS.get(learner, ({}, THEIRS.get(learner, ())))
    if name != "enron" and "plain" not in settings:
        mean, size = X.mean(axis=0), X.std(axis=0)
        X, T = ((rows - mean) / np.where(size > 0, size, 1.0) for rows in (X, T))
    usual = "complete" if Y.shape[1] <= 16 else "tree"
    edges: tuple[Any, ...] = (usual,) if "plain" in settings else ([], usual) if learner in OURS else (None,)
    fit = ours(settings, quick) if learner in OURS else theirs("chain" in learner)
    start, tried = time.process_time(), [(C, joined) for joined in edges for C in several]
    fold = np.random.default_rng(0).permutation(len(Y)) % FOLDS

    def folded(C: float, joined: Any) -> float:
        found = [(Y[fold == k], fit(X[fold != k], Y[fold != k], C, joined)(X[fold == k])[0]) for k in range(FOLDS)]
        return float(np.mean([evaluate_multilabel(truth, guess).accuracy for truth, guess in found]))

    C, joined = max(tried, key=lambda one: folded(*one)) if len(tried) > 1 else tried[0]
    predict = fit(X, Y, C, joined)
    seconds = time.process_time() - start
    labels, scores = predict(T)
    found = evaluate_multilabel(U, labels, scores=scores)
    chosen = f"{C:g}" + ("" if joined is None else f", {joined or 'no edges'}")
    figures = (found.micro_f1, found.example_f1, found.macro_f1, found.accuracy, found.subset_accuracy, found.label_loss)
    return {"row": [learner, chosen, *(f"{x:.3f}" for x in figures), f"{found.au_prc:.3f}", f"{seconds:.1f}"]}


def main() -> None:
    """Print a table a set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", nargs="*", choices=SETS)
    parser.add_argument("--learners", nargs="*", default=[*OURS, *THEIRS], choices=[*OURS, *THEIRS])
    asked = parser.parse_args()
    print(f"Scores of label sets ({machine()})")
    scores = ["micro F1", "example F1", "macro F1", "Jaccard", "subset", "Hamming", "AU(PRC)", "CPU s"]
    for name in asked.sets or (SETS[:1] if asked.quick else SETS):
        call = {"name": name, "folder": str(data_folder()), "quick": asked.quick}
        rows = [in_child("label_set_scores:compare", learner=one, **call)["row"] for one in asked.learners]
        print(f"\n{name}\n" + table(["learner", "chosen by folds", *scores], rows), flush=True)


if __name__ == "__main__":
    main()
