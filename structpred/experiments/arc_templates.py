"""Figure 1 of the online multiple kernel learning paper (Martins et al. 2011, section 4): which templates of a parser matter."""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from structpred.data.arc_templates import ArcTemplate
from structpred.evaluation.parsing import evaluate_treebanks
from structpred.evaluation.trees import UD
from structpred.experiments.claims import PRINTED
from structpred.experiments.experiment import Experiment, Wanted, data_file, once
from structpred.io import Treebank, read_treebank
from structpred.io.templates.arc_template_sets import conjunction_family
from structpred.models import DependencyParser
from structpred.trainers.online_mkl import OnlineMKL

log = logging.getLogger("structpred.experiments")

#: how many templates are left out of the SVMs: models of 107, 207, 307, 407 and 507 templates
LEFT_OUT = (400, 300, 200, 100, 0)
#: of those tried on 1,000 sentences (two epochs): the eta0 with the least objective, the C of MKL with the best UAS
MKL_C, SVM_C, ETA0 = 1.0, 0.05, 0.01
NAMES = {"mkl": "MKL", "svm": "SVM"}
PAPER = "the paper, on CoNLL-2008 (test set): MKL 90.67 %, SVM of all templates 90.92 %"
STAND_IN = (
    "The paper's data, English of the CoNLL-2008 shared task, are licensed: EWT stands in for them (train, dev; gold tags)."
)


@dataclass(frozen=True)
class Training:
    """One training: the share of the words but punctuation with the right head (dev), seconds of CPU, and the norm of each
    template's weights. group_weights: for MKL, |w_k| / sum_k |w_k| after each epoch, tags between being the last group.
    """

    uas: float
    cpu_seconds: float
    norms: Sequence[float]
    group_weights: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Curves:
    """scores: who chose the templates -> pairs of their number and the UAS of the SVM that was trained on them. mkl_uas: of the
    model of MKL itself. group_weights: a row an epoch, for `groups`. cpu_seconds: of all trainings.
    """

    sentences: int
    words: int
    dev_words: int
    epochs: int
    max_bits: int
    groups: Sequence[str]
    group_weights: Sequence[Sequence[float]]
    mkl_uas: float
    scores: Mapping[str, Sequence[tuple[int, float]]]
    cpu_seconds: float


class ArcTemplates(Experiment):
    """Select the feature templates of a dependency parser by multiple kernel learning (Martins, Smith, Xing et al. 2011).

    Online MKL learns the weights of 507 templates, each one a group. Then plain SVMs are trained on the 107, 207, 307, 407 and
    507 templates that weigh most in its model, and in that of the SVM of all templates.

    These are ten trainings, 40 minutes of one processor for all of EWT at 10 epochs. With --output a run that was stopped goes
    on where it was. --quick takes seconds.
    """

    name = "arc-templates"
    summary = "Multiple kernel learning selects the templates of a parser."
    tables: ClassVar = ("figure1",)
    numbers: ClassVar = {
        "sentences": (20_000, "At most so many sentences to train on, spread over the file."),
        "epochs": (10, "Passes over them of each training."),
        "max-bits": (18, "The largest block of a template has 2^so many weights."),
    }
    draws: ClassVar = True

    def run(self, folder: Path, wanted: Wanted) -> Curves:
        """All trainings; those that are kept in the output folder are not done again."""
        sentences, epochs, bits = (200, 2, 10) if wanted.quick else (wanted.numbers[name] for name in self.numbers)
        where = folder / "ud_english_ewt"
        train, dev = (read_treebank(data_file(where, f"en_ewt-ud-{part}.conllu")) for part in ("train", "dev"))
        train = train.take(np.unique(np.linspace(0, len(train) - 1, min(sentences, len(train))).astype(int)))
        with ExitStack() as stack:
            kept = wanted.output or Path(stack.enter_context(TemporaryDirectory()))
            return Run(kept, train, dev, epochs, bits).curves(conjunction_family())

    def text(self, figures: Curves) -> str:
        """One line for each number of templates."""
        last = figures.group_weights[-1]
        top = sorted(zip(last, figures.groups, strict=True), reverse=True)[:8]
        pairs = zip(*(figures.scores[name] for name in NAMES.values()), strict=True)
        zero = ", ".join(str(list(row).count(0.0)) for row in figures.group_weights)
        return "\n".join([
            STAND_IN,
            f"{figures.sentences:,} sentences, {figures.words:,} words, {figures.epochs} epochs; blocks of up to "
            f"2^{figures.max_bits} weights; {figures.dev_words:,} words of dev, punctuation not scored",
            "",
            f"{'templates':>9}   UAS chosen by MKL   by the SVM",
            *(f"{n:>9}{100 * one:>20.2f}{100 * other:>13.2f}" for (n, one), (_, other) in pairs),
            f"MKL itself: {100 * figures.mkl_uas:.2f}{PRINTED}; {PAPER}",
            f"zero groups after each epoch, of {len(last)}: {zero}",
            "the largest of the last:",
            *(f"{weight:9.4f}  {name}" for weight, name in top),
            f"{figures.cpu_seconds:.0f} CPU seconds in all trainings",
        ])  # fmt: skip


