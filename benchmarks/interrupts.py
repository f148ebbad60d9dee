"""How long a run takes to stop after Ctrl-C: seconds from the signal to the end of the process, checkpoint included.

    python benchmarks/interrupts.py [NAME...]

Each run is a command of the shell on real data, interrupted in the middle of a pass. Closing Python is part of the time. CPU
seconds, too, since other programs may be running; those of the thread that computes checksums are among them.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import data_folder, machine, table

CHAIN = ("arow", "bcfw", "lbfgs", "mira", "n_slack", "oeg", "one_slack", "owlqn", "pa", "perceptron", "sgd")


def commands(folder: Path) -> dict[str, list[str]]:
    """name -> the arguments of a command that would run for long."""
    data = data_folder()
    endless = ["--max-iter", "100000", "--check-every", "100000"]
    chunks = ["train", "chain", str(data / "conll2000" / "train.txt.gz"), "--format", "conll2000", "--template", "crfsuite"]
    bank = ["train", "parser", str(data / "ud_english_ewt" / "en_ewt-ud-train.conllu.gz")]
    yeast = [
        "train", "multilabel", str(data / "multilabel_yeast" / "yeast-train.arff.gz"),
        "--labels", str(data / "multilabel_yeast" / "yeast.xml.gz"),
    ]  # fmt: skip
    runs = {f"chain, {name}": [*chunks, "--trainer", name, *endless] for name in CHAIN}
    runs |= {f"parser, {name}": [*bank, "--trainer", name, *endless] for name in ("mira", "bcfw", "oeg")}
    runs |= {f"labels, {name}": [*yeast, "--trainer", name, *endless] for name in ("bcfw", "one_slack", "lbfgs")}
    runs["labels, bcfw, slack"] = [*yeast, "--surrogate", "slack", *endless]
    runs = {name: [*run, "-o", str(folder / "model.spz"), "--json"] for name, run in runs.items()}
    runs["experiment, slack"] = ["bench", "slack"]
    return runs


def cpu_seconds(process: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stopped(arguments: list[str], after: float) -> tuple[float, float, int]:
    """Seconds and CPU seconds from the signal to the end, and the exit code; the signal comes when `after` have been used."""
    process = subprocess.Popen(
        [sys.executable, "-m", "structpred.cli", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    while process.poll() is None and cpu_seconds(process.pid) < after:
        time.sleep(0.01)
    at, start = cpu_seconds(process.pid), time.perf_counter()
    process.send_signal(signal.SIGINT)
    _, status, used = os.wait4(process.pid, 0)
    return time.perf_counter() - start, used.ru_utime + used.ru_stime - at, os.waitstatus_to_exitcode(status)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*")
    options.add_argument("--after", type=float, default=12.0, help="CPU seconds of a run before the signal")
    given = options.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in commands(Path(folder)).items():
            if not given.names or any(part in name for part in given.names):
                seconds, cpu, code = stopped(arguments, given.after)
                print(f"{name}: {seconds:.2f}, CPU {cpu:.2f} (exit code {code})", file=sys.stderr, flush=True)
                rows.append([name, f"{seconds:.2f}", f"{cpu:.2f}", str(code)])
    print(f"{machine()}\n\n{table(['run', 's to the end', 'CPU s', 'exit code'], rows)}")


if __name__ == "__main__":
    main()
