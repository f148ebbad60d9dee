"""Rounds of training over shards on CoNLL-2000 chunking, in one process: what the number of shards K costs, way by way.

    python benchmarks/shards.py                       some fifteen CPU minutes
    python benchmarks/shards.py --quick               a small check that everything runs
    python benchmarks/shards.py --resampled 100000    64 shards of so many resampled sentences: a CPU quarter of an hour, 8 GB

A round is a pass of every shard over its sentences, or an iteration of L-BFGS. The gaps are shares of the primal. What a cluster
gains is its workers' time for a round, times the rounds counted here; it takes the same rounds to the same bits.
"""

import argparse
from dataclasses import replace
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table, verdict

#: gaps to count the rounds to
GAPS = (0.1, 0.03, 0.01, 0.001)


def trainer_of(way: str, shards: int, sigma: float | None) -> Any:
    """The trainer of a way; one shard: the plain trainer."""
    from structpred.trainers.bcfw import BCFW
    from structpred.trainers.cocoa import CoCoA
    from structpred.trainers.lbfgs import LBFGS
    from structpred.trainers.mixing import ParameterMixing
    from structpred.trainers.oeg import OnlineEG
    from structpred.trainers.perceptron import AveragedPerceptron
    from structpred.trainers.warm_start import WarmStart

    if way == "lbfgs":
        return LBFGS()
    if way == "perceptron":
        return AveragedPerceptron() if shards == 1 else ParameterMixing(shards=shards)
    block = BCFW() if way == "bcfw" else OnlineEG()
    first = block if shards == 1 else CoCoA(block, shards=shards, sigma=sigma)
    return WarmStart(LBFGS(), first) if way == "oeg, then lbfgs" else first


def fit(
    watch: Stopwatch, folder: str, way: str, shards: int, sigma: float | None, C: float, limit: int, rounds: int, resampled: int
) -> dict[str, Any]:
    """Train, and score the test file; the gap after each round."""
    import numpy as np

    from structpred.evaluation import evaluate_sequences
    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    corpus, held_out = read_columns(f"{folder}/train.txt.gz"), read_columns(f"{folder}/test.txt.gz")
    if resampled:
        rows = np.random.default_rng(0).integers(len(corpus), size=resampled)
        where = np.concatenate([np.arange(corpus.offsets[i], corpus.offsets[i + 1]) for i in rows])
        offsets = np.cumsum([0, *corpus.lengths[rows]])
        corpus = replace(corpus, codes=corpus.codes[where], lines=corpus.lines[where], offsets=offsets, text=None)
    corpus = corpus.take(0, min(limit, len(corpus)))
    trainer, certified = trainer_of(way, shards, sigma), way != "perceptron"
    model = ChainLabeler(
        trainer,
        C=C,
        template="crfsuite",
        max_iter=rounds,
        check_every=1 if certified else rounds,
        tol=GAPS[-1] if certified else 0.0,
    )
    with watch("fit"):
        model.fit(corpus, corpus.labels())
    predicted = [[str(label) for label in sequence] for sequence in model.predict(held_out)]
    gaps = [row["gap"] / row["primal"] for row in model.history_] if certified else []
    return {
        "f1": 100 * evaluate_sequences(held_out.labels(), predicted).f1,
        "gaps": gaps,
        "duals": [row["dual"] for row in model.history_],
        "rounds": len(model.history_),
        "n": len(corpus),
    }


def rounds_to(gaps: list[float], goal: float) -> int | None:
    """The first round with such a gap."""
    return next((k for k, gap in enumerate(gaps, 1) if gap <= goal), None)