class Run:
    """The trainings of one output folder: a result of each one that is done, and a checkpoint of the one that was stopped."""

    def __init__(self, folder: Path, train: Treebank, dev: Treebank, epochs: int, max_bits: int) -> None:
        self.folder, self.train, self.dev, self.epochs, self.max_bits = folder, train, dev, epochs, max_bits
        folder.mkdir(parents=True, exist_ok=True)

    def curves(self, family: list[ArcTemplate]) -> Curves:
        """MKL and SVM of all templates; then SVMs of those that either one gives most weight."""
        mkl = self.trained("mkl", family, OnlineMKL(eta0=ETA0, certificate=False), MKL_C)
        svm = self.trained("svm", family, "sgd", SVM_C)
        orders = {"mkl": selected(mkl), "svm": selected(svm)}
        scores: dict[str, list[tuple[int, float]]] = {name: [] for name in NAMES.values()}
        seconds = mkl.cpu_seconds + svm.cpu_seconds
        for n in (len(family) - left_out for left_out in LEFT_OUT):
            for chooser, order in orders.items():
                if n == len(family):
                    one = svm
                else:
                    one = self.trained(f"svm-{n}-by-{chooser}", [family[t] for t in sorted(order[:n])], "sgd", SVM_C)
                    seconds += one.cpu_seconds
                scores[NAMES[chooser]].append((n, one.uas))
        names = [*map(str, family), "tags between"]
        sizes = len(self.train), self.train.n_words, self.dev.n_words, self.epochs, self.max_bits
        return Curves(*sizes, names, mkl.group_weights, mkl.uas, scores, seconds)

    def trained(self, name: str, templates: list[ArcTemplate], trainer: Any, C: float) -> Training:
        """The result that is kept, or that of training, from the checkpoint on where there is one."""
        checkpoint = self.folder / f"{name}.ckpt"

        def train() -> dict[str, Any]:
            log.info("training %s: %d templates", name, len(templates))
            parser = DependencyParser(
                trainer, C, self.epochs, templates=templates, max_bits=self.max_bits, projective=False, labelled=False,
                checkpoint=checkpoint, resume=checkpoint.exists(), check_every=self.epochs, random_state=0,
            ).fit(self.train)  # fmt: skip
            return asdict(self._scored(parser))

        found = Training(**once(self.folder, name, train))
        for left in self.folder.glob(f"{checkpoint.name}*"):
            left.unlink()
        return found

    def _scored(self, parser: DependencyParser) -> Training:
        start = time.process_time()
        found = Treebank.of(self.dev.sentences(), parser.predict(self.dev))
        uas = evaluate_treebanks(self.dev, found, UD).without_punctuation.uas
        seconds = float(parser.history_[-1]["cpu_seconds"] or 0.0) + time.process_time() - start
        rows = parser.report_.get("group_weights", np.empty((0, 0)))
        return Training(uas, seconds, parser.group_norms_[:-1].tolist(), rows.tolist())


def selected(training: Training) -> list[int]:
    """The templates, largest weight first; among those that are zero in the end, the largest on average over the epochs first."""
    norms = np.array(training.norms)
    earlier = np.mean(training.group_weights, axis=0)[:-1] if len(training.group_weights) else norms
    order: list[int] = np.lexsort((-earlier, -norms)).tolist()
    return order
