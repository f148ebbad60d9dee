"""Outputs found earlier, instance by instance: the best of them at the present weights starts a search and cuts it short."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.slack.problem import Candidate, SlackProblem
from structpred.task.steps import TaskLike


class LabelCache:
    """The last `size` different outputs of each instance of a task; size 0 keeps none. Copies and files of it are empty."""

    def __init__(self, size: int) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ParameterError(f"the size of a label cache must be a whole number >= 0, got {size!r}")
        self.size = size
        self._kept: WeakKeyDictionary[TaskLike, dict[int, list[Any]]] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"LabelCache({self.size})"

    def __reduce__(self) -> tuple[type["LabelCache"], tuple[int]]:
        return LabelCache, (self.size,)

    def best(self, task: TaskLike, i: int, problem: SlackProblem) -> Candidate | None:
        """The kept output of instance i with the largest Phi at the present weights; None if there is none above 0."""
        candidates = [problem.rescore(label) for label in self._kept.get(task, {}).get(i, ())]
        best = max(candidates, key=lambda one: one.phi, default=None)
        return best if best is not None and best.phi > 0.0 else None

    def keep(self, task: TaskLike, i: int, label: Any) -> None:
        """Put an output in front; the one not used for longest goes."""
        if not self.size:
            return
        kept = self._kept.setdefault(task, {}).setdefault(i, [])
        same = [k for k, other in enumerate(kept) if _key(other) == _key(label)]
        for k in reversed(same):
            del kept[k]
        kept.insert(0, label)
        del kept[self.size :]


class LastSweep:
    """What the last searches over a whole task found at which weights. Copies and files of it are empty."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[TaskLike, tuple[Vector, Any]] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return "LastSweep()"

    def __reduce__(self) -> tuple[type["LastSweep"], tuple[()]]:
        return LastSweep, ()

    def keep(self, task: TaskLike, w: Vector, found: Any) -> None:
        """Keep this, and nothing older."""
        self._kept[task] = (w.copy(), found)

    def at(self, task: TaskLike, w: Vector) -> Any | None:
        """What was found at just these weights; None if the last searches were made at others."""
        kept = self._kept.get(task)
        return kept[1] if kept is not None and np.array_equal(kept[0], w) else None


def _key(label: Any) -> bytes:
    """The bytes of an array, or of the arrays of a step's output."""
    if hasattr(label, "tobytes"):
        raw: bytes = label.tobytes()
        return raw
    return bytes(label.difference.indices.tobytes() + label.difference.values.tobytes())
