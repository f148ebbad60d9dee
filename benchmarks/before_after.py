"""CPU seconds of this checkout against another one, run by run in turns, and whether the results are the same bits.

    python benchmarks/before_after.py OTHER_CHECKOUT [--only conll2000 yeast] [--rounds 7]

Each checkout has a process of its own, which loads data and kernels once. A round runs a workload in both, one after the other,
in an order that alternates; the ratio of a round is after / before. Other programs on the machine disturb both alike, and only
ever make a run slower: the ratio of the fastest runs says most where there are many rounds. Whole fits include what is done
once. So there is a second ratio where a fit has passes without a check: of one such pass alone.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from digests import DATA, crfsuite_template, digest
from measure import data_folder, machine, table

HERE = Path(__file__).resolve()


def decoding() -> dict[str, Callable[[], Any]]:
    """Predictions of small models on many inputs."""
    from structpred.io import read_columns, read_treebank
    from structpred.models import ChainLabeler, DependencyParser

    corpus = read_columns(str(data_folder() / "conll2000" / "train.txt.gz"))
    chain = ChainLabeler("sgd", 0.5, 2, template=crfsuite_template()).fit(corpus.take(0, 2000), corpus.take(0, 2000).labels())
    bank = read_treebank(str(data_folder() / "ud_english_ewt" / "en_ewt-ud-train.conllu.gz"))
    parser = DependencyParser("mira", max_iter=1).fit(bank.take(range(300)))
    many = bank.take(range(1500))
    return {"chain": lambda: chain.predict(corpus), "parser": lambda: parser.predict(many)}


def runs(only: list[str]) -> dict[str, Callable[[], Any]]:
    """name -> a workload that returns a fitted model, or predictions."""
    found = {f"{data}, {name}": run for data, make in DATA.items() if not only or data in only for name, run in make()}
    if not only or "decoding" in only:
        found |= {f"decoding, {name}": run for name, run in decoding().items()}
    return found


def bits(result: Any) -> str:
    """A digest of a fitted model, or of predictions."""
    import hashlib

    return digest(result) if hasattr(result, "coef_") else hashlib.sha256(repr(result).encode()).hexdigest()[:16]


def pass_seconds(result: Any) -> float | None:
    """CPU seconds of a pass that ends without a check, after the first; None where there are none."""
    at = [row["cpu_seconds"] for row in getattr(result, "history_", ()) if row["primal"] is None]
    return (at[-1] - at[0]) / (len(at) - 1) if len(at) > 1 else None


def serve(only: list[str]) -> None:
    """Answer each name on standard input with CPU seconds and a digest; first with all names."""
    known = runs(only)
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        start = time.process_time()
        result = known[line.strip()]()
        seconds = time.process_time() - start
        print(json.dumps([seconds, bits(result), pass_seconds(result)]), flush=True)


class Checkout:
    """A process that runs workloads with the structpred of one checkout."""

    def __init__(self, folder: Path, only: list[str]) -> None:
        paths = os.pathsep.join([str(folder), str(HERE.parent)])
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), str(folder), "--serve", *(["--only", *only] if only else [])],
            env={**os.environ, "PYTHONPATH": paths}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.names: list[str] = self.answer()

    def answer(self) -> Any:
        """The next line, read."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a process ended early; its message stands above")
        return json.loads(line)

    def run(self, name: str) -> tuple[float, str, float | None]:
        """CPU seconds, digest and CPU seconds of a pass of one run."""
        assert self.process.stdin is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        seconds, found, one_pass = self.answer()
        return seconds, found, one_pass


def compared(before: Checkout, after: Checkout, name: str, rounds: int) -> list[str]:
    """One row of the table: the first round loads kernels and is not counted."""
    same, ratios, passes, seconds, olds = True, [], [], [], []
    for k in range(rounds + 1):
        pair = [before, after] if k % 2 else [after, before]
        found = {side: side.run(name) for side in pair}
        (old, was, old_pass), (new, now, new_pass) = found[before], found[after]
        same &= was == now
        if k:
            ratios.append(new / old)
            seconds.append(new)
            olds.append(old)
            if old_pass and new_pass:
                passes.append(new_pass / old_pass)
    print(f"{name}: {statistics.median(ratios):.3f}, {min(seconds) / min(olds):.3f}", file=sys.stderr, flush=True)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return [
        name,
        "same" if same else "DIFFERENT",
        f"{statistics.median(seconds):.2f}",
        f"{statistics.median(ratios):.3f}",
        spread,
        f"{min(seconds) / min(olds):.3f}",
        f"{statistics.median(passes):.3f}" if passes else "-",
    ]


def main() -> None:
    """Compare, or serve one side of a comparison."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("other", type=Path)
    options.add_argument("--only", nargs="*", default=[], choices=[*DATA, "decoding"])
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        serve(given.only)
        return
    before, after = Checkout(given.other.resolve(), given.only), Checkout(HERE.parent.parent, given.only)
    rows = [compared(before, after, name, given.rounds) for name in after.names if name in before.names]
    print(f"{machine()}\n\n{table(['run', 'bits', 'CPU s', 'after / before', 'rounds', 'fastest', 'a pass'], rows)}")


if __name__ == "__main__":
    main()
