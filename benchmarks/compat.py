"""compat.CRF compared with CRFsuite on CoNLL-2000: ``python benchmarks/compat.py [--quick]``.

Both get the same Python lists of feature strings in memory (the template of CRFsuite's chunking example), each fit in a process
of its own. CPU seconds are of `fit` alone: CRFsuite's include filling its trainer, ours packing the lists. The peer is
python-crfsuite, which is what sklearn-crfsuite's fit calls.

--quick takes 1,000 training sentences.
"""

import argparse
import shutil
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, scratch_folder, table, verdict

#: name -> parameters of CRF; CRFsuite's names for them are below
SETTINGS: dict[str, dict[str, Any]] = {
    "lbfgs": {"algorithm": "lbfgs"},
    "lbfgs, c1 = c2 = 0.1, 100 iterations": {
        "algorithm": "lbfgs", "c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True,
    },
    "l2sgd": {"algorithm": "l2sgd"},
    "ap, 10 iterations": {"algorithm": "ap", "max_iterations": 10},
    "pa, 10 iterations": {"algorithm": "pa", "max_iterations": 10},
    "arow, 10 iterations": {"algorithm": "arow", "max_iterations": 10},
}  # fmt: skip
NAMES = {"all_possible_transitions": "feature.possible_transitions"}


def ours(watch: Stopwatch, train_file: str, test_file: str, settings: dict[str, Any], limit: int | None) -> dict[str, Any]:
    """Fit and tag with compat.CRF. The kernels are compiled before."""
    from peers.crfsuite import chunking_features, read_conll

    from structpred.compat import CRF

    X, y, X_test, gold = _corpora(read_conll, chunking_features, train_file, test_file, limit)
    CRF(**{**settings, "max_iterations": 2}).fit(X[:50], y[:50])
    with watch("fit"):
        crf = CRF(**settings).fit(X, y)
    last = crf.training_log_.last_iteration
    return {"loss": None if last is None else last["loss"], "iterations": crf.n_iter_, **_scores(gold, crf.predict(X_test))}


def theirs(
    watch: Stopwatch, train_file: str, test_file: str, settings: dict[str, Any], limit: int | None, model: str
) -> dict[str, Any]:
    """Fit and tag with python-crfsuite."""
    import pycrfsuite
    from peers.crfsuite import chunking_features, read_conll

    X, y, X_test, gold = _corpora(read_conll, chunking_features, train_file, test_file, limit)
    params = {NAMES.get(name, name): value for name, value in settings.items() if name != "algorithm"}
    with watch("fit"):
        trainer = pycrfsuite.Trainer(algorithm=settings["algorithm"], params=params, verbose=False)
        for xs, labels in zip(X, y, strict=True):
            trainer.append(xs, labels)
        trainer.train(model)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    last = trainer.logparser.last_iteration
    return {"loss": last.get("loss"), "iterations": last["num"], **_scores(gold, [tagger.tag(x) for x in X_test])}


def _corpora(read: Any, describe: Any, train_file: str, test_file: str, limit: int | None) -> tuple[Any, Any, Any, Any]:
    train, test = read(train_file)[:limit], read(test_file)
    labels = [[[row[2] for row in s] for s in part] for part in (train, test)]
    return [describe(s) for s in train], labels[0], [describe(s) for s in test], labels[1]


def _scores(gold: Any, found: Any) -> dict[str, Any]:
    from structpred.evaluation import evaluate_sequences

    return {"f1": evaluate_sequences(gold, found).f1}


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="settings whose name begins so")
    args = parser.parse_args()
    folder, scratch = data_folder() / "conll2000", scratch_folder()
    common = {
        "train_file": str(folder / "train.txt.gz"),
        "test_file": str(folder / "test.txt.gz"),
        "limit": 1000 if args.quick else None,
    }
    rows = []
    for name, settings in SETTINGS.items():
        if args.only and not name.startswith(args.only):
            continue
        one = in_child("compat:ours", settings=settings, **common)
        two = in_child("compat:theirs", settings=settings, model=str(scratch / "model"), **common)
        rows.append((name, one, two))
        print(
            verdict(f"{name}: F1 within 0.2 of CRFsuite's", one["f1"] >= two["f1"] - 0.002, f"{one['f1']:.4f}, {two['f1']:.4f}")
        )
    shutil.rmtree(scratch)
    print("\n" + machine() + "\n")
    head = ("algorithm", "F1 here", "F1 CRFsuite", "loss here", "loss CRFsuite", "CPU s here", "CPU s CRFsuite", "ratio")
    print(table(head, [_row(*row) for row in rows]))


def _row(name: str, one: dict[str, Any], two: dict[str, Any]) -> list[str]:
    seconds = [run["seconds"]["fit"] for run in (one, two)]
    losses = ["-" if not run["loss"] else f"{run['loss']:.1f}" for run in (one, two)]
    f1 = [f"{100 * run['f1']:.2f}" for run in (one, two)]
    return [name, *f1, *losses, *(f"{s:.1f}" for s in seconds), f"{seconds[1] / seconds[0]:.1f}"]


if __name__ == "__main__":
    main()
