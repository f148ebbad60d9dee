"""CoNLL-2000 chunking compared with CRFsuite: ``python benchmarks/chunking.py [--quick | --select]``.

Everybody uses the template of CRFsuite's chunking example and goes from the column file to a saved model in a process of its
own, which gives end-to-end CPU seconds and peak memory. Rounds run all programs in turns, lbfgs in the first alone; figures are
medians over the rounds. Tagging of a file as whole processes, and rates in one more process, are measured in turns, too.

--select chooses C on the last tenth of the training sentences (three seeds); the test set takes no part in it.
--quick takes 1,000 training sentences and few iterations: a check that everything runs, no comparison.
"""

import argparse
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, scratch_folder, table, verdict

#: name -> (trainer, C, passes); C by --select
OURS: dict[str, tuple[str, float, int]] = {
    "perceptron": ("perceptron", 1.0, 10),
    "sgd": ("sgd", 0.5, 15),
    "bcfw": ("bcfw", 0.1, 20),
}
PEERS: dict[str, tuple[str, dict[str, Any]]] = {"crfsuite lbfgs": ("lbfgs", {}), "crfsuite ap": ("ap", {"max_iterations": 10})}
GRID: dict[str, tuple[float, ...]] = {"sgd": (0.1, 0.2, 0.3, 0.5, 1.0), "bcfw": (0.03, 0.05, 0.1, 0.2, 0.5)}
SEEDS = (0, 1, 2)
TEST_SEEDS, ROUNDS = range(5), 3


def train(watch: Stopwatch, train_file: str, model: str, trainer: str, C: float, passes: int, limit: int | None = None) -> None:
    """File to model. Training is what the loop takes; features, packing and checks are "featurise"."""
    with watch("import"):
        from structpred.io import read_columns
        from structpred.models import ChainLabeler
    with watch("read"):
        corpus = read_columns(train_file)
        corpus = corpus if limit is None else corpus.take(0, limit)
        labels = corpus.labels()
    with watch("load kernels"):  # numba and what it compiled before: part of the whole, not of training
        ChainLabeler(trainer, max_iter=1, template="crfsuite").fit(corpus.take(0, 10), labels[:10])
    labeler = ChainLabeler(trainer, C, passes, template="crfsuite", check_every=passes, random_state=0)
    with watch("fit"):
        labeler.fit(corpus, labels)
    watch.seconds["train"] = float(labeler.history_[-1]["cpu_seconds"])
    watch.seconds["featurise"] = watch.seconds.pop("fit") - watch.seconds["train"]
    with watch("save"):
        labeler.save(model)


def test(watch: Stopwatch, test_file: str, model: str) -> dict[str, Any]:
    """Scores on the test file, and tokens per second from packed features (median of nine)."""
    from structpred.evaluation import evaluate_sequences
    from structpred.io import read_columns
    from structpred.models import ChainLabeler
    from structpred.models.chain.labeler import decode_chains

    corpus = read_columns(test_file)
    with watch("load"):
        labeler = ChainLabeler.load(model)
    with watch("predict"):
        predicted = labeler.predict(corpus)
    scores = evaluate_sequences(corpus.labels(), [labels.tolist() for labels in predicted])
    packed = labeler.input_.transform(corpus)
    seconds = median(cpu(lambda: decode_chains(packed, len(labeler.classes_), labeler.coef_)) for _ in range(9))
    return {"accuracy": scores.token_accuracy, "f1": scores.f1, "packed_rate": packed.n_tokens / seconds}


def test_peer(watch: Stopwatch, test_file: str, model: str) -> dict[str, Any]:
    """Scores of a CRFsuite model."""
    from peers.crfsuite import tag_chunks

    from structpred.evaluation import evaluate_sequences
    from structpred.io import read_columns

    found = tag_chunks(watch, test_file, model, repeats=1)
    scores = evaluate_sequences(read_columns(test_file).labels(), found["labels"])
    return {"accuracy": scores.token_accuracy, "f1": scores.f1}


def train_on_lists(watch: Stopwatch, train_file: str, model: str, limit: int | None = None) -> None:
    """A model of ours from Python lists of feature strings, the same lists that CRFsuite gets."""
    from peers.crfsuite import chunking_features, read_conll

    from structpred.models import ChainLabeler

    sentences = read_conll(train_file)[:limit]
    labels = [[row[2] for row in s] for s in sentences]
    trainer, C, passes = OURS["sgd"]
    ChainLabeler(trainer, C, passes, random_state=0).fit([chunking_features(s) for s in sentences], labels).save(model)


