"""What a chain model can say of a sequence: labels, probabilities, the k best, and how much each decision was preferred."""

from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, InfeasibleError
from structpred.features.fixed_scores import FixedScores
from structpred.models.chain.problem import chain_problem
from structpred.oracles.chain import ChainOracle
from structpred.task.inference import Inference


def decode_chains(
    data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None = None, n_jobs: int = 1
) -> npt.NDArray[np.int64]:
    """The best label codes of all tokens, flat; the same for any number of threads."""
    if data.n_tokens == 0:
        return np.empty(0, np.int64)
    return chain_inference(data, n_labels, w, fixed, n_jobs).decode(w)[0]


def chain_inference(
    data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None = None, n_jobs: int = 1
) -> Inference:
    """Inference over sequences, for weights of the type of `w`. DataError for a sequence without tokens."""
    if (empty := np.flatnonzero(data.lengths == 0)).size:
        raise DataError(f"sample {int(empty[0])}: the sequence is empty; there is nothing to label")
    return Inference(*chain_problem(data, n_labels, fixed, w.dtype), n_jobs=n_jobs)


def chain_marginals(data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None) -> list[Floats]:
    """p(label at position t | x) of each sequence, (T, n_labels)."""
    inference = chain_inference(data, n_labels, w, fixed)
    lengths = data.lengths.tolist()
    return [mu[: t * n_labels].reshape(t, n_labels) for mu, t in zip(inference.marginals(w), lengths, strict=True)]


def chain_kbest(
    data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None, k: int
) -> list[list[tuple[npt.NDArray[np.int64], float]]]:
    """The k best label codes of each sequence with their scores; InfeasibleError where constraints leave none."""
    found = []
    for i, best in enumerate(chain_inference(data, n_labels, w, fixed).kbest(w, k)):
        _check_possible(len(best) > 0, i)
        found.append(best)
    return found


def chain_score_gaps(data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None) -> list[Floats]:
    """By how much the best sequence outscores the best one with another label at position t; inf where there is none."""
    found, inference = [], chain_inference(data, n_labels, w, fixed)
    oracle = inference.oracle
    for i, (theta, shape) in enumerate(zip(inference.part_scores(w), inference.shapes, strict=True)):
        best = oracle.max_marginals(theta, shape) if isinstance(oracle, ChainOracle) else _max_marginals(theta, shape)
        _check_possible(float(best[0].max()) > 0.5 * FORBIDDEN, i)
        ordered = np.sort(best, axis=1)
        second = ordered[:, -2] if n_labels > 1 else np.full(shape[0], -np.inf)
        found.append(np.where(second > -1e29, ordered[:, -1] - second, np.inf))
    return found


def _max_marginals(theta: Floats, shape: Shape) -> Floats:
    """(T, L): the score of the best sequence that has label l at position t, where each step has scores of its own."""
    length, n_labels = shape[:2]
    nodes, steps = theta[: length * n_labels].reshape(-1, n_labels), theta[length * n_labels :].reshape(-1, n_labels, n_labels)
    before, after = nodes.copy(), np.zeros_like(nodes)
    for t in range(1, length):
        before[t] += (before[t - 1][:, None] + steps[t - 1]).max(axis=0)
    for t in range(length - 2, -1, -1):
        after[t] = (steps[t] + nodes[t + 1] + after[t + 1]).max(axis=1)
    return before + after


def _check_possible(possible: bool, sample: int) -> None:
    if not possible:
        raise InfeasibleError(f"sample {sample}: no label sequence satisfies the constraints")


def checked_k(k: Any, name: str = "k") -> int:
    """k as an int >= 1; DataError, naming the argument, otherwise."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise DataError(f"{name} must be a whole number >= 1, got {k!r}")
    return int(k)
