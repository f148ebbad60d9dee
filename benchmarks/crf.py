"""Conditional random fields on CoNLL-2000 chunking: online exponentiated gradient, L-BFGS and CRFsuite's lbfgs, in one run.

    python benchmarks/crf.py            some ten minutes
    python benchmarks/crf.py --quick    a small check that everything runs

Ours have a weight for every pair of feature and label, CRFsuite by default for the pairs that it saw: the objectives
cannot be compared across that line; F1 and CPU time can. Both of ours minimise 1/2 |w|^2 + sum of log losses (C = 1), CRFsuite
|w|^2 + sum of log losses (c2 = 1, its default).
"""

import argparse
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, scratch_folder, table, verdict


def ours(
    watch: Stopwatch, train_file: str, test_file: str, trainer: str, passes: int, check_every: int, limit: int | None
) -> dict[str, Any]:
    """Train, and score the test file; history of the objective."""
    from structpred.evaluation import evaluate_sequences
    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    corpus, held_out = read_columns(train_file), read_columns(test_file)
    small = corpus.take(0, 30)
    ChainLabeler(trainer, template="crfsuite", max_iter=1).fit(small, small.labels())  # compiles
    corpus = corpus if limit is None else corpus.take(0, limit)
    model = ChainLabeler(trainer, C=1.0, max_iter=passes, check_every=check_every, template="crfsuite")
    labels = corpus.labels()
    with watch("fit"):
        model.fit(corpus, labels)
    predicted = [[str(label) for label in sequence] for sequence in model.predict(held_out)]
    rows = [row for row in model.history_ if row["primal"] is not None]
    return {
        "f1": evaluate_sequences(held_out.labels(), predicted).f1,
        "training": model.history_[-1]["cpu_seconds"],
        "history": [[row["passes"], row["cpu_seconds"], row["primal"], row["dual"]] for row in rows],
        "n": len(corpus),
    }


def main() -> None:
    """Run all, print the table and what it shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small check that everything runs")
    quick = parser.parse_args().quick
    folder = data_folder() / "conll2000"
    files = {"train_file": str(folder / "train.txt.gz"), "test_file": str(folder / "test.txt.gz")}
    limit = 200 if quick else None
    print(machine())
    runs = {
        "OEG, 8 passes": ("oeg", 3 if quick else 8, 8),
        "OEG, 40 passes": ("oeg", 5 if quick else 40, 5),
        "L-BFGS": ("lbfgs", 10 if quick else 250, 25),
    }
    found = {}
    for name, (trainer, passes, every) in runs.items():
        found[name] = in_child("crf:ours", **files, trainer=trainer, passes=passes, check_every=every, limit=limit)
    model = str(scratch_folder() / "crfsuite.model")
    peer = in_child(
        "peers.crfsuite:chunking", train_file=files["train_file"], model=model, algorithm="lbfgs", params={}, limit=limit
    )
    tested = in_child("chunking:test_peer", test_file=files["test_file"], model=model)
    report(found, {"training": peer["seconds"]["train"], "peak_mb": peer["peak_mb"], "f1": tested["f1"]})


def report(found: dict[str, dict[str, Any]], peer: dict[str, Any]) -> None:
    """The table and the verdicts."""
    rows = []
    for name, run in found.items():
        _, _, primal, dual = run["history"][-1]
        n = run["n"]
        rows.append([name, f"{run['training']:.1f}", f"{100 * run['f1']:.2f}", f"{primal * n:.2f}", f"{dual * n:.2f}",
                     f"{100 * (primal - dual) / primal:.3f} %", f"{run['peak_mb']:.0f}"])  # fmt: skip
    rows.append(["CRFsuite lbfgs", f"{peer['training']:.1f}", f"{100 * peer['f1']:.2f}", "", "", "", f"{peer['peak_mb']:.0f}"])
    print(table(["trainer", "training, CPU s", "F1", "primal", "dual", "gap", "peak MB"], rows))
    fast, slow, exact = (found[name]["history"][-1] for name in found)
    first = found["OEG, 8 passes"]
    certified = next((row for row in found["OEG, 40 passes"]["history"] if row[2] - row[3] <= 0.005 * row[2]), None)
    apart = abs(slow[2] - exact[2]) / exact[2]
    print(verdict("OEG and L-BFGS reach the same objective, 1e-4 relative", apart <= 1e-4, f"{apart:.2g}"))
    shown = "never" if certified is None else f"after {certified[0]} passes, {certified[1]:.1f} s"
    print(verdict("gap of OEG at most 0.5 % of the primal", certified is not None, shown))
    share = found["OEG, 8 passes"]["training"] / peer["training"]
    print(verdict("F1 at least 93.7 in a tenth of CRFsuite's CPU time", first["f1"] >= 0.937 and share <= 0.1,
                  f"{100 * first['f1']:.2f} in {share:.3f} of it"))  # fmt: skip
    print(f"(8 passes: gap {100 * (fast[2] - fast[3]) / fast[2]:.2f} % of the primal)")


if __name__ == "__main__":
    main()