def train_form(watch: Stopwatch, train_file: str, form: str, trainer: str, limit: int | None = None) -> None:
    """Features and training, from lists in memory: ten strings a token in dicts, 100 numbers a token in arrays, or both."""
    import numpy as np

    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    corpus, rng = read_columns(train_file), np.random.default_rng(0)
    corpus = corpus if limit is None else corpus.take(0, limit)
    vectors = rng.normal(size=(len(corpus.vocabularies[0]), 100))
    arrays = np.split(vectors[corpus.codes[:, 0]], corpus.offsets[1:-1])
    X: list[Any] = arrays
    if form != "arrays":
        outside = [("_", "_")] * 2
        padded = [[*outside, *(row[:2] for row in sentence), *outside] for sentence in corpus.sentences()]
        near = [[[cell for row in rows[t : t + 5] for cell in row] for t in range(len(rows) - 4)] for rows in padded]
        X = [[dict(zip("abcdefghij", cells, strict=True)) for cells in tokens] for tokens in near]
    if form == "both":
        X = [[{**token, "v": v} for token, v in zip(tokens, own, strict=True)] for tokens, own in zip(X, arrays, strict=True)]
    labeler = ChainLabeler(trainer, 0.5, 10, random_state=0)
    labeler.fit(X[:10], corpus.labels()[:10])  # loads the kernels
    with watch("fit"):
        labeler.fit(X, corpus.labels())
    watch.seconds["train"] = float(labeler.history_[-1]["cpu_seconds"])


def seeds(watch: Stopwatch, train_file: str, test_file: str, trainer: str, C: float, passes: int) -> dict[str, Any]:
    """F1 on the test set for each of five seeds."""
    from structpred.evaluation import evaluate_sequences
    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    corpus, held_out = read_columns(train_file), read_columns(test_file)
    labels, truth, found = corpus.labels(), held_out.labels(), []
    for seed in TEST_SEEDS:
        labeler = ChainLabeler(trainer, C, passes, template="crfsuite", check_every=passes, random_state=seed)
        predicted = labeler.fit(corpus, labels).predict(held_out)
        found.append(evaluate_sequences(truth, [p.tolist() for p in predicted]).f1)
    return {"f1": found}


def tag_file(watch: Stopwatch, test_file: str, model: str, output: str) -> None:
    """What `structpred predict` does, as a whole process."""
    from structpred.cli import main as shell

    try:
        shell(["predict", model, test_file, "--format", "conll2000", "-o", output])
    except SystemExit as end:
        if end.code:
            raise


