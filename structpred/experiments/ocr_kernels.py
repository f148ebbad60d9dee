"""Models with kernels between letter images, and how their settings are chosen: what the runs of `ocr_mkl` are made of."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from structpred.evaluation.model_selection import cross_val_predict
from structpred.experiments.experiment import spread
from structpred.features.positions import PositionSequences
from structpred.io.ocr import OcrWords
from structpred.models.chain.targets import token_accuracy
from structpred.models.kernels.functions import RBF, B1Spline, Kernel, Linear, Polynomial
from structpred.models.kernels.gram import gram_of
from structpred.models.kernels.inputs import canonical
from structpred.models.kernels.labeler import KernelChainLabeler
from structpred.task.function_space import Gram
from structpred.trainers.corrective import Corrective
from structpred.trainers.proximal import OnlineProximal, best_rate

log = logging.getLogger("structpred.experiments")

#: linear and quadratic kernels with unit diagonal, sigma^2 = 5, and 5 % of the B1-spline's values not zero
KERNELS: dict[str, Kernel] = {
    "L": Linear(normalised=True),
    "Q": Polynomial(2, normalised=True),
    "G": RBF(0.1),
    "B": B1Spline(0.05),
}
#: test letters whose kernel values are held at once
BLOCK = 512


@dataclass(frozen=True)
class Plan:
    """How much is run. parts: of the cross-validation. most: words of each set; None for all. passes: of batch training."""

    epochs: int = 20
    trial: int = 5
    parts: int = 3
    grid: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
    rates: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    most: int | None = None
    passes: int = 150

    @classmethod
    def quick(cls) -> "Plan":
        """A few seconds."""
        return cls(5, 2, 2, (1.0, 10.0), (1.0, 10.0), 60, 10)


@dataclass(frozen=True)
class Model:
    """Which kernels, and whether their mean is one kernel; else each is a group of multiple kernel learning."""

    name: str
    kernels: tuple[str, ...]
    mean: bool = False

    def packed(self, values: Mapping[str, Gram], offsets: Any) -> PositionSequences:
        """Words as its labelers read them. values: of each kernel, with the training positions in columns."""
        found = [values[name] for name in self.kernels]
        if not self.mean:
            return PositionSequences(found, offsets, self.kernels)
        return PositionSequences([sum(found) / np.float32(len(found))], offsets, [self.name])


def labeler(X: PositionSequences, C: float, eta0: float | None, passes: int) -> KernelChainLabeler:
    """Multiple kernel learning where there are several kernels, online; eta0=None: in batches, to a gap of 1 %."""
    every, trainer = (5, Corrective()) if eta0 is None else (passes, OnlineProximal(eta0=eta0, certificate=False))
    return KernelChainLabeler(
        trainer, C, passes, 0.01, kernels=["precomputed"] * len(X.grams), regulariser="mkl" if len(X.grams) > 1 else "l2",
        check_every=every,
    )  # fmt: skip


def chosen(X: PositionSequences, y: Sequence[Any], plan: Plan) -> KernelChainLabeler:
    """With the C that labels most letters of the held-out words correctly in a cross-validation, of equal ones the smallest. For
    each C, the step size is the one with the least objective on all words after some epochs.
    """

    def objective(C: float, eta0: float) -> float | None:
        return labeler(X, C, eta0, plan.trial).fit(X, y).certificate_.primal

    found = [labeler(X, C, best_rate(partial(objective, C), plan.rates), plan.epochs) for C in plan.grid]
    return max(found, key=lambda model: held_out(model, X, y, plan.parts))


def held_out(model: KernelChainLabeler, X: PositionSequences, y: Sequence[Any], parts: int) -> float:
    """The share of right letters of every `parts`-th word, trained on the other words."""
    part = np.arange(len(X)) % parts
    folds = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(parts)]
    return token_accuracy(y, cross_val_predict(model, X, y, cv=folds))


@dataclass(frozen=True)
class Run:
    """One model on one fold."""

    model: str
    accuracy: float
    C: float
    eta0: float
    seconds: float
    weights: list[float]
    groups: list[str]
    gap: float | None


def parted(words: OcrWords, k: int, most: int | None) -> tuple[OcrWords, OcrWords]:
    """Words to train on, and to test on: at most so many of each."""
    train, test = words.select(words.folds == k), words.select(words.folds != k)
    if most is None:
        return train, test
    # there are 55 words, each by many writers in a row: a few from all of them, half to train on
    half = sorted({tuple(word) for word in words.letters})[::2]
    own, rest = (
        np.flatnonzero([(tuple(word) in half) == trained for word in some.letters])
        for some, trained in ((train, True), (test, False))
    )
    return train.select(own[spread(len(own), most)]), test.select(rest[spread(len(rest), most)])


def one_fold(words: OcrWords, k: int, models: Sequence[Model], plan: Plan, batch: bool) -> list[Run]:
    """Choose, train and test every model."""
    train, test = parted(words, k, plan.most)
    rows, names = canonical(train.packed()), sorted({name for model in models for name in model.kernels})
    kernels = {name: KERNELS[name].fitted(rows) for name in names}
    grams, found = {name: gram_of(kernel, rows) for name, kernel in kernels.items()}, []
    for model in models:
        log.info("fold %d: %s", k, model.name)
        X = model.packed(grams, train.offsets)
        best = chosen(X, train.letters, plan)
        found.append((model.name, model, best.fit(X, train.letters)))
        if batch and len(X.grams) > 1:
            log.info("fold %d: %s, batch", k, model.name)
            optimum = labeler(X, min(best.C, 10.0), None, plan.passes)
            found.append((f"{model.name}, batch", model, optimum.fit(X, train.letters)))
    right = np.zeros(len(found))
    for some in np.array_split(np.arange(len(test)), 1 + test.n_letters // BLOCK):
        block = test.select(some)
        images = canonical(block.packed())
        values = {name: kernel(images, rows).astype(np.float32) for name, kernel in kernels.items()}
        for j, (_, model, own) in enumerate(found):
            right[j] += own.score(model.packed(values, block.offsets), block.letters) * block.n_letters
    shares = (right / test.n_letters).tolist()
    return [_run(name, share, own) for share, (name, _, own) in zip(shares, found, strict=True)]


def _run(name: str, share: float, model: KernelChainLabeler) -> Run:
    eta0 = model.trainer.eta0 if isinstance(model.trainer, OnlineProximal) else 0.0
    seconds, weights = model.history_[-1]["cpu_seconds"] or 0.0, model.group_weights_.tolist()
    return Run(name, 100 * share, model.C, eta0, seconds, weights, model.group_names_, model.certificate_.relative_gap)
