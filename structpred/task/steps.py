"""What trainers and surrogates see of a training set: steps, and the protocols of tasks."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from structpred.core.group_scales import Scale
from structpred.core.oracle import Labels
from structpred.core.sparse import SparseVector
from structpred.core.weights import Vector
from structpred.task.fast.update_rules import UpdateRule

#: What a task may say that it `offers`, in an attribute `capabilities`: the name, and what it has then besides `TaskLike`.
TASK_CAPABILITIES: dict[str, str] = {
    "rows": "one score a row: indptr, indices, values, targets, row, margins, combined and squared_norms, as RowTask has them",
    "signed_rows": "rows of two classes, whose targets are all 1",
    "parts": "outputs are sets of parts: features, oracle, inference, labels, shapes, parts and the methods of Task",
    "missing": "some outputs are known in part: rows, allowed, place, completed and with_labels, as PartialTask has them",
}


class Step(NamedTuple):
    """What one instance says at the present weights, for the output y that inference found.

    difference: phi(x_i, y_i) - phi(x_i, y). loss: loss(y_i, y). violation: loss_weight * loss - <w, difference>, by
    how much y (with its weighted loss) scores above the truth. bound: no output's violation exceeds it (equal to
    `violation` for an exact oracle; meaningless if the task is not `certified`).
    """

    difference: SparseVector
    loss: float
    violation: float
    bound: float


class Terms(NamedTuple):
    """The linear pieces of some rows summed up, and the numbers of each row.

    difference: sum_k shares[k] * difference_k, dense, float64. offset: sum_k shares[k] * offset_k. So offset - <w', difference>
    is at most sum_k shares[k] H_k(w') for every w' (convex H_k): a cutting plane. losses, violations, bounds: those of the step
    of each row, in the order of the rows.
    """

    difference: npt.NDArray[np.float64]
    offset: float
    losses: npt.NDArray[np.float64]
    violations: npt.NDArray[np.float64]
    bounds: npt.NDArray[np.float64]


#: (instances, rule, loss_weight) -> (how many updates were made, in order, whether the weights changed). None is made where the
#: first step is in doubt, so that the plain update has to look at it. It ends early where all would take too long.
CompiledUpdates = Callable[[npt.NDArray[np.int64], UpdateRule, float], tuple[int, bool]]


class Pair(Protocol):
    """Scoring and decoding in one compiled call; the results are those of the plain calls, for any number of threads."""

    def decode(self, w: Vector, n_jobs: int) -> tuple[Labels, npt.NDArray[np.int64]]:
        """(flat labels, label offsets): the best output of every instance."""
        ...


class TaskLike(Protocol):
    """What trainers and surrogates use: kept by Task and by CallbackTask."""

    dim: int
    dtype: np.dtype[Any]
    certified: bool
    sample_weight: npt.NDArray[np.float64]

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """Group k of the weights is groups[k]:groups[k+1]."""
        ...

    @property
    def group_names(self) -> Sequence[str]:
        """What the groups are called."""
        ...

    def __len__(self) -> int:
        """The number of instances."""
        ...

    def require(self, needs: Sequence[str | tuple[str, ...]], who: str) -> None:
        """Raise MissingCapabilityError unless the task can do all of `needs`."""
        ...

    def step(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """Loss-augmented inference for instance i at the weights scale * w. The arrays are only good until the next call."""
        ...

    def violations(self, w: Vector, loss_weight: float) -> npt.NDArray[np.float64]:
        """The bound on the violation of each instance."""
        ...

    def terms(self, w: Vector, rows: npt.ArrayLike, shares: npt.ArrayLike | None = None, *, loss_weight: float = 1.0) -> Terms:
        """The steps of these rows summed up, weighed by `shares`, and the numbers of each row."""
        ...

    def sample_with_priors(self) -> int | None:
        """The first instance with fixed scores that do more than forbid; None where there is none."""
        ...

    def fingerprint(self) -> str:
        """A digest of data, loss and structure: tasks with equal digests give identical runs."""
        ...


def offers(task: object, name: str) -> bool:
    """Whether a task says that it has what TASK_CAPABILITIES promises under this name."""
    return name in getattr(task, "capabilities", ())
