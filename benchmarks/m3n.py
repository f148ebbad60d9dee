"""Max-margin Markov networks on OCR letters, solved in three ways: ``python benchmarks/m3n.py [--words N] [--lam LAM]``.

Words of fold 0, pixels and an intercept; the excessive gap method over clique marginals, 1-slack cutting planes and
block-coordinate Frank-Wolfe, each to a certified gap of 0.1 % of the objective. All three must bracket the same optimum. A step
of the excessive gap method projects every word twice or more often: about a second for all 626 words of the fold.
"""

import argparse
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table, verdict

GOAL = 1e-3
#: trainer -> its settings and how many passes it may take
TRAINERS: dict[str, tuple[dict[str, Any], int]] = {
    "pragam": ({}, 3_000),
    "one_slack": ({"precision": 1e-5}, 20_000),
    "bcfw": ({}, 100_000),
}


def train(watch: Stopwatch, file: str, name: str, n_words: int, lam: float) -> dict[str, Any]:
    """Bounds, passes and the CPU seconds of one trainer; a short run compiles what is compiled."""
    import numpy as np

    from structpred.features.sequences import SequenceFeatures
    from structpred.io import read_ocr
    from structpred.models.chain.inputs import NumericInput
    from structpred.objectives.margin import MarginRescaling
    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.chain import ChainOracle
    from structpred.task.task import Task
    from structpred.trainers.loop import RunSettings
    from structpred.trainers.loop import train as run
    from structpred.trainers.names import trainers
    from structpred.trainers.problem import Problem

    words, input_ = read_ocr(file), NumericInput(intercept=True)
    chosen = words.select(np.flatnonzero(words.folds == 0)[:n_words])
    labels = [np.array([ord(letter) - ord("a") for letter in word]) for word in chosen.letters]
    features = SequenceFeatures(input_.fit_transform(chosen), 26, dtype=np.float64)
    task = Task(features, ChainOracle(), labels, [(len(y), 26) for y in labels], Hamming())
    settings, most = TRAINERS[name]
    problem, trainer = Problem(task, MarginRescaling(), lam), trainers()[name](**settings)
    run(Problem(task.take([0, 1]), MarginRescaling(), lam), trainer, RunSettings(max_iter=2))
    with watch(name):
        result = run(problem, trainer, RunSettings(max_iter=most, tol=GOAL, check_every=20))
    found = result.certificate
    return {"words": len(task), "letters": sum(map(len, labels)), "passes": result.passes, "bounds": (found.primal, found.dual)}


def main() -> None:
    """Print the table and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=40, help="how many words of the fold; default 40, all are 626")
    parser.add_argument("--lam", type=float, default=0.1)
    options = parser.parse_args()
    file = str(data_folder() / "ocr_letters" / "letter.data.gz")
    runs = {
        name: in_child("m3n:train", file=file, name=name, n_words=options.words, lam=options.lam, timeout=7_200)
        for name in TRAINERS
    }
    first = runs["pragam"]
    print(f"\n{first['words']} words, {first['letters']} letters, lambda = {options.lam:g} ({machine()})\n")
    rows = []
    for name, found in runs.items():
        primal, dual = found["bounds"]
        figures = found["passes"], f"{found['seconds'][name]:.1f}", f"{primal:.6f}", f"{dual:.6f}"
        rows.append([name, *figures, f"{100 * (primal - dual) / primal:.3f} %"])
    print(table(["trainer", "passes", "CPU s", "objective", "lower bound", "gap"], rows))
    primals, duals = zip(*(found["bounds"] for found in runs.values()), strict=True)
    spread, worst = max(primals) / min(primals) - 1.0, max(1.0 - d / p for p, d in zip(primals, duals, strict=True))
    print()
    print(verdict("objectives within 0.1 % of one another", spread <= GOAL, f"{100 * spread:.4f} %"))
    print(verdict("each certified to 0.1 %", worst <= GOAL, f"the largest gap is {100 * worst:.3f} %"))
    print(
        verdict("every lower bound below every objective", max(duals) <= min(primals), f"{max(duals):.6f} <= {min(primals):.6f}")
    )


if __name__ == "__main__":
    main()
