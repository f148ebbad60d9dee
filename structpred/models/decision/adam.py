"""Minimise a loss of part scores by Adam: batches of instances, one call of the loss each."""

import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Oracle
from structpred.core.result import Certificate, Record, Result
from structpred.core.types import Floats, Integers
from structpred.errors import DataError, ParameterError
from structpred.layers.loss import Layer, Loss
from structpred.layers.record import Scores
from structpred.models.decision.inputs import Design
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import picked
from structpred.trainers.loop import Callback
from structpred.trainers.running.progress import Display

#: what rows of other trainers' histories have, and nobody knows here
_UNKNOWN = ("oracle_calls", "primal", "dual", "gap", "dev_score")


class Truth(NamedTuple):
    """What is known of the instances, flat as the scores: the true scores, and the part counts of the best outputs at them."""

    scores: Floats
    gold: Floats
    offsets: Integers


class Adam:
    """Adam (Kingma & Ba 2015, algorithm 1) on 1/2 |W|^2 / (C n) + the mean loss; the step falls linearly to a tenth.

    It starts from least squares, the best prediction whatever the decisions: at zero scores some losses have no slope.

    Parameters
    ----------
    learning_rate : float
        The first step, > 0, relative to `scale`: the root mean square of the true scores over that of the features, so that
        the same rate serves costs in cents and in millions.
    batch_size : int
        Instances a step.
    beta1, beta2 : float
        How long gradients, and their squares, are remembered.

    Examples
    --------
    >>> Adam(batch_size=8).batch_size
    8
    """

    name = "adam"

    def __init__(self, *, learning_rate: float = 0.05, batch_size: int = 32, beta1: float = 0.9, beta2: float = 0.999) -> None:
        if not (np.isfinite(learning_rate) and learning_rate > 0.0):
            raise ParameterError(f"learning_rate must be finite and > 0, got {learning_rate!r}")
        if isinstance(batch_size, bool) or int(batch_size) != batch_size or batch_size < 1:
            raise ParameterError(f"batch_size must be a whole number >= 1, got {batch_size!r}")
        if not (0.0 <= beta1 < 1.0 and 0.0 <= beta2 < 1.0):
            raise ParameterError(f"beta1 and beta2 must be at least 0 and below 1, got {beta1!r} and {beta2!r}")
        self.learning_rate, self.batch_size, self.beta1, self.beta2 = learning_rate, int(batch_size), beta1, beta2

    def minimise(
        self, loss: Loss | Layer, design: Design, truth: Truth, lam: float, passes: int, seed: int,
        callbacks: tuple[Callback, ...] = (), display: Display | None = None, n_jobs: int = 1,
    ) -> Result:  # fmt: skip
        """The last weights (columns, n_outputs), after that many passes in random order; n_jobs threads ask the oracle."""
        rng, n = np.random.default_rng(seed), len(design.shapes)
        # the weights that predict the true scores best, with a ridge that keeps them defined
        rows = design.rows
        check_fits(16 * rows.shape[1] ** 2, f"least squares of {rows.shape[1]:,} features")
        ridge = 1e-6 * max(float((rows * rows).sum()) / rows.shape[1], 1e-300) * np.eye(rows.shape[1])
        W = np.linalg.solve(rows.T @ rows + ridge, rows.T @ truth.scores.reshape(len(rows), -1))
        first, second = np.zeros_like(W), np.zeros_like(W)
        steps, total = 0, passes * -(-n // self.batch_size)
        # the size of weights that make scores as large as the true ones
        size, of_rows = (float(np.sqrt(np.mean(values * values))) for values in (truth.scores, rows))
        size = size / of_rows if size > 0.0 and of_rows > 0.0 else 1.0
        history, reason = list[Record](), "max_iter"
        start, cpu_start = time.perf_counter(), time.process_time()
        batches = Batches(loss.oracle, design, truth, n_jobs)
        for n_pass in range(1, passes + 1):
            seen = 0.0
            for batch in batches.shuffled(rng.permutation(n), self.batch_size):
                value, gradient = _gradient(loss, batch, W, steps)
                seen += value
                gradient += lam * W
                steps += 1
                first += (1.0 - self.beta1) * (gradient - first)
                second += (1.0 - self.beta2) * (gradient * gradient - second)
                rate = self.learning_rate * size * (1.0 - 0.9 * (steps - 1) / total)
                rate *= math.sqrt(1.0 - self.beta2**steps) / (1.0 - self.beta1**steps)
                W -= rate * first / (np.sqrt(second) + 1e-8)
            spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
            history.append({**dict.fromkeys(_UNKNOWN), **spent, "passes": n_pass, "loss": seen / n})
            if display is not None:
                display.update(n_pass, 0.0, history)
                display.tell(history)
            if any([callback(history[-1]) for callback in callbacks]):
                reason = "callback"
                break
        return Result(W.ravel(), Certificate(), history, reason, len(history))


class Batch(NamedTuple):
    """Some instances: where their scores lie, their rows, true scores and gold counts, and their numbers."""

    places: Scores
    rows: Floats
    scores: Floats
    gold: Floats
    ids: Integers


class Batches:
    """The instances in batches. What all batches of one length share where all shapes are the same is made once."""

    def __init__(self, oracle: Oracle, design: Design, truth: Truth, n_jobs: int = 1) -> None:
        self.oracle, self.design, self.truth, self.n_jobs = oracle, design, truth, n_jobs
        self.same = all(shape is design.shapes[0] for shape in design.shapes)
        self._kept: dict[int, Scores] = {}

    def shuffled(self, order: Integers, size: int) -> Iterator[Batch]:
        """The instances in this order, `size` at a time."""
        own, (parts, ends) = self.design.take(order), picked(self.truth.offsets, order)
        scores, gold = self.truth.scores[parts], self.truth.gold[parts]
        for a in range(0, len(order), size):
            b = min(a + size, len(order))
            places = self._kept.get(b - a)
            if places is None:
                places = Scores(self.oracle, own.shapes[a:b], ends[a : b + 1] - ends[a], None, self.n_jobs)
                if self.same:
                    self._kept[b - a] = places
            at, rows = slice(int(ends[a]), int(ends[b])), own.rows[own.places[a] : own.places[b]]
            yield Batch(places, rows, scores[at], gold[at], order[a:b])


def _gradient(loss: Loss | Layer, batch: Batch, W: Floats, step: int) -> tuple[float, Floats]:
    """(the sum of the losses of these instances, the gradient of their mean)."""
    theta, scores = (batch.rows @ W).ravel(), batch.scores
    try:
        if isinstance(loss, Layer):
            mu, pull = loss(batch.places, theta, ids=batch.ids, step=step)
            value, slope = -float(scores @ mu), pull(-scores)
        else:
            found = loss(batch.places, theta, gold=batch.gold, true_scores=scores, costs=-scores, ids=batch.ids, step=step)
            value, slope = float(found.values.sum()), found.gradient
    except DataError as error:
        raise DataError(f"step {step}, instances {batch.ids[:4].tolist()}...: {error}; is learning_rate too large?") from error
    return value, batch.rows.T @ slope.reshape(len(batch.rows), -1) / len(batch.ids)
