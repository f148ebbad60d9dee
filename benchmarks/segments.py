"""How long SegmentLabeler trains beside ChainLabeler: ``python benchmarks/segments.py [ner | chunking] [--sentences N]``.

Both see the same sentences with the same template and passes, one after the other in one process. Figures are CPU seconds of
`fit`, and ratios of the training loop alone, after a first fit of ten sentences that loads the kernels. Beside a chain over the
labels as they are there is one with coding="iobes", which has the weights that segments have for their tokens. Asked for are at
most 4 times. --only takes some of the trainers.
"""

import argparse
import time
import warnings
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table, verdict

FILES = {"ner": "ner_norwegian_nynorsk/train.tsv.gz", "chunking": "conll2000/train.txt.gz"}
#: name -> trainer, passes, more settings
TRAINERS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "bcfw": ("bcfw", 10, {}),
    "sgd": ("sgd", 10, {}),
    "perceptron": ("perceptron", 10, {}),
    "one_slack": ("one_slack", 10, {}),
    "lbfgs, log loss": ("lbfgs", 20, {}),
    "sgd, log loss": ("sgd", 3, {"surrogate": "log"}),
    "oeg, log loss": ("oeg", 5, {}),
}
LIMIT = 4.0


def train(watch: Stopwatch, data: str, sentences: int, name: str) -> dict[str, Any]:
    """CPU seconds of fit and of its loop, of each kind of model."""
    from structpred.io import read_columns
    from structpred.models import ChainLabeler, SegmentLabeler

    warnings.simplefilter("ignore")
    corpus = read_columns(str(data_folder() / FILES[data])).take(0, sentences)
    labels, (trainer, passes, more) = corpus.labels(), TRAINERS[name]
    kinds = {"chain": (ChainLabeler, {}), "chain, iobes": (ChainLabeler, {"coding": "iobes"}), "segments": (SegmentLabeler, {})}
    found: dict[str, Any] = {}
    for kind, (make, own) in kinds.items():
        settings = {"template": data, "random_state": 0, **more, **own}
        make(trainer, max_iter=1, **settings).fit(corpus.take(0, 10), labels[:10])
        start = time.process_time()
        model = make(trainer, max_iter=passes, check_every=passes, **settings).fit(corpus, labels)
        found[kind] = (time.process_time() - start, float(model.history_[-1]["cpu_seconds"]))
    return found


def main() -> None:
    """One table a data set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("data", nargs="*", default=list(FILES), help=", ".join(FILES))
    parser.add_argument("--sentences", type=int, default=3000)
    parser.add_argument("--only", nargs="*", default=list(TRAINERS))
    given = parser.parse_args()
    print(machine(), flush=True)
    for data in given.data:
        rows = []
        for name in given.only:
            found = in_child("segments:train", data=data, sentences=given.sentences, name=name)
            (chain, loop), (iobes, iobes_loop), (own, own_loop) = (found[kind] for kind in ("chain", "chain, iobes", "segments"))
            seconds = [f"{x:.2f}" for x in (chain, iobes, own)]
            ratios = own / chain, own / iobes, own_loop / loop, own_loop / iobes_loop
            rows.append([name, TRAINERS[name][1], *seconds, *(f"{x:.1f}" for x in ratios)])
            print(verdict(f"{data}, {name}", max(ratios[:2]) <= LIMIT, " and ".join(f"{x:.1f}" for x in ratios[:2])), flush=True)
        head = ["trainer", "passes", "chain s", "iobes s", "segments s", "/ chain", "/ iobes", "loop / chain", "loop / iobes"]
        print(f"\n{data}, {given.sentences} sentences\n\n{table(head, rows)}\n", flush=True)


if __name__ == "__main__":
    main()
