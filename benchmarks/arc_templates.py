"""Seconds per million tokens of a parser with 507 templates: ``python benchmarks/arc_templates.py [--quick]``.

English EWT with gold tags, sentences spread over the training file, arcs alone, on one thread, each row in its own process. The
passes of online multiple kernel learning stand beside those of mira and sgd, which have one group: their ratio shows what the
groups cost, whatever else the machine is doing. The objective is computed once, after the last pass, and counted apart.
--quick takes few sentences and small blocks: a check that everything runs.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table, verdict

TRAIN = "ud_english_ewt/en_ewt-ud-train.conllu.gz"
TRAINERS = {"mira": 0.01, "sgd": 0.05, "online_mkl": 1.0}
#: CPU seconds per million tokens and pass
GOAL = 250.0


def passes(watch: Stopwatch, path: str, trainer: str, C: float, sentences: int, n_passes: int, max_bits: int) -> dict[str, Any]:
    """Seconds of the passes, and of the objective after the last one."""
    import numpy as np

    from structpred.io import read_treebank
    from structpred.io.templates.arc_template_sets import conjunction_family
    from structpred.models import DependencyParser
    from structpred.trainers.names import trainers

    kind = trainers()[trainer]
    spent = [0.0]

    class Timed(kind):  # type: ignore[misc, valid-type]
        """The trainer, with a clock at its objective."""

        name = f"timed_{trainer}"

        def objective(self, problem: Any, state: Any) -> Any:
            start = time.process_time()
            found = super().objective(problem, state)
            spent[0] += time.process_time() - start
            return found

    treebank = read_treebank(path)
    corpus = treebank.take(np.linspace(0, len(treebank) - 1, sentences).astype(int))
    options = {"eta0": 0.01} if trainer == "online_mkl" else {}
    for few in (True, False):  # kernels are loaded by the first
        spent[0] = 0.0
        parser = DependencyParser(
            Timed(**options), C, 1 if few else n_passes, templates=conjunction_family(), labelled=False,
            max_bits=8 if few else max_bits, check_every=n_passes, random_state=0,
        )  # fmt: skip
        parser.fit(corpus.take(range(20)) if few else corpus)
    seconds = parser.history_[-1]["cpu_seconds"] - spent[0]
    millions = corpus.n_words / 1e6
    return {"train": seconds / (n_passes * millions), "objective": spent[0] / millions, "weights": len(parser.coef_)}


def main() -> None:
    """One row a trainer."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="few sentences, small blocks")
    options.add_argument("--max-bits", type=int, default=18, help="the largest block of a template has 2^so many weights")
    given = options.parse_args()
    size = {"sentences": 100, "n_passes": 1, "max_bits": 10} if given.quick else {"sentences": 3000, "n_passes": 3}
    size = {"max_bits": given.max_bits, **size}
    path = str(Path(data_folder()) / TRAIN)
    found = {name: in_child("arc_templates:passes", path=path, trainer=name, C=C, **size) for name, C in TRAINERS.items()}
    mira = found["mira"]["train"]
    rows = [
        [name, f"{r['train']:.0f}", f"{1e6 / r['train']:,.0f}", f"{r['train'] / mira:.2f}", f"{r['objective']:.0f}",
         f"{r['weights'] / 1e6:.0f} M", f"{r['peak_mb']:,.0f}"]
        for name, r in found.items()
    ]  # fmt: skip
    head = ["trainer", "s per million tokens", "tokens/s", "of mira", "objective", "weights", "peak MB"]
    print(f"{machine()}\n\n{table(head, rows)}\n")
    mkl = found["online_mkl"]["train"]
    print(verdict(f"online_mkl: a pass over a million tokens in at most {GOAL:.0f} s", mkl <= GOAL, f"{mkl:.0f} s"))


if __name__ == "__main__":
    main()