def list_rates(watch: Stopwatch, test_file: str, ours: str, peer: str, repeats: int) -> dict[str, Any]:
    """Tokens a second from the same lists of feature strings: ours and Tagger.tag in turns, medians."""
    import pycrfsuite
    from peers.crfsuite import chunking_features, read_conll

    from structpred.models import ChainLabeler

    lists = [chunking_features(s) for s in read_conll(test_file)]
    items = [pycrfsuite.ItemSequence(x) for x in lists]
    labeler, tagger = ChainLabeler.load(ours), pycrfsuite.Tagger()
    tagger.open(peer)
    labeler.predict(lists)  # the table of features is made once
    jobs: dict[str, Callable[[], object]] = {
        "ours": lambda: labeler.predict(lists),
        "tagger": lambda: [tagger.tag(x) for x in lists],
        "items": lambda: [tagger.tag(x) for x in items],
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            seconds[name].append(cpu(job))
    n_tokens = sum(map(len, lists))
    return {name: n_tokens / median(values) for name, values in seconds.items()}


def select(watch: Stopwatch, train_file: str, trainer: str, passes: int, grid: list[float]) -> dict[str, Any]:
    """F1 on the last tenth of the training sentences, for each C and seed."""
    from structpred.evaluation import evaluate_sequences
    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    corpus = read_columns(train_file)
    cut = len(corpus) - len(corpus) // 10
    kept, held_out = corpus.take(0, cut), corpus.take(cut, len(corpus))
    labels, truth = kept.labels(), held_out.labels()
    scores: dict[str, list[float]] = {str(C): [] for C in grid}
    for C in grid:
        for seed in SEEDS:
            labeler = ChainLabeler(trainer, C, passes, template="crfsuite", check_every=passes, random_state=seed)
            predicted = labeler.fit(kept, labels).predict(held_out)
            scores[str(C)].append(evaluate_sequences(truth, [p.tolist() for p in predicted]).f1)
    return scores


def cpu(job: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    job()
    return time.process_time() - start


def print_selection(train_file: str) -> None:
    """The table of held-out scores, and the choice."""
    for name, grid in GRID.items():
        trainer, _, passes = OURS[name]
        found = in_child("chunking:select", train_file=train_file, trainer=trainer, passes=passes, grid=list(grid))
        rows = [[C, *(f"{100 * f:.2f}" for f in found[str(C)]), f"{100 * mean(found[str(C)]):.2f}"] for C in grid]
        print(f"\n{name}, {passes} passes, F1 on the held-out tenth of the training set\n")
        print(table(["C", *(f"seed {seed}" for seed in SEEDS), "mean"], rows))
        print(f"\nchosen: C = {max(grid, key=lambda C: mean(found[str(C)]))}")


def run(quick: bool) -> None:
    """The whole comparison."""
    data, folder = data_folder() / "conll2000", scratch_folder()
    files = {"train_file": str(data / "train.txt.gz")}
    test_file, limit, rows = str(data / "test.txt.gz"), 1000 if quick else None, {}
    for trainer in ("perceptron", "sgd", "bcfw"):  # what numba compiles is kept: startup.py measures it
        in_child("chunking:train", **files, model=str(folder / "warm"), trainer=trainer, C=1.0, passes=2, limit=50)
    trained: dict[str, list[dict[str, Any]]] = {name: [] for name in (*PEERS, *OURS)}
    for turn in range(1 if quick else ROUNDS):
        for name, (algorithm, params) in PEERS.items():
            if turn and algorithm == "lbfgs":
                continue
            job = {"model": str(folder / algorithm), "algorithm": algorithm, "limit": limit}
            job["params"] = {"max_iterations": 5} if quick else params
            trained[name].append(in_child("peers.crfsuite:chunking", **files, **job))
        for name, (trainer, C, passes) in OURS.items():
            job = {"model": str(folder / f"{name}.spz"), "trainer": trainer, "C": C, "passes": passes, "limit": limit}
            trained[name].append(in_child("chunking:train", **files, **job))
    for name, found in trained.items():
        model = str(folder / (PEERS[name][0] if name in PEERS else f"{name}.spz"))
        function = "chunking:test_peer" if name in PEERS else "chunking:test"
        rows[name] = {**in_child(function, test_file=test_file, model=model), **middle(found)}
    in_child("chunking:train_on_lists", **files, model=str(folder / "lists.spz"), limit=limit)
    models = {"ours": str(folder / "lists.spz"), "peer": str(folder / "ap")}
    rates = in_child("chunking:list_rates", test_file=test_file, **models, repeats=1 if quick else 7)
    rates["whole"] = tagging(test_file, folder, 1 if quick else 5)
    print_tables(rows, rates)
    if not quick:
        trainer, C, passes = OURS["sgd"]
        settings = {"trainer": trainer, "C": C, "passes": passes}
        print_arrays(str(data / "train.txt.gz"), limit)
        print_verdicts(rows, rates, in_child("chunking:seeds", **files, test_file=test_file, **settings)["f1"])
    shutil.rmtree(folder)


def middle(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of several runs of one job."""
    sections = {name: median(one["seconds"][name] for one in found) for name in found[0]["seconds"]}
    return {name: median(one[name] for one in found) for name in ("cpu_seconds", "peak_mb")} | {"seconds": sections}


def tagging(test_file: str, folder: Path, rounds: int) -> dict[str, float]:
    """CPU seconds of whole processes that label the test file: `structpred predict` and a script for CRFsuite, in turns."""
    jobs = {"ours": ("chunking:tag_file", "sgd.spz"), "peer": ("peers.crfsuite:tag_file", "ap")}
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, (function, model) in jobs.items():
            files = {"test_file": test_file, "model": str(folder / model), "output": str(folder / "labels")}
            seconds[name].append(in_child(function, **files)["cpu_seconds"])
    return {name: median(found) for name, found in seconds.items()}


def print_arrays(train_file: str, limit: int | None) -> None:
    """The CPU seconds of 100 numbers a token beside strings, and those of each alone."""
    for trainer in ("sgd", "bcfw"):
        forms = {form: in_child("chunking:train_form", train_file=train_file, form=form, trainer=trainer, limit=limit)
                 for form in ("strings", "arrays", "both")}  # fmt: skip
        fit = {form: found["seconds"]["fit"] for form, found in forms.items()}
        ratio = fit["both"] / fit["arrays"]
        seconds = ", ".join(f"{form} {fit[form]:.2f} s" for form in fit)
        print(verdict(f"{trainer}: arrays beside strings <= 1.3 times arrays alone", ratio <= 1.3, f"{ratio:.2f} ({seconds})"))


def print_tables(rows: dict[str, dict[str, Any]], rates: dict[str, Any]) -> None:
    """Scores, times, ratios to lbfgs, memory, rates."""
    print(f"\nCoNLL-2000 chunking ({machine()}); CPU seconds\n")
    lbfgs = rows["crfsuite lbfgs"]
    head = ["", "token acc.", "F1", "read", "featurise", "train", "lbfgs / train", "file to model", "lbfgs / whole", "peak MB"]
    body = []
    for name, row in rows.items():
        s, settings = row["seconds"], ""
        if name in OURS and name != "perceptron":
            settings = f" (C = {OURS[name][1]}, {OURS[name][2]} passes)"
        train_ratio, whole_ratio = lbfgs["seconds"]["train"] / s["train"], lbfgs["cpu_seconds"] / row["cpu_seconds"]
        times = [f"{s['read']:.2f}", f"{s['featurise']:.2f}", f"{s['train']:.2f}", f"{train_ratio:.1f}"]
        whole = [f"{row['cpu_seconds']:.2f}", f"{whole_ratio:.1f}", f"{row['peak_mb']:.0f}"]
        body.append([name + settings, f"{100 * row['accuracy']:.2f}", f"{100 * row['f1']:.2f}", *times, *whole])
    print(table(head, body))
    packed = {name: row["packed_rate"] for name, row in rows.items() if "packed_rate" in row}
    print("\nTokens a second\n")
    tagger = rates["tagger"]
    lines = [[f"ours ({name}), packed features", f"{rate:,.0f}", f"{rate / tagger:.1f}"] for name, rate in packed.items()]
    lines += [["ours, Python lists of feature strings", f"{rates['ours']:,.0f}", f"{rates['ours'] / tagger:.1f}"]]
    lines += [["crfsuite Tagger.tag, the same lists", f"{tagger:,.0f}", "1.0"]]
    lines += [["crfsuite Tagger.tag, prebuilt ItemSequence", f"{rates['items']:,.0f}", f"{rates['items'] / tagger:.1f}"]]
    print(table(["", "tokens/s", "ratio to Tagger.tag from lists"], lines))


def print_verdicts(rows: dict[str, dict[str, Any]], rates: dict[str, Any], f1: list[float]) -> None:
    """One line a requirement, for the trainers that are meant to meet it."""
    lbfgs, ap = rows["crfsuite lbfgs"], rows["crfsuite ap"]
    print()
    scores = ", ".join(f"{100 * score:.2f}" for score in f1)
    print(verdict("sgd: test F1 >= 93.7, mean of five seeds", mean(f1) >= 0.937, f"{100 * mean(f1):.2f} ({scores})"))
    seconds = rows["sgd"]["seconds"]["train"]
    for peer, goal in (("crfsuite lbfgs", 40.0), ("crfsuite ap", 3.5)):
        ratio = rows[peer]["seconds"]["train"] / seconds
        print(
            verdict(f"sgd: training at least {goal:g} times as fast as {peer}", ratio >= goal, f"{ratio:.1f} ({seconds:.2f} s)")
        )
    ours, script = rates["whole"]["ours"], rates["whole"]["peer"]
    print(verdict("predicting a file faster than a script for CRFsuite", ours < script, f"{ours:.2f} s, {script:.2f} s"))
    for name in ("sgd", "bcfw"):
        row = rows[name]
        train, whole = row["seconds"]["train"], row["cpu_seconds"]
        if name != "sgd":
            ratio, to_ap = lbfgs["seconds"]["train"] / train, train / ap["seconds"]["train"]
            print(verdict(f"{name}: test F1 >= 93.7", row["f1"] >= 0.937, f"{100 * row['f1']:.2f}"))
            print(verdict(f"{name}: training <= 1/20 of lbfgs", ratio >= 20, f"1/{ratio:.1f} ({train:.2f} s)"))
            print(verdict(f"{name}: training below ap, 10 iterations", to_ap < 1, f"{to_ap:.2f} of it"))
        for peer, other in (("lbfgs", lbfgs), ("ap", ap)):
            share = whole / other["cpu_seconds"]
            print(verdict(f"{name}: file to model <= 1/4 of {peer}", share <= 0.25, f"{share:.3f} of it"))
        rate = row["packed_rate"]
        print(verdict(f"{name}: decoding >= 1 M tokens/s from packed features", rate >= 1e6, f"{rate / 1e6:.2f} M"))
        least = min(ap["peak_mb"], lbfgs["peak_mb"])
        print(verdict(f"{name}: peak memory below CRFsuite's", row["peak_mb"] < least, f"{row['peak_mb']:.0f} < {least:.0f} MB"))
    gain = rates["ours"] / rates["tagger"]
    print(verdict("from feature lists >= 3 times Tagger.tag", gain >= 3, f"{gain:.1f} times"))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quick", action="store_true", help="a small check that everything runs")
    group.add_argument("--select", action="store_true", help="choose C on held-out training sentences")
    options = parser.parse_args()
    if options.select:
        print_selection(str(Path(data_folder()) / "conll2000" / "train.txt.gz"))
    else:
        run(options.quick)


if __name__ == "__main__":
    main()
