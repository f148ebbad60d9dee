"""Contract check for three functions: joint features and losses are what they should be, and no output known beats argmax's."""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from structpred.contracts.engine import Examiner, Report, brief, examined
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.errors import OracleError, StructpredError
from structpred.task.callback_task import CallbackTask

#: inputs that are tried, random weights, each with both signs, and samples whose truths are known outputs
SAMPLES, WEIGHTS, MOST = 5, 2, 20


class _Known(NamedTuple):
    """An output, its joint features and its loss."""

    output: Any
    phi: SparseVector
    loss: float


def check_callbacks(task: CallbackTask, *, shared: bool = True, seed: int = 0) -> Report:
    """Check the three functions of a task: at zero and random weights, with the loss counted 0, 1 and -1 times; 75 searches.

    joint_feature must give the same numbers each time; a loss is >= 0, and 0 for the truth. With ``exact=True`` argmax must be as
    good as each output that is known: the truth, what it found at other weights, and, where `shared`, the truths of inputs that
    look alike (of one shape). shared=False: constraints depend on the input. Raises OracleError, which lists every broken rule.

    >>> eye = np.eye(3)
    >>> def best(w, x, y, loss_weight): return max(range(3), key=lambda k: w[k] * x + loss_weight * (k != y))
    >>> task = CallbackTask([1.0, -1.0], [0, 2], 3, lambda x, y: x * eye[y], lambda y, k: float(y != k), best)
    >>> check_callbacks(task).checked["wrong argmax"]
    30
    """

    def examine(examiner: Examiner) -> None:
        w = examiner.rng.normal(size=(WEIGHTS, task.dim))
        for i in examiner.rng.permutation(len(task))[:SAMPLES].tolist():
            like = [j for j in range(min(len(task), MOST)) if shared and _alike(task.inputs[i], task.inputs[j])]
            with suppress(OracleError):
                _sample(examiner, task, i, [*(0.0 * w[:1]), *w, *-w], [task.outputs[j] for j in like])
        if not task.certified:
            examiner.skip("wrong argmax", "exact=False: argmax may miss the maximum")

    return examined(task, examine, OracleError, seed)


def _alike(x: Any, other: Any) -> bool:
    """Whether two inputs are of one type and one shape, or length."""
    sizes = [np.shape(own) if isinstance(own, np.ndarray) else len(own) if hasattr(own, "__len__") else 0 for own in (x, other)]
    return type(x) is type(other) and sizes[0] == sizes[1]


def _sample(examiner: Examiner, task: CallbackTask, i: int, weights: list[Floats], others: list[Any]) -> None:
    where = f"sample {i}"

    def known(output: Any) -> _Known:
        (phi, again), (loss, other) = ([examiner.ask(f, where, i, output) for _ in "12"] for f in (task.features, task.loss))
        same = loss == other and all(np.array_equal(a, b) for a, b in zip(phi, again, strict=True))
        expected = f"twice the same features and loss of {brief(output)}"
        cause = "a random number, or an array that is filled again"
        examiner.expect("nondeterminism", same, where, expected, again, cause)
        return _Known(output, phi, loss)

    outputs = [known(task.outputs[i])]
    cause = "a similarity, or a constant"
    examiner.near("the truth costs 0", outputs[0].loss, 0.0, where, "the loss of the true output", cause, 0.0)
    for other in others:
        with suppress(StructpredError):  # no output of this input: nothing is said of it
            outputs.append(_Known(other, task.features(i, other), task.loss(i, other)))
    asked = [(w, weight) for w in weights for weight in (0.0, 1.0, -1.0)]
    found = [known(examiner.ask(task.argmax, where, w, i, weight)) for w, weight in asked]
    outputs += found
    for (w, weight), own in zip(asked, found, strict=True) if task.certified else ():
        scores = [float(w[one.phi.indices] @ one.phi.values) + weight * one.loss for one in (own, *outputs)]
        best = int(np.argmax(scores))
        here = f"{where}, {'random weights' if w.any() else 'w = 0'}, loss_weight = {weight:g}"
        expected, came = f"{brief(outputs[best - 1].output)} with {scores[best]:.9g}", f"{brief(own.output)} with {scores[0]:.9g}"
        cause = "it minimises, leaves out loss_weight * loss, or misses outputs; if outputs depend on the input: shared=False"
        ok = scores[0] >= scores[best] - 1e-7 * (1.0 + float(np.abs(scores).max()))
        examiner.expect("wrong argmax", ok, here, expected, came, cause)
