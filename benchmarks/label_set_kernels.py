"""Label sets with kernels and scaled features: scores on test sets, and which scale is best in folds of training data.

    python benchmarks/label_set_kernels.py            some ten minutes
    python benchmarks/label_set_kernels.py --quick    one fold, fewer passes

In emotions, yeast and imclef07a most features are not zero; the others are sparse and binary.
Folds: three of at most 3,000 training rows.
"""

import argparse
import time
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table

DENSE, SPARSE = ("emotions", "yeast", "imclef07a"), ("enron", "tmc2007-500")


def load(name: str, folder: str) -> tuple[Any, Any]:
    """The training data and the test data."""
    from structpred.io import read_clus, read_mulan

    if name == "imclef07a":
        files = [f"{folder}/hierarchical_imclef07a/ImCLEF07A_{part}.arff.gz" for part in ("Train", "Test")]
        return read_clus(files[0]), read_clus(files[1])
    at = f"{folder}/multilabel_{name.replace('-', '_')}/{name}"
    return read_mulan(f"{at}-train.arff.gz", f"{at}.xml.gz"), read_mulan(f"{at}-test.arff.gz", f"{at}.xml.gz")


def fitted(data: Any, rows: Any, **settings: Any) -> Any:
    """A model of some rows."""
    from structpred.models import HierarchicalMultiLabel, MultiLabelMRF

    part, common = data.take(rows), {"tol": 0.0, "random_state": 0, **settings}
    if data.hierarchy is not None:
        return HierarchicalMultiLabel(**common).fit(part)
    return MultiLabelMRF(edges="complete" if len(data.label_names) <= 16 else "tree", **common).fit(part)


def scores(model: Any, X: Any, Y: Any) -> list[str]:
    """Micro F1, whole sets, wrong labels, and the gap."""
    import numpy as np

    found, truth = model.predict(X), np.asarray(Y)
    both = int((found & truth).sum())
    micro = 2 * both / (found.sum() + truth.sum())
    gap = model.certificate_.relative_gap
    return [f"{micro:.3f}", f"{(found == truth).all(axis=1).mean():.3f}", f"{(found != truth).mean():.3f}", f"{100 * gap:.0f} %"]


def run(watch: Stopwatch, name: str, folder: str, quick: bool) -> dict[str, Any]:
    """Rows of both tables for a set."""
    import numpy as np

    train, test = load(name, folder)
    passes, few = 3 if quick else 50, np.random.default_rng(0).permutation(len(train))[:3000]
    folds: list[list[str]] = []
    for kernel in (None, "rbf") if name in DENSE else (None,):
        for C in (0.1, 1.0) if kernel is None else (1.0, 10.0):
            for scale in (None, "standard", "maxabs"):
                parts = []
                for k in range(1 if quick else 2):
                    inside, held = few[np.arange(len(few)) % 3 != k], few[np.arange(len(few)) % 3 == k]
                    model = fitted(train, inside, C=C, max_iter=passes, scale=scale, kernel=kernel, n_components=500)
                    rest = train.take(held)
                    parts.append([float(x.removesuffix(" %")) for x in scores(model, rest.X, rest.Y)])
                mean = np.mean(parts, axis=0).tolist()
                folds.append(
                    [name, kernel or "linear", f"{C:g}", str(scale), *(f"{x:.3f}" for x in mean[:3]), f"{mean[3]:.0f} %"]
                )
    tested: list[list[str]] = []
    for settings in ({}, {"kernel": "rbf"}, {"kernel": "polynomial"}) if name in ("emotions", "yeast") else ():
        start = time.process_time()
        model = fitted(train, np.arange(len(train)), C=1.0, max_iter=3 if quick else 30, **settings)
        seconds = time.process_time() - start
        shown = [name, settings.get("kernel", "linear"), str(model._field.n_columns)]
        tested.append([*shown, *scores(model, test.X, test.Y), f"{seconds:.1f} s"])
    return {"folds": folds, "tested": tested}


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick, folder = parser.parse_args().quick, str(data_folder())
    print(machine())
    found = [in_child("label_set_kernels:run", name=name, folder=folder, quick=quick) for name in (*DENSE, *SPARSE)]
    print("\nFolds of training data\n")
    print(
        table(["set", "kernel", "C", "scale", "micro F1", "sets right", "Hamming", "gap"], [r for f in found for r in f["folds"]])
    )
    print("\nTest data, C = 1, 30 passes, defaults\n")
    head = ["set", "kernel", "columns", "micro F1", "sets right", "Hamming", "gap", "CPU"]
    print(table(head, [r for f in found for r in f["tested"]]))


if __name__ == "__main__":
    main()
