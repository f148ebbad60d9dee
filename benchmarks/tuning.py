"""Successive halving against the full grid: ``python benchmarks/tuning.py [--quick] [--only ocr|conll2000]``.

Both are `structpred tune`, once as it is and once with --min-passes as large as --max-iter, so that nothing is dropped; each is a
process of its own, whose CPU seconds hold everything from reading the data to the table. Then a search is killed (SIGKILL) on
its way, several times, and continued: its table must be that of the uninterrupted one. CoNLL-2000: the last tenth of the training
sentences is held out. OCR: fold 0, three folds of it. The test sets take no part.

--quick: 1,000 sentences and few passes, to see that everything runs.
"""

import argparse
import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from measure import ONE_THREAD, ROOT, data_folder, machine, scratch_folder, table, verdict

C = {
    "conll2000": ("0.03", "0.1", "0.3", "1", "3", "10", "30"),
    "ocr": ("0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30", "100"),
}
TRAINERS = ("sgd", "bcfw")


class Searched(NamedTuple):
    """What a search printed, and what it cost."""

    figures: dict[str, Any]
    cpu_seconds: float


def conll2000(folder: Path, quick: bool) -> list[str]:
    """The options of a search on CoNLL-2000; writes the two parts of the training data."""
    with gzip.open(data_folder() / "conll2000" / "train.txt.gz", "rt") as file:
        sentences = [text for text in file.read().split("\n\n") if text.strip()][: 1000 if quick else None]
    cut = len(sentences) - len(sentences) // 10
    for name, part in (("train", sentences[:cut]), ("dev", sentences[cut:])):
        (folder / f"{name}.txt").write_text("\n\n".join(part) + "\n")
    files = ["--train", str(folder / "train.txt"), "--dev", str(folder / "dev.txt"), "--C", *C["conll2000"]]
    return [*files, "--format", "conll2000", "--template", "crfsuite", "--dev-metric", "f1", "--max-iter", "9" if quick else "27"]


def ocr(folder: Path, quick: bool) -> list[str]:
    """The options of a search on fold 0 of the OCR letters."""
    file = str(data_folder() / "ocr_letters" / "letter.data.gz")
    options = ["--train", file, "--format", "ocr", "--folds", "0", "--cv", "3", "--C", *C["ocr"]]
    return [*options, "--max-iter", "9" if quick else "81"]


def command(options: list[str], *more: str) -> list[str]:
    """The command line of a search."""
    return [sys.executable, "-m", "structpred.cli", "tune", "chain", *options, "--trainer", *TRAINERS, "--json", "-q", *more]


def search(options: list[str], *more: str) -> Searched:
    """Run a search."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command(options, *more), env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Searched(json.loads(done.stdout), spent)


def environment() -> dict[str, str]:
    """One thread, this project, and Python's own compiled files, as in an installation."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **ONE_THREAD, "PYTHONPATH": str(ROOT)}


def killed_search(options: list[str], run: Path, kills: int = 3) -> dict[str, Any]:
    """The same search, killed each time after a few more runs, and continued by two processes in the end."""
    for _ in range(kills):
        known = _n_runs(run)
        process = subprocess.Popen(command(options, "--resume", str(run)), env=environment(), stdout=subprocess.DEVNULL)
        while process.poll() is None and _n_runs(run) < known + 4:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    return search(options, "--resume", str(run), "--jobs", "2").figures


def _n_runs(run: Path) -> int:
    """How often a run has ended, by the state in the folder."""
    file = run / "tuning.json"
    return sum(row["passes"] for row in json.loads(file.read_bytes())["runs"]) if file.exists() else 0


def without_seconds(figures: dict[str, Any]) -> Any:
    """The table of a search without what differs from run to run, and without the folder."""
    trials = [{name: value for name, value in trial.items() if name != "cpu_seconds"} for trial in figures["trials"]]
    return figures["best"], figures["rungs"], trials


def compare(name: str, options: list[str], folder: Path) -> None:
    """Print both searches, and whether the promises hold."""
    passes = options[options.index("--max-iter") + 1]
    full, halved = search(options, "--min-passes", passes), search(options)
    again = killed_search(options, folder / "run")
    by_setting = {json.dumps(trial["setting"]): trial for trial in halved.figures["trials"]}
    rows = []
    for trial in full.figures["trials"]:
        other = by_setting[json.dumps(trial["setting"])]
        cells = [f"{100 * trial['score']:.2f}", f"{trial['cpu_seconds']:.1f}"]
        cells += [f"{100 * other['score']:.2f}", str(other["passes"]), f"{other['cpu_seconds']:.1f}"]
        rows.append([*map(str, trial["setting"].values()), *cells])
    print(f"\n{name}, {passes} passes, {full.figures['score']} on held-out data in per cent; CPU seconds\n")
    print(table([*full.figures["trials"][0]["setting"], "full grid", "CPU s", "halving", "passes", "CPU s"], rows))
    best, found = full.figures["best"], halved.figures["best"]
    behind, share = 100 * (best["score"] - found["score"]), halved.cpu_seconds / full.cpu_seconds
    print(f"\nfull grid: {best} in {full.cpu_seconds:.1f} s; halving: {found} in {halved.cpu_seconds:.1f} s\n")
    print(verdict(f"{name}: within 0.2 points of the best of the full grid", behind <= 0.2, f"{behind:.2f} behind"))
    print(verdict(f"{name}: in a quarter of its CPU time", share <= 0.25, f"{share:.3f} of it"))
    same = without_seconds(again) == without_seconds(halved.figures)
    print(verdict(f"{name}: killed and resumed to the same table", same, "the same" if same else "another"), flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small check that everything runs")
    parser.add_argument("--only", choices=("ocr", "conll2000"), help="one of the data sets")
    options = parser.parse_args()
    print(f"structpred tune against the full grid ({machine()})")
    for name, make in (("ocr", ocr), ("conll2000", conll2000)):
        if options.only in (None, name):
            folder = scratch_folder()
            compare(name, make(folder, options.quick), folder)
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
