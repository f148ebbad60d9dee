"""Label sets and hierarchies: how fast the gap closes, and time and scores beside linear SVMs and nearest neighbours.

    python benchmarks/label_sets.py            some five minutes
    python benchmarks/label_sets.py --quick    one round, fewer passes

Every learner of a set runs in turns with the others, in one process and round after round, on rows of unit norm (those of
emotions are standardised first); times are the minimum and the median of the rounds, CPU seconds of training alone. Linear SVMs
are scikit-learn's LinearSVC at its defaults but for C, one for each label; along a hierarchy their decision values are decoded as
the best sets that it allows.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table

ROUNDS = 3
#: set -> C of the structured models (LinearSVC gets 2 C), passes of the default trainer, edges
SETS: dict[str, tuple[float, int, Any]] = {
    "yeast": (1.0, 20, "complete"), "yeast, tree": (1.0, 12, "tree"), "yeast, no edges": (1.0, 12, []),
    "emotions": (1.0, 10, "complete"), "enron": (1.0, 8, "tree"), "bibtex": (1.0, 8, "tree"), "tmc": (1.0, 8, "tree"),
    "imclef07a": (5.0, 16, None), "imclef07a, whole": (5.0, 16, None), "synthetic": (10.0, 16, None),
}  # fmt: skip
#: set -> settings and passes of the runs whose gaps are shown
GAPS: dict[str, tuple[dict[str, Any], int]] = {
    "yeast": ({}, 64), "yeast, tree": ({}, 32), "emotions": ({}, 128), "enron": ({}, 32),
    "imclef07a": ({"C": 1.0, "require": None}, 32), "imclef07a, paths": ({"C": 1.0, "require": "path"}, 32),
    "synthetic": ({"require": None}, 32), "synthetic, paths": ({"require": "path"}, 32),
}  # fmt: skip


def synthetic(n: int = 2065, n_features: int = 371, n_leaves: int = 360, n_groups: int = 38) -> tuple[Any, Any, Any]:
    """(rows, labels, hierarchy): one leaf a row, of two levels; a row is its leaf's direction, its group's, and noise."""
    import numpy as np

    from structpred.data.hierarchy import LabelHierarchy

    rng = np.random.default_rng(0)
    groups = np.concatenate((np.arange(n_groups), rng.integers(0, n_groups, n_leaves - n_groups)))
    hierarchy = LabelHierarchy.from_parents(np.concatenate((np.full(n_groups, -1), groups)))
    directions = rng.normal(size=(n_leaves, n_features)) + 1.5 * rng.normal(size=(n_groups, n_features))[groups]
    leaves = rng.integers(0, n_leaves, 2 * n)
    Y = np.zeros((2 * n, n_groups + n_leaves), np.int64)
    Y[np.arange(2 * n), n_groups + leaves] = Y[np.arange(2 * n), groups[leaves]] = 1
    return directions[leaves] + 3.0 * rng.normal(size=(2 * n, n_features)), Y, hierarchy


def load(name: str, folder: str) -> tuple[Any, Any, Any, Any, Any]:
    """(X, Y, X of the test set, Y of it, hierarchy or None)."""
    import numpy as np
    from scipy import sparse

    from structpred.io import read_clus, read_mulan

    first = name.split(",")[0]
    if first == "synthetic":
        X, Y, hierarchy = synthetic()
        parts = (X[::2], Y[::2]), (X[1::2], Y[1::2])
    elif first == "imclef07a":
        data = [read_clus(f"{folder}/hierarchical_imclef07a/ImCLEF07A_{part}.arff.gz") for part in ("Train", "Test")]
        hierarchy = data[0].hierarchy
        if "whole" not in name:
            data[0] = data[0].take(np.sort(np.random.default_rng(0).permutation(len(data[0]))[:2000]))
        parts = tuple((one.X, np.asarray(one.Y, dtype=np.int64)) for one in data)
    else:
        names = ("tmc2007_500", "tmc2007-500") if first == "tmc" else (first, first)
        at, hierarchy = f"{folder}/multilabel_{names[0]}/{names[1]}", None
        data = [read_mulan(f"{at}-{part}.arff.gz", f"{at}.xml.gz") for part in ("train", "test")]
        parts = tuple((one.X, np.asarray(one.Y, dtype=np.int64)) for one in data)
    rows = [sparse.csr_array(X, dtype=np.float64) for X, _ in parts]
    if first == "emotions":
        dense = [x.toarray() for x in rows]
        rows = [sparse.csr_array((x - dense[0].mean(axis=0)) / dense[0].std(axis=0)) for x in dense]
    norms = [np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel()) for x in rows]
    X, T = (sparse.csr_array(sparse.diags_array(1.0 / np.where(s > 0, s, 1.0)) @ x) for x, s in zip(rows, norms, strict=True))
    for x in (X, T):
        x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)  # liblinear takes no others
    return X, parts[0][1], T, parts[1][1], hierarchy


def learners(name: str, hierarchy: Any, quick: bool) -> dict[str, Callable[[Any, Any], Callable[[Any], Any]]]:
    """For each learner what trains it, and returns what predicts."""
    import numpy as np
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import LinearSVC

    from structpred.models import HierarchicalMultiLabel, MultiLabelMRF
    from structpred.oracles.label_paths import LabelPaths
    from structpred.oracles.tree_mrf import TreeMRF

    C, passes, edges = SETS[name]
    passes = 2 if quick else passes

    def ours(**settings: Any) -> Callable[[Any, Any], Callable[[Any], Any]]:
        def fit(X: Any, Y: Any) -> Callable[[Any], Any]:
            common: dict[str, Any] = {"C": C, "max_iter": passes, "tol": 0.0, "check_every": 1000, "scale": None, **settings}
            kind = MultiLabelMRF if hierarchy is None else HierarchicalMultiLabel
            own = {"edges": edges} if hierarchy is None else {"hierarchy": hierarchy}
            return kind(**own, **common).fit(X, Y).predict

        return fit

    def svms(decode: Callable[[Any], Any]) -> Callable[[Any, Any], Callable[[Any], Any]]:
        def fit(X: Any, Y: Any) -> Callable[[Any], Any]:
            there = np.flatnonzero(Y.any(axis=0) & ~Y.all(axis=0))
            found = OneVsRestClassifier(LinearSVC(C=2 * C, random_state=0)).fit(X, Y[:, there])

            def predict(T: Any) -> Any:
                scores = np.where(Y.all(axis=0), 1e3, -1e3) * np.ones((T.shape[0], 1))
                scores[:, there] = found.decision_function(T)
                return decode(scores)

            return predict

        return fit

    def along(oracle: Any) -> Callable[[Any], Any]:
        shape = tuple(next(iter(p), -1) for p in hierarchy.parents)

        def decode(scores: Any) -> Any:
            parts = np.stack((np.zeros_like(scores), scores), axis=2).reshape(len(scores), -1)
            if not isinstance(oracle, TreeMRF):
                return np.array([oracle.argmax(row, shape) for row in parts])
            made = HierarchicalMultiLabel(bias=0.0)._field_of(hierarchy, np.ones(hierarchy.n), 1, None)
            fixed = np.zeros(0) if made.fixed is None else made.fixed[2 * hierarchy.n :]
            return np.array([oracle.argmax(np.concatenate((row, fixed)), made.shape) for row in parts])

        return decode

    neighbour = {"1-nearest neighbour": lambda X, Y: KNeighborsClassifier(1).fit(X, Y).predict}
    if name in ("bibtex", "tmc"):  # a minute of distances
        neighbour = {}
    if hierarchy is None:
        return {"default": ours(), "LinearSVC": svms(lambda scores: (scores > 0).astype(np.int64)), **neighbour}
    return {
        "default (paths)": ours(), "closed sets": ours(require=None), "closed sets, some leaf": ours(require="leaf"),
        "LinearSVC, closed sets": svms(along(TreeMRF())), "LinearSVC, paths": svms(along(LabelPaths())), **neighbour,
    }  # fmt: skip


def compare(watch: Stopwatch, name: str, folder: str, rounds: int, quick: bool) -> dict[str, Any]:
    """For each learner its times and scores."""
    from structpred.evaluation import evaluate_multilabel

    X, Y, T, truth, hierarchy = load(name, folder)
    found: dict[str, Any] = {}
    for _ in range(rounds + 1):  # the first one compiles
        for kind, fit in learners(name, hierarchy, quick).items():
            start = time.process_time()
            predict = fit(X, Y)
            found.setdefault(kind, []).append(time.process_time() - start)
            found[f"{kind}:predict"] = predict
    rows = []
    for kind in learners(name, hierarchy, quick):
        scores = evaluate_multilabel(truth, found[f"{kind}:predict"](T))
        rows.append([kind, found[kind][1:], scores.micro_f1, scores.subset_accuracy, scores.accuracy])
    return {"rows": rows}


def gaps(watch: Stopwatch, name: str, folder: str, quick: bool) -> dict[str, Any]:
    """The history of one run."""
    from structpred.models import HierarchicalMultiLabel, MultiLabelMRF

    settings, passes = GAPS[name]
    base = name.split(", paths")[0]
    C, _, edges = SETS[base]
    X, Y, _, _, hierarchy = load(base, folder)
    own: dict[str, Any] = {"edges": edges} if hierarchy is None else {"hierarchy": hierarchy}
    kind = MultiLabelMRF if hierarchy is None else HierarchicalMultiLabel
    passes = 4 if quick else passes
    for n in (1, passes):  # the first run compiles
        common: dict[str, Any] = {"C": C, "max_iter": n, "tol": 0.0, "check_every": max(passes // 4, 1)}
        common |= {"scale": None, **settings}
        model = kind(**common, **own).fit(X, Y)
    return {"history": [row for row in model.history_ if row["primal"] is not None]}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    asked = parser.parse_args()
    folder, rounds = str(data_folder()), 1 if asked.quick else asked.rounds
    print(f"Label sets ({machine()})\n")
    rows: list[list[str]] = []
    for name in GAPS:
        if name.split(", paths")[0] in asked.sets:
            history = in_child("label_sets:gaps", name=name, folder=folder, quick=asked.quick)["history"]
            cells = [f"{row['passes']}, {row['cpu_seconds']:.2f} s: {100 * row['gap'] / row['primal']:.2f} %" for row in history]
            rows.append([name, *cells[-4:], f"{history[-1]['primal']:.4f} / {history[-1]['dual']:.4f}"])
    print(table(["passes, CPU s: gap / primal", "", "", "", "", "primal / dual"], rows), flush=True)
    for name in asked.sets:
        found = in_child("label_sets:compare", name=name, folder=folder, rounds=rounds, quick=asked.quick)["rows"]
        rows = [
            [kind, f"{min(times):.3f} / {statistics.median(times):.3f}", *(f"{score:.3f}" for score in scores)]
            for kind, times, *scores in found
        ]
        print(
            f"\n{name}\n" + table(["learner", "CPU s: min / median", "micro F1", "subset accuracy", "accuracy"], rows), flush=True
        )


if __name__ == "__main__":
    main()
