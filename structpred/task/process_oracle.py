"""An oracle in plain Python that takes milliseconds a call, asked in several processes at once."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from structpred.core.oracle import OPTIONAL, Labels, Oracle, Scores, Shape
from structpred.core.own_code import blamed, renumbered
from structpred.core.packing import checked_labels
from structpred.core.types import Integers
from structpred.errors import StructpredError
from structpred.runtime.processes import Processes
from structpred.runtime.ranges import packed
from structpred.runtime.threads import checked_jobs, split_evenly

#: pieces of a batch for each process: all end at about the same time
PIECES = 8
#: methods for batches that the wrapper has where the oracle has the single one
_BATCHES = {"argmax_bound_batch": "argmax_bound", "marginals_batch": "marginals"}


class ProcessOracle(Oracle):
    """The same oracle, whose `argmax`, `argmax_bound` and `marginals` of batches are shared out over processes.

    For solvers and Python code that hold the global lock and take more than about a millisecond a call; compiled oracles have
    threads. Everything that works on batches gains: losses and layers, predictions, sweeps over the training set. Answers do
    not depend on the number of processes. These start with the first batch, and end with this object or the program.

    Parameters
    ----------
    oracle : Oracle
        It is pickled, and its class must be in a module that can be imported: not in a notebook.
    n_jobs : int
        Processes, -1 for all processors; 1: none, this process does the work.

    Raises
    ------
    ParameterError
        For another number; with the first batch, where the oracle cannot be pickled.
    OracleError
        For what the oracle raises, naming the sample, as without processes; StructpredError where a process was killed.

    Examples
    --------
    >>> from structpred.oracles.assignment import AssignmentOracle
    >>> oracle = ProcessOracle(AssignmentOracle(), n_jobs=1)
    >>> oracle.argmax_batch(np.eye(3).ravel(), np.array([0, 9]), [(3,)])[0].tolist()
    [0, 1, 2]
    """

    def __init__(self, oracle: Oracle, *, n_jobs: int = 2) -> None:
        self.oracle, self.exact, self.expensive, self.output = oracle, oracle.exact, oracle.expensive, oracle.output
        self.only_shape = oracle.only_shape
        if oracle.tolerance:  # else no setting of its own: digests of checkpoints know none
            self.tolerance = oracle.tolerance
        # the number of processes is no plain setting, so that a checkpoint may be taken up with another one
        self._processes = Processes(oracle, answers, checked_jobs(n_jobs))

    def __getattr__(self, name: str) -> Any:
        """Optional methods that the oracle has, and those for batches that follow from them."""
        if name in OPTIONAL and "oracle" in self.__dict__:
            single = _BATCHES.get(name)
            if single is None:
                return getattr(self.oracle, name)
            if callable(getattr(self.oracle, single, None)):
                return self._bounds if single == "argmax_bound" else self._sums
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def n_jobs(self) -> int:
        """How many processes."""
        return self._processes.n_jobs

    # those of the oracle, in this process
    n_parts = property(attrgetter("oracle.n_parts"))
    parts = property(attrgetter("oracle.parts"))
    example_shapes = property(attrgetter("oracle.example_shapes"))
    argmax = property(attrgetter("oracle.argmax"))

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """argmax of each instance, in all processes."""
        return packed(self._asked("argmax", scores, offsets, shapes))

    def _bounds(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers, Scores]:
        found = self._asked("argmax_bound", scores, offsets, shapes)
        return *packed([labels for labels, _ in found]), np.array([bound for _, bound in found], dtype=np.float64)

    def _sums(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Scores, Scores]:
        found = self._asked("marginals", scores, offsets, shapes)
        return np.array([log_z for log_z, _ in found], np.float64), np.concatenate([np.empty(0), *(mu for _, mu in found)])

    def _asked(self, method: str, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> list[Any]:
        """The answer for each instance. A batch of one is not worth sending."""
        n = len(shapes)
        if self.n_jobs == 1 or n <= 1:
            return answers(self.oracle, method, scores, offsets, list(shapes), 0)
        pieces = [
            (method, scores[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a], list(shapes[a:b]), a)
            for a, b in split_evenly(np.ones(n, np.int64), PIECES * self.n_jobs)
        ]
        return [one for found in self._processes.run(pieces) for one in found]

    def close(self) -> None:
        """End the processes now; the next batch starts new ones."""
        self._processes.close()


def answers(oracle: Any, method: str, scores: Scores, offsets: Integers, shapes: Sequence[Shape], first: int) -> list[Any]:
    """What `method` of the oracle gives for each instance; errors name the sample, counted from `first`."""
    found = []
    for k, shape in enumerate(shapes):
        try:
            answer = getattr(oracle, method)(scores[offsets[k] : offsets[k + 1]], shape)
            found.append(checked_labels(answer, oracle).copy() if method == "argmax" else answer)
        except StructpredError as error:
            raise renumbered(error, first + k) from error
        except Exception as error:
            raise blamed(error, first + k, oracle, method) from error
    return found
