"""Slack rescaling on yeast by four trainers: objective and bound against CPU seconds, passes and searches.

    python benchmarks/slack_convergence.py            some two minutes
    python benchmarks/slack_convergence.py --quick    a small check that everything runs
    python benchmarks/slack_convergence.py --examples 1500    all of them, without n-slack

All minimise the same objective, 1/2 lam |w|^2 + mean H_i, on the first examples of the training set, with exact searches
(enumeration of the 2^14 sets of labels). The objective of BCFW and of SGD costs a search an example, and is computed every few
passes (its time is counted); cutting planes know theirs. The picture goes to out/.
"""

import argparse
import math
from typing import Any

from measure import ROOT, Stopwatch, data_folder, in_child, machine, table, verdict

#: name -> (trainer, its settings, passes, passes between computations of the objective)
RUNS: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "n-slack cutting planes": ("n_slack", {"precision": 1e-2}, 30, 1),
    "1-slack cutting planes": ("one_slack", {"precision": 1e-3}, 400, 5),
    "SGD": ("sgd", {}, 300, 5),
    "BCFW": ("bcfw", {}, 200, 5),
}
C, TOL, EXAMPLES = 0.01, 0.002, 300
#: with more, the planes of n-slack fill gigabytes of inner products, and it is left out
MOST_PLANES = 500
Row = dict[str, Any]


def train(
    watch: Stopwatch, folder: str, examples: int, trainer: str, settings: dict[str, Any], passes: int, every: int
) -> dict[str, Any]:
    """The history of one run."""
    from structpred.io.multilabel.mulan import read_mulan
    from structpred.models import MultiLabelMRF
    from structpred.models.settings import make_trainer

    data = read_mulan(f"{folder}/yeast-train.arff.gz", f"{folder}/yeast.xml.gz").take(range(examples))
    MultiLabelMRF(trainer, C, 2, surrogate="slack").fit(data.take(range(20)))  # compiles
    model = MultiLabelMRF(
        make_trainer(trainer, settings), C, passes, TOL, surrogate="slack", check_every=every, random_state=0, scale=None
    ).fit(data)
    return {"history": [row for row in model.history_ if row["primal"] is not None]}


def draw(watch: Stopwatch, runs: dict[str, list[Row]], best: float, path: str) -> None:
    """Above how far the objective is from the best bound, below each trainer's own gap, both as a share of the best bound."""
    from pathlib import Path

    from structpred.report import figures

    Path(path).parent.mkdir(exist_ok=True)
    figure = figures.new_figure(11.4, 6.4)
    axes = figure.subplots(2, 3, sharex="col", sharey="row")
    names = (("cpu_seconds", "CPU time (s)"), ("passes", "passes over the data"), ("oracle_calls", "searches"))
    looks = ((figures.ORANGE, "-"), (figures.GREY, "-."), (figures.BLUE, "--"), (figures.GREEN, "-"))
    for column, (key, text) in enumerate(names):
        for (name, rows), (colour, style) in zip(runs.items(), looks[-len(runs) :], strict=True):
            for line, height in enumerate((lambda row: row["primal"] - best, lambda row: row["primal"] - row["dual"])):
                points = [(row[key], height(row) / best) for row in rows if height(row) > 0]
                axes[line, column].plot(*zip(*points, strict=True), style, color=colour, label=name, linewidth=1.5)
        for line in range(2):
            axes[line, column].set_xscale("log")
            axes[line, column].set_yscale("log")
            axes[line, column].grid(alpha=0.3)
        axes[1, column].set_xlabel(text)
    axes[0, 0].set_ylabel("objective above the optimum")
    axes[1, 0].set_ylabel("certified gap")
    axes[0, 0].legend(loc="best", frameon=False, fontsize=8)
    figure.suptitle("Slack rescaling on yeast, as a share of the optimum")
    figures.save(figure, path)


def first(rows: list[Row], goal: float) -> Row | None:
    """The first row whose objective is at most the goal."""
    return next((row for row in rows if row["primal"] <= goal), None)


def main() -> None:
    """Run all, print the table and what it shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small check that everything runs")
    parser.add_argument("--examples", type=int, help=f"how many of the 1,500 examples; default {EXAMPLES}")
    given = parser.parse_args()
    n = given.examples or (30 if given.quick else EXAMPLES)
    folder = str(data_folder() / "multilabel_yeast")
    runs: dict[str, list[Row]] = {}
    for name, (trainer, settings, passes, every) in RUNS.items():
        if trainer == "n_slack" and n > MOST_PLANES:
            continue
        few = min(passes, 20) if given.quick else passes
        call: dict[str, Any] = {
            "folder": folder,
            "examples": n,
            "trainer": trainer,
            "settings": settings,
            "passes": few,
            "every": every,
        }
        runs[name] = in_child("slack_convergence:train", **call)["history"]
    best = max(row["dual"] for rows in runs.values() for row in rows)
    shown = []
    for name, rows in runs.items():
        last = rows[-1]
        figures = [last["passes"], last["oracle_calls"], f"{last['cpu_seconds']:.1f}", f"{last['primal']:.4f}"]
        shares = [f"{100 * (last['primal'] / best - 1):.2f} %", f"{100 * last['gap'] / last['primal']:.2f} %"]
        reached = [first(rows, (1 + share) * best) for share in (0.05, 0.01)]
        times = ["" if row is None else f"{row['cpu_seconds']:.1f} s, {row['passes']} passes" for row in reached]
        shown.append([name, *figures, *shares, *times])
    head = ["trainer", "passes", "searches", "CPU s", "objective", "above the optimum", "gap", "within 5 %", "within 1 %"]
    print(f"\nSlack rescaling on yeast, {n} examples, C = {C}, lam = {1 / (C * n):.4g} ({machine()})\n")
    print(table(head, shown))
    path = f"slack_convergence{'_quick' if given.quick else '' if n == EXAMPLES else f'_{n}'}.png"
    in_child("slack_convergence:draw", runs=runs, best=best, path=str(ROOT / "out" / path))
    least = min(row["primal"] for rows in runs.values() for row in rows)
    sound = all(row["dual"] <= least * (1 + 1e-9) for rows in runs.values() for row in rows)
    print(f"\noptimum between {best:.5f} and {least:.5f}")
    print(verdict("no bound of any trainer is above any objective", sound and math.isfinite(best), f"{best:.5f} <= {least:.5f}"))
    print(f"picture: out/{path}")


if __name__ == "__main__":
    main()
