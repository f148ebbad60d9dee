"""Objective and bound of all max-margin trainers against CPU seconds: ``python benchmarks/max_margin.py``.

Chains: the first sentences of CoNLL-2000 with CRFsuite's templates. Label sets: the first examples of yeast, all pairs of
labels joined. The same objective for everybody, 1/2 |w|^2 + C sum_i H_i with margin rescaling; a fresh process and a few CPU
seconds for each trainer, in which it computes its own objective now and then (that is counted). The pictures go to out/.

    python benchmarks/max_margin.py --seconds 2      a rough picture
"""

import argparse
from typing import Any

from measure import ROOT, Stopwatch, data_folder, in_child, machine, table, verdict

SECONDS = 6.0
#: data -> (how many instances, C)
DATA = {"conll2000": (500, 0.1), "yeast": (500, 1.0)}
#: trainer -> (settings, passes between computations of the objective)
TRAINERS: dict[str, tuple[dict[str, Any], int]] = {
    "corrective": ({}, 1),
    "bcfw": ({}, 3),
    "n_slack": ({}, 1),
    "one_slack": ({}, 1),
    "bmrm": ({}, 1),
    "ls_bmrm": ({}, 1),
    "pragam": ({}, 1),
    "projected_ascent": ({}, 1),
    "proximal": ({}, 3),
    "sgd": ({}, 3),
}
Row = dict[str, Any]


def train(watch: Stopwatch, data: str, folder: str, trainer: str, settings: dict[str, Any], every: int, seconds: float) -> Row:
    """The rows of one run that have an objective; `refused`: why there is no run."""
    from structpred.errors import StructpredError
    from structpred.models import ChainLabeler, MultiLabelMRF
    from structpred.trainers.names import trainers

    n, C = DATA[data]
    rest: dict[str, Any] = {"check_every": every, "random_state": 0, "surrogate": "margin"}
    if data == "yeast":
        from structpred.io.multilabel.mulan import read_mulan

        examples = read_mulan(f"{folder}/multilabel_yeast/yeast-train.arff.gz", f"{folder}/multilabel_yeast/yeast.xml.gz")
        kind, arguments = MultiLabelMRF, [(examples.take(range(k)),) for k in (20, n)]
    else:
        from structpred.io import read_columns

        corpus = read_columns(f"{folder}/conll2000/train.txt.gz")
        parts = [corpus.take(0, k) for k in (20, n)]
        kind, arguments = ChainLabeler, [(part, part.labels()) for part in parts]
        rest["template"] = "crfsuite"
    made = trainers()[trainer]
    try:
        kind(made(**settings), C, 2, **rest).fit(*arguments[0])  # compiles
        stop = [lambda row: row["cpu_seconds"] > seconds]
        model = kind(made(**settings), C, 100_000, 1e-4, callbacks=stop, **rest).fit(*arguments[1])
    except StructpredError as error:
        return {"history": [], "refused": str(error).split(".")[0]}
    return {"history": [row for row in model.history_ if row["primal"] is not None], "refused": ""}


def draw(watch: Stopwatch, runs: dict[str, list[Row]], best: dict[str, float], title: str, path: str) -> None:
    """On the left how far objectives are above the best bound, on the right bounds below the best objective, as shares of it."""
    from pathlib import Path

    from structpred.report import figures

    Path(path).parent.mkdir(exist_ok=True)
    figure = figures.new_figure(11.0, 4.6)
    axes = figure.subplots(1, 2, sharey=True)
    colours = (figures.ORANGE, figures.BLUE, figures.GREEN, figures.GREY)
    for k, (name, rows) in enumerate(runs.items()):
        look: dict[str, Any] = {
            "color": colours[k % 4],
            "linestyle": ("-", "--", ":")[k // 4 % 3],
            "linewidth": 1.5,
            "label": name,
        }
        sides = (("primal", lambda x: x - best["dual"]), ("dual", lambda x: best["primal"] - x))
        for side, (key, distance) in zip(axes, sides, strict=True):
            points = [(row["cpu_seconds"], distance(row[key]) / best["primal"]) for row in rows if row[key] is not None]
            points = [(x, y) for x, y in points if y > 0]
            if points:
                side.plot(*zip(*points, strict=True), **look)
    for side, text in zip(axes, ("objective above the best bound", "bound below the best objective"), strict=True):
        side.set_xscale("log")
        side.set_yscale("log")
        side.set_ylim(1e-3, 3)
        side.set_xlabel("CPU time (s)")
        side.set_title(text, fontsize=10)
        side.grid(alpha=0.3)
    axes[0].set_ylabel("share of the optimum")
    axes[0].legend(loc="best", frameon=False, fontsize=8)
    figure.suptitle(title)
    figures.save(figure, path)


def main() -> None:
    """A table and a picture for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"CPU seconds of each run; default {SECONDS:g}")
    parser.add_argument("--data", choices=DATA, nargs="*", default=list(DATA))
    given = parser.parse_args()
    for data in given.data:
        n, C = DATA[data]
        runs: dict[str, list[Row]] = {}
        for name, (settings, every) in TRAINERS.items():
            call = {"trainer": name, "settings": settings, "every": every, "seconds": given.seconds}
            found = in_child("max_margin:train", data=data, folder=str(data_folder()), **call)
            runs[name] = found["history"]
            if found["refused"]:
                print(f"{name}: {found['refused']}")
        rows = [row for history in runs.values() for row in history]
        best = {"primal": min(r["primal"] for r in rows), "dual": max(r["dual"] for r in rows if r["dual"] is not None)}
        shown = []
        for name, history in runs.items():
            for last in history[-1:]:
                share = "" if last["gap"] is None else f"{100 * last['gap'] / last['primal']:.2f} %"
                above = f"{100 * (last['primal'] / best['dual'] - 1):.2f} %"
                shown.append([name, last["passes"], f"{last['cpu_seconds']:.1f}", f"{last['primal']:.4f}", above, share])
        print(f"\n{data}, {n} instances, C = {C:g}, optimum in [{best['dual']:.5f}, {best['primal']:.5f}] ({machine()})\n")
        print(table(["trainer", "passes", "CPU s", "objective", "above the best bound", "own gap"], shown))
        path = f"out/max_margin_{data}.png"
        title = f"{data}, {n} instances, C = {C:g}"
        in_child("max_margin:draw", runs=runs, best=best, title=title, path=str(ROOT / path))
        sound = best["dual"] <= best["primal"] * (1 + 1e-6)
        print("\n" + verdict("no bound is above any objective", sound, f"{best['dual']:.6f} <= {best['primal']:.6f}"))
        print(f"picture: {path}", flush=True)


if __name__ == "__main__":
    main()
