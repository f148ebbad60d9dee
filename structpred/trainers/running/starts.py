"""Where inference begins in the steps of a run: with what `argmax_bound_from` ended at an instance's last visit."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import numpy as np

from structpred.core.packing import argmax_bound_from
from structpred.core.stand_ins import stand_in
from structpred.core.types import AnyArray, Floats, Integers
from structpred.storage.bundles import under
from structpred.trainers.states import Arrays, Values, flatten, rebuild

_PREFIX = "starts of inference."


class Kept(NamedTuple):
    """rows: the instances, least recently used first. ends: where the state of each ends in `states`."""

    rows: Annotated[Integers, Values(0, 2**53, grows=True)] = np.empty(0, np.int64)
    ends: Annotated[Integers, Values(0, 2**53, grows=True)] = np.empty(0, np.int64)
    states: Annotated[AnyArray, Values(grows=True)] = np.empty(0, np.float32)


class Starts:
    """States of the instances of a task, float32, of an oracle that has `argmax_bound_from`; of others none.

    A step begins with what the steps before it left, so that neither threads nor a step that is broken off change anything.
    max_bytes: what is kept once a step has ended, at most; what was used least recently is forgotten first.
    """

    def __init__(self, task: Any, max_bytes: int = 1 << 30) -> None:
        self.kept, self.fresh = OrderedDict[int, AnyArray](), dict[int, Floats]()
        self.max_bytes, self.n_bytes, slow = max_bytes, 0, ("argmax", "argmax_bound", "argmax_bound_batch", "n_parts")
        able = stand_in(getattr(task, "oracle", None), "argmax_bound_from", slow) is not None
        self.inference: Any = task.inference if able else SimpleNamespace(starts=None)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Around steps: their inference begins with what is kept, and no other does."""
        before, self.inference.starts = self.inference.starts, self._answers
        try:
            yield
        finally:
            self.inference.starts = before
            self.fresh.clear()

    def _answers(self, scores: Floats, first: int, last: int, places: Integers) -> tuple[Integers, Integers, Floats]:
        oracle, shapes, given = self.inference.oracle, self.inference.shapes[first:last], map(self.kept.get, range(first, last))
        labels, ends, bounds, states = argmax_bound_from(oracle, scores, places, shapes, [*given])
        self.fresh.update(enumerate(states, first))
        return labels, ends, bounds

    def keep(self) -> None:
        """Keep what a step ended with, in the order of instances."""
        for i in sorted(self.fresh):
            state = self.fresh.pop(i).astype(np.float32)
            self.n_bytes += state.nbytes - (self.kept.pop(i).nbytes if i in self.kept else 0)
            self.kept[i] = state
            while self.n_bytes > self.max_bytes:
                self.n_bytes -= self.kept.popitem(last=False)[1].nbytes

    def saved(self) -> Arrays:
        """What is kept, for a checkpoint."""
        rows, states = np.array([*self.kept], np.int64), [*self.kept.values()]
        return flatten(Kept(rows, np.cumsum([*map(len, states)]), np.concatenate(states)), _PREFIX) if states else {}

    def restored(self, arrays: Arrays) -> Arrays:
        """Keep what `saved` gave; returns the other arrays. Raises CheckpointError for what does not fit."""
        if own := under(_PREFIX, arrays):
            found = rebuild(Kept(), own, 0)
            for i, state in zip(found.rows.tolist(), np.split(found.states, found.ends), strict=False):
                self.fresh[i] = state
                self.keep()
        return {name: array for name, array in arrays.items() if not name.startswith(_PREFIX)}
