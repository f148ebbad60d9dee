"""Kernels between letter images, and sequence models with them: what the runs of `ocr_mkl` are made of."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structpred.core.types import AnyArray, Floats32, Integers
from structpred.features.positions import PositionFeatures
from structpred.io.ocr import OcrWords
from structpred.models.kernels.functions import RBF, B1Spline, Linear, Polynomial, ProductKernel
from structpred.models.kernels.gram import checked_gram
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.objectives.regularisers.l2 import L2
from structpred.objectives.regularisers.mkl import MKL
from structpred.oracles.chain import ChainOracle
from structpred.task.function_space import Gram
from structpred.task.task import Task
from structpred.trainers.function_corrective import FunctionCorrective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.online.grouped_weights import FunctionNorms
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.proximal import OnlineProximal, best_rate

#: linear and quadratic kernels with unit diagonal, sigma^2 = 5, and 5 % of the B1-spline's values not zero
KERNELS: dict[str, ProductKernel] = {
    "L": Linear(normalised=True),
    "Q": Polynomial(2, normalised=True),
    "G": RBF(0.1),
    "B": B1Spline(0.05),
}
#: test letters whose kernel values are held at once
BLOCK = 2048


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


@dataclass(frozen=True, eq=False)
class Fold:
    """Words to train on: images, codes of the letters, where words begin, and the Gram matrices."""

    images: Floats32
    codes: Integers
    offsets: Integers
    n_labels: int
    kernels: dict[str, ProductKernel]
    grams: dict[str, Gram] = field(repr=False)

    @classmethod
    def of(cls, words: OcrWords, labels: Sequence[str], names: Sequence[str]) -> "Fold":
        """The inner products are computed once for all kernels."""
        from scipy import sparse

        images, rows = words.pixels.astype(np.float32), sparse.csr_array(words.pixels.astype(np.float64))
        kernels = {name: KERNELS[name].fitted(rows) for name in names}
        grams: dict[str, Gram] = {}
        for name, kernel, values in values_of(kernels, images, images):
            found = sparse.csr_array(values) if name == "B" else values
            grams[name] = checked_gram(found, f"kernel {name}", kernel)
        return cls(images, _codes(words, labels), words.offsets, len(labels), kernels, grams)

    def positions(self, words: Integers) -> Integers:
        """The positions of some of the words."""
        return np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in words.tolist()])

    def take(self, words: Integers, kernels: Sequence[str]) -> "Fold":
        """Some of the words, with the Gram matrices of these kernels."""
        positions, offsets = self.positions(words), np.concatenate(([0], np.cumsum(np.diff(self.offsets)[words])))
        grams = {name: _part(self.grams[name], positions, positions) for name in kernels}
        return Fold(self.images[positions], self.codes[positions], offsets, self.n_labels, self.kernels, grams)

    def task(self, model: Model) -> Task:
        """The training set of a model."""
        listed = [self.grams[name] for name in model.kernels]
        if model.mean:
            listed = [_dense(sum(_dense(gram) for gram in listed) / np.float32(len(listed)))]
        names = [model.name] if model.mean else model.kernels
        features = PositionFeatures(listed, self.offsets, self.n_labels, names)
        shapes = [(length, self.n_labels) for length in np.diff(self.offsets).tolist()]
        return Task(features, ChainOracle(), np.split(self.codes, self.offsets[1:-1]), shapes, Hamming())


class Expansion(NamedTuple):
    """A model that was trained: (letters, labels) coefficients for each kernel, and start, stop and transition scores."""

    coefficients: dict[str, AnyArray]
    edges: AnyArray
    transitions: AnyArray


class Found(NamedTuple):
    """A model, the settings that were chosen for it, seconds of the last training run, the weights of its groups, and of batch
    training the gap as a share of the primal.
    """

    expansion: Expansion
    C: float
    eta0: float
    seconds: float
    weights: AnyArray
    groups: list[str]
    gap: float | None = None


def chosen(fold: Fold, model: Model, plan: Plan) -> Found:
    """Trained with the C that labels most letters of the held-out words correctly in a cross-validation, of equal ones the
    smallest. For each C, the step size is the one with the least objective on all words after some epochs.
    """
    task = fold.task(model)
    rates = [step_size(_problem(task, C), plan) for C in plan.grid]
    right = np.sum([held_out(fold, model, plan, rates, part) for part in range(plan.parts)], axis=0)
    best = int(np.argmax(right))
    return _trained(task, model, plan.grid[best], rates[best], plan.epochs)


def step_size(problem: Problem, plan: Plan) -> float:
    """The best of the grid; where that is at its edge, powers of ten beyond it, as long as they are better."""
    trainer = OnlineProximal(certificate=False)
    best = best_rate(problem, plan.rates, trainer, passes=plan.trial)
    factor = {max(plan.rates): 10.0, min(plan.rates): 0.1}.get(best, 1.0)
    while factor != 1.0 and (other := best_rate(problem, (best, factor * best), trainer, passes=plan.trial)) != best:
        best = other
    return best


def held_out(fold: Fold, model: Model, plan: Plan, rates: Sequence[float], part: int) -> AnyArray:
    """How many letters of every `parts`-th word each C labels correctly, trained on the other words."""
    words = np.arange(len(fold.offsets) - 1)
    own, rest = words[words % plan.parts != part], words[words % plan.parts == part]
    ends, positions = np.concatenate(([0], np.cumsum(np.diff(fold.offsets)[rest]))), fold.positions(rest)
    cross = {name: _part(fold.grams[name], positions, fold.positions(own)) for name in model.kernels}
    task, right = fold.take(own, model.kernels).task(model), []
    for C, eta0 in zip(plan.grid, rates, strict=True):
        expansion = _trained(task, model, C, eta0, plan.epochs).expansion
        scores = np.sum([cross[name] @ coefficients for name, coefficients in expansion.coefficients.items()], axis=0)
        right.append(accuracy(expansion, scores, ends, fold.codes[positions]) * len(positions))
    return np.array(right)


def certified(fold: Fold, model: Model, C: float, plan: Plan) -> Found:
    """The batch optimum: trained to a gap of 1 %, or for this many passes."""
    settings = RunSettings(max_iter=plan.passes, tol=0.01, check_every=5)
    return _found(fold.task(model), model, C, 0.0, FunctionCorrective(), settings)


def _trained(task: Task, model: Model, C: float, eta0: float, epochs: int) -> Found:
    trainer, settings = OnlineProximal(eta0=eta0, certificate=False), RunSettings(max_iter=epochs, check_every=epochs)
    return _found(task, model, C, eta0, trainer, settings)


def _problem(task: Task, C: float) -> Problem:
    space = task.features.space  # type: ignore[attr-defined]
    regulariser = FunctionNorms(MKL() if len(space.grams) > 1 else L2(), space)
    return Problem(task, MarginRescaling(), 1.0 / (C * len(task)), regulariser=regulariser)


def _found(task: Task, model: Model, C: float, eta0: float, trainer: Trainer, settings: RunSettings) -> Found:
    problem, start = _problem(task, C), time.process_time()
    result = train(problem, trainer, settings)
    seconds = time.process_time() - start
    space, w = problem.task.features.space, result.weights  # type: ignore[attr-defined]
    share, others = len(model.kernels) if model.mean else 1, w[space.groups[-3] :].reshape(-1, space.n_labels)
    coefficients = {name: space.coefficients(w, 0 if model.mean else k).T / share for k, name in enumerate(model.kernels)}
    weights, gap = result.report["group_weights"][-1], result.certificate.relative_gap
    return Found(Expansion(coefficients, others[:2], others[2:]), C, eta0, seconds, weights, list(result.group_names), gap)


def accuracies(fold: Fold, models: Sequence[Expansion], test: OcrWords, labels: Sequence[str]) -> list[float]:
    """The share of right letters of each model; the kernels between test and training letters are computed once for all."""
    images, n, L = test.pixels.astype(np.float32), test.n_letters, fold.n_labels
    scores = np.zeros((len(models), n, L), np.float32)
    users = {name: [j for j, model in enumerate(models) if name in model.coefficients] for name in fold.kernels}
    stacked = {name: np.hstack([models[j].coefficients[name] for j in of]) for name, of in users.items() if of}
    used = {name: fold.kernels[name] for name in stacked}
    for a in range(0, n, BLOCK):
        for name, _, values in values_of(used, images[a : a + BLOCK], fold.images):
            found = (values @ stacked[name]).reshape(len(values), -1, L)
            for k, j in enumerate(users[name]):
                scores[j, a : a + BLOCK] += found[:, k]
    codes = _codes(test, labels)
    return [accuracy(model, own, test.offsets, codes) for model, own in zip(models, scores, strict=True)]


def accuracy(model: Expansion, scores: AnyArray, offsets: Integers, codes: Integers) -> float:
    """The share of letters that the best label sequences have right. scores: (letters, labels) of the kernels, changed."""
    scores[offsets[:-1]] += model.edges[0]
    scores[offsets[1:] - 1] += model.edges[1]
    steps, oracle, right = model.transitions.ravel().astype(np.float64), ChainOracle(), 0
    for a, b in pairwise(offsets.tolist()):
        theta = np.concatenate((scores[a:b].ravel().astype(np.float64), steps))
        right += int((oracle.argmax(theta, (b - a, scores.shape[1])) == codes[a:b]).sum())
    return right / len(codes)


def values_of(kernels: dict[str, ProductKernel], A: AnyArray, B: AnyArray) -> Iterator[tuple[str, ProductKernel, AnyArray]]:
    """The values of each kernel between the rows of A and B, from the same inner products."""
    inner, a, b = A @ B.T, np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)
    for name, kernel in kernels.items():
        yield name, kernel, kernel.of_products(inner.copy(), a, b)


def _codes(words: OcrWords, labels: Sequence[str]) -> Integers:
    number = {label: code for code, label in enumerate(labels)}
    return np.array([number[letter] for word in words.letters for letter in word], np.int64)


def _part(gram: Gram, rows: Integers, columns: Integers) -> Gram:
    """Some rows and columns."""
    if isinstance(gram, np.ndarray):
        return gram[np.ix_(rows, columns)]
    part = gram[rows][:, columns].tocsr()
    part.sort_indices()
    return part


def _dense(gram: Gram) -> AnyArray:
    return np.asarray(gram if isinstance(gram, np.ndarray) else gram.toarray(), np.float32)
