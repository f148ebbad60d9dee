"""Passes and CPU seconds to certified gaps, blocks that remember corners beside plain ones: ``python benchmarks/corrective.py``.

The first 1,000 sentences of CoNLL-2000 with CRFsuite's templates, one thread; every gap is computed, its CPU time is counted.
The regulariser is 1/2 |w|^2 (l2), or multiple kernel learning with a group for each template (mkl). A gap is that between the
best bounds so far.
"""

import argparse
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table, verdict

SENTENCES = 1000
GAPS = (0.1, 0.03, 0.01, 0.003, 0.001)
TRAINERS: dict[str, dict[str, Any]] = {
    "bcfw": {"trainer": "bcfw", "averaged": False},
    "corrective, no cached pass": {"trainer": "corrective", "averaged": False, "cached_passes": 0},
    "corrective": {"trainer": "corrective", "averaged": False},
    "corrective and average": {"trainer": "corrective"},
}
#: (regulariser, C) -> the largest number of passes, and those in which "corrective" has to come to 1 % and to .1 %
CASES: dict[tuple[str, float], tuple[int, int, int]] = {
    ("l2", 0.1): (80, 35, 75),
    ("mkl", 0.1): (60, 12, 45),
    ("l2", 1.0): (90, 55, 85),
    ("mkl", 1.0): (65, 29, 61),
}


def train(watch: Stopwatch, train_file: str, settings: dict[str, Any], regulariser: str, C: float, passes: int) -> dict[str, Any]:
    """The history of one run, to the smallest gap."""
    from structpred.io import read_columns
    from structpred.models import ChainLabeler
    from structpred.trainers.names import trainers

    corpus = read_columns(train_file).take(0, SENTENCES)
    kind = trainers()[settings.pop("trainer")]
    options: dict[str, Any] = {"template": "crfsuite", "regulariser": regulariser, "check_every": 1, "random_state": 0}
    labeler = ChainLabeler(kind(**settings), C, passes, GAPS[-1], **options).fit(corpus, corpus.labels())
    return {"history": labeler.history_}


def reached(history: list[dict[str, Any]]) -> dict[float, tuple[int, float]]:
    """(passes, CPU seconds) to each gap that was reached."""
    found: dict[float, tuple[int, float]] = {}
    dual = -float("inf")
    for row in history:
        dual = max(dual, row["dual"])
        for gap in GAPS:
            if row["primal"] - dual <= gap * row["primal"]:
                found.setdefault(gap, (row["passes"], row["cpu_seconds"]))
    return found


def main() -> None:
    """Print a table for each case, and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--C", type=float, nargs="*", default=[0.1], help="of 0.1 and 1; the latter takes minutes")
    chosen = parser.parse_args().C
    train_file = str(data_folder() / "conll2000" / "train.txt.gz")
    print(f"\nPasses / CPU s to a relative gap ({machine()})")
    for (regulariser, C), (passes, *goals) in CASES.items():
        if C not in chosen:
            continue
        rows, told = [], []
        for name, settings in TRAINERS.items():
            run = in_child(
                "corrective:train", train_file=train_file, settings=settings, regulariser=regulariser, C=C, passes=passes
            )
            history, found = run["history"], reached(run["history"])
            cells = [" / ".join((str(found[gap][0]), f"{found[gap][1]:.1f}")) if gap in found else "-" for gap in GAPS]
            last = history[-1]
            end = f"{100 * (last['primal'] - max(row['dual'] for row in history)) / last['primal']:.2f} % after {last['passes']}"
            rows.append([name, *cells, end, f"{run['peak_mb']:.0f}"])
            told.append(verdict(f"{name}: no gap below zero", min(row["gap"] for row in history) >= 0.0, end))
            if name == "corrective":
                for gap, goal in zip((0.01, 0.001), goals, strict=True):
                    n = found.get(gap, (passes + 1,))[0]
                    told.append(verdict(f"{name}: gap of {100 * gap:g} % in {goal} passes", n <= goal, f"{n}"))
        print(f"\n{regulariser}, C = {C:g}\n")
        print(table(["trainer", *(f"{100 * gap:g} %" for gap in GAPS), "at the end", "peak MB"], rows))
        print("\n".join(["", *told]), flush=True)


if __name__ == "__main__":
    main()