def planned(quick: bool, resampled: int) -> list[dict[str, Any]]:
    """The runs: way, shards, sigma, C, sentences, rounds at most."""

    def one(way: str, shards: int, C: float, limit: int, rounds: int, sigma: float | None = None) -> dict[str, Any]:
        few = (120, 3) if quick else (limit, rounds)
        return {
            "way": way, "shards": shards, "sigma": sigma, "C": C, "limit": few[0], "rounds": few[1], "resampled": resampled
        }  # fmt: skip

    if resampled:
        return [one(way, 64, 0.1, resampled, rounds) for way, rounds in [("oeg, then lbfgs", 45), ("oeg", 12)]]
    whole = 8936
    runs = [one("oeg", shards, 0.1, whole, 13 if shards > 1 else 8) for shards in (1, 4, 8, 16)]
    runs += [one("lbfgs", 1, 0.1, whole, 80)]
    runs += [one("oeg, then lbfgs", shards, 0.1, whole, 45) for shards in (1, 16)]
    runs += [one("lbfgs", 1, 0.1, 2000, 45)] + [one("oeg, then lbfgs", shards, 0.1, 2000, 35) for shards in (1, 16)]
    runs += [one("bcfw", 1, 0.01, 1000, 15)]
    runs += [one("bcfw", 8, 0.01, 1000, 45, sigma) for sigma in (None, 2.0)]
    return runs + [one("perceptron", shards, 0.1, whole, 3) for shards in (1, 4, 16)]


def main() -> None:
    """Run all, print the table and what it shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small check that everything runs")
    parser.add_argument("--resampled", type=int, default=0, metavar="N", help="64 shards of N resampled sentences")
    arguments = parser.parse_args()
    folder = str(data_folder() / "conll2000")
    print(machine(), flush=True)
    found, rows = {}, []
    for plan in planned(arguments.quick, arguments.resampled):
        run = in_child("shards:fit", folder=folder, timeout=7200, **plan)
        found[plan["way"], plan["shards"], run["n"]] = run
        reached = [rounds_to(run["gaps"], goal) or f"> {run['rounds']}" for goal in GAPS] if run["gaps"] else ["-"] * 4
        careful = plan["shards"] > 1 and plan["way"] != "perceptron"
        sigma = "-" if not careful else "K" if plan["sigma"] is None else f"{plan['sigma']:g}"
        rows.append([
            plan["way"], plan["shards"], sigma, plan["C"], run["n"],
            *reached, f"{run['gaps'][-1]:.2%} in {run['rounds']}" if run["gaps"] else f"in {run['rounds']}", f"{run['f1']:.2f}",
            f"{run['seconds']['fit']:.0f}", f"{run['peak_mb']:.0f}",
        ])  # fmt: skip
        print(*rows[-1], sep=" | ", flush=True)
    print(table(["way", "K", "sigma'", "C", "n", *(f"{goal:g}" for goal in GAPS), "end", "F1", "CPU s", "peak MB"], rows))
    falls = sum(min((b - a for a, b in zip(run["duals"], run["duals"][1:], strict=False)), default=0.0) < -1e-6
                for (way, _, _), run in found.items() if way in ("oeg", "bcfw"))  # fmt: skip
    print(
        verdict("the dual falls in no round of shards (by more than 1e-6, as weights are float32)", falls == 0, f"{falls} runs")
    )
    if not (arguments.quick or arguments.resampled):
        report(found)


def report(found: dict[tuple[str, int, int], dict[str, Any]]) -> None:
    """What has to be shown."""
    wanted = [("oeg, then lbfgs", 16, n, *goal) for n in (2000, 8936) for goal in ((0.01, 20), (0.001, 30))]
    for way, shards, n, goal, most in [*wanted, ("oeg", 8, 8936, 0.1, 7), ("oeg", 8, 8936, 0.03, 13)]:
        reached, first = rounds_to(found[way, shards, n]["gaps"], goal), 3 if way == "oeg, then lbfgs" else 0
        what = f"{way}, K = {shards}, n = {n}: at most {most} rounds to {goal:g}" + (" after the first three" if first else "")
        reached = None if reached is None else reached - first
        print(verdict(what, reached is not None and reached <= most, str(reached)))
    for n in (2000, 8936):
        apart = abs(found["oeg, then lbfgs", 16, n]["f1"] - found["oeg, then lbfgs", 1, n]["f1"])
        print(verdict(f"oeg, then lbfgs, n = {n}: F1 of 16 shards as without to 0.05", apart <= 0.05, f"{apart:.3f}"))


if __name__ == "__main__":
    main()
