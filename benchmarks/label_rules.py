"""Rules for outputs along a hierarchy: what "auto" finds, and what it gains over closed sets, in labels and in time.

    python benchmarks/label_rules.py            some two minutes

ImCLEF07A has one path to a leaf in each row. In its cut version one row in five, drawn at random among the training rows, ends a
level higher; test rows are cut alike. Enron has sets of labels. Times are CPU seconds of one core, after compiling.
"""

import argparse
import time
from typing import Any

from measure import data_folder, machine, table


def cut(data: Any, seed: int, share: float = 0.2) -> Any:
    """Rows of labels, a share of them without their leaf."""
    import numpy as np

    Y, leaves = np.array(data.Y, dtype=np.int64), np.array([not below for below in data.hierarchy.children])
    deep = (Y[:, leaves] == 1).any(axis=1) & (Y.sum(axis=1) > 1)
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(deep))[: int(share * len(Y))]
    Y[np.ix_(chosen, leaves)] = 0
    return Y


def run(name: str, X: Any, Y: Any, T: Any, truth: Any, hierarchy: Any, **settings: Any) -> list[str]:
    """A row of the table."""
    from structpred.evaluation import evaluate_multilabel
    from structpred.models import HierarchicalMultiLabel

    common: dict[str, Any] = {"max_iter": 30, "tol": 0.0, "check_every": 30, "scale": "standard", "random_state": 0}
    start = time.process_time()
    model = HierarchicalMultiLabel(hierarchy=hierarchy, **{**common, **settings}).fit(X, Y)
    seconds = time.process_time() - start
    found = evaluate_multilabel(truth, model.predict(T))
    start = time.process_time()
    model.predict_scores(T)
    scored = 1e6 * (time.process_time() - start) / T.shape[0]
    assert all(row["gap"] is None or row["gap"] >= 0.0 for row in model.history_)
    gap = 100 * model.certificate_.gap / model.certificate_.primal
    figures = f"{found.micro_f1:.3f}", f"{found.example_f1:.3f}", f"{found.subset_accuracy:.3f}", f"{gap:.1f} %"
    return [name, f"{settings.get('C')}", str(model.require_), *figures, f"{seconds:.1f}", f"{scored:.0f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainers", action="store_true", help="bcfw, n_slack and sgd, too, on 500 rows that are cut")
    options = parser.parse_args()
    import numpy as np

    from structpred.io import read_clus

    folder = f"{data_folder()}/hierarchical_"
    image = [read_clus(f"{folder}imclef07a/ImCLEF07A_{part}.arff.gz") for part in ("Train", "Test")]
    mail = [read_clus(f"{folder}enron_corr/Enron_corr_{part}.arff.gz") for part in ("trainvalid", "test")]
    whole = [np.asarray(one.Y, dtype=np.int64) for one in image]
    shorter = [cut(one, seed) for seed, one in enumerate(image)]
    sets = [np.asarray(one.Y, dtype=np.int64) for one in mail]
    rows = []
    run("compiles", image[0].X[:50], shorter[0][:50], image[1].X[:9], shorter[1][:9], image[0].hierarchy, C=0.1)
    for name, data, (Y, truth), rules in (
        ("ImCLEF07A", image, whole, ("auto", None)),
        ("ImCLEF07A, 20 % cut", image, shorter, ("auto", "trees", None)),
        ("Enron", mail, sets, ("auto", "leaf")),
    ):
        for C in (0.01, 0.1):
            for require in rules:
                if require == "leaf":  # two rows have none
                    kept = Y[:, [not below for below in data[0].hierarchy.children]].any(axis=1)
                    X, own = data[0].X[np.flatnonzero(kept)], Y[kept]
                else:
                    X, own = data[0].X, Y
                rows.append(run(name, X, own, data[1].X, truth, data[0].hierarchy, C=C, require=require))
    for trainer in ("marginal_bcfw", "bcfw", "n_slack", "sgd") if options.trainers else ():
        few, test = np.random.default_rng(2).permutation(len(shorter[0]))[:500], (image[1].X, shorter[1], image[0].hierarchy)
        settings: dict[str, Any] = {"trainer": trainer, "C": 0.1, "max_iter": 8, "check_every": 1}
        rows.append(run(f"cut, {trainer}", image[0].X[few], shorter[0][few], *test, **settings))
    print(machine())
    heads = ["data", "C", "rule", "micro F1", "example F1", "whole sets", "gap", "CPU s", "us a row, predict_scores"]
    print(table(heads, rows))


if __name__ == "__main__":
    main()
