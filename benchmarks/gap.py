"""Certified gaps of block-coordinate Frank-Wolfe on CoNLL-2000 at lambda n = 10: ``python benchmarks/gap.py``.

How many passes and CPU seconds until the duality gap is at most 1 % of the primal objective; weak duality is checked at every
computation of the gap. The course of the best variant is drawn into out/.
"""

import argparse
from typing import Any

from measure import ROOT, Stopwatch, data_folder, in_child, machine, table, verdict

VARIANTS: dict[str, dict[str, Any]] = {
    "last iterate": {"averaged": False},
    "last iterate, gap sampling": {"averaged": False, "gap_sampling": True},
    "k-weighted average": {"averaged": True},
    "k-weighted average, gap sampling": {"averaged": True, "gap_sampling": True},
}
PASSES, EVERY, GOAL = 100, 5, 0.01


def train(watch: Stopwatch, train_file: str, settings: dict[str, Any], passes: int) -> dict[str, Any]:
    """The history of one run, which stops at the goal."""
    from structpred.io import read_columns
    from structpred.models import ChainLabeler
    from structpred.trainers.bcfw import BCFW

    corpus = read_columns(train_file)
    labeler = ChainLabeler(BCFW(**settings), 0.1, passes, GOAL, template="crfsuite", check_every=EVERY, random_state=0)
    labeler.fit(corpus, corpus.labels())
    return {"history": labeler.history_, "stop": labeler.stop_reason_}


def draw(watch: Stopwatch, history: list[dict[str, Any]], path: str) -> None:
    """The picture of a run."""
    from pathlib import Path

    from structpred.report import gap_curve

    Path(path).parent.mkdir(exist_ok=True)
    gap_curve(history, path)


def main() -> None:
    """Print the table and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=PASSES)
    passes = parser.parse_args().passes
    train_file = str(data_folder() / "conll2000" / "train.txt.gz")
    rows, runs, dual_ok = [], {}, True
    for name, settings in VARIANTS.items():
        history = in_child("gap:train", train_file=train_file, settings=settings, passes=passes)["history"]
        checks = [row for row in history if row["gap"] is not None]
        dual_ok &= all(row["gap"] >= -1e-9 * abs(row["primal"]) for row in checks)
        at20 = next((row for row in checks if row["passes"] == 20), checks[-1])
        last = checks[-1]
        runs[name] = history
        share, early = last["gap"] / last["primal"], at20["gap"] / at20["primal"]
        figures = [f"{100 * early:.2f} %", last["passes"], f"{last['cpu_seconds']:.1f}", f"{100 * share:.2f} %"]
        rows.append([name, *figures, f"{last['primal']:.5f}", f"{last['dual']:.5f}"])
    print(f"\nBCFW at lambda n = 10, CoNLL-2000 ({machine()})\n")
    head = ["variant", "gap / primal after 20 passes", "passes", "CPU s", "gap / primal", "primal", "dual"]
    print(table(head, rows))
    reached = {name: h for name, h in runs.items() if h[-1]["gap"] is not None and h[-1]["gap"] <= GOAL * h[-1]["primal"]}
    best = min(reached or runs, key=lambda name: runs[name][-1]["cpu_seconds"])
    end = runs[best][-1]
    in_child("gap:draw", history=runs[best], path=str(ROOT / "out" / "gap_conll2000.png"))
    figure = f"{best}: {100 * end['gap'] / end['primal']:.2f} % after {end['passes']} passes, {end['cpu_seconds']:.1f} s"
    print()
    print(verdict(f"gap <= 1 % of the primal within {PASSES} passes", bool(reached) and end["passes"] <= PASSES, figure))
    print(verdict("weak duality at every check", dual_ok, "dual <= primal" if dual_ok else "violated"))
    print("picture: out/gap_conll2000.png")


if __name__ == "__main__":
    main()
