"""check_surrogate names what is wrong, and passes every surrogate of ours on every task that it fits."""

import numpy as np
import pytest

from structpred.contracts.training import check_surrogate
from structpred.core.sparse import SparseVector
from structpred.errors import LossError
from structpred.features.label_rows import LabelRows
from structpred.features.parts import PartFeatures
from structpred.models.settings import surrogates
from structpred.objectives.log_loss import LogLoss, MarginalLogLoss
from structpred.objectives.margin import LatentHinge, MarginRescaling
from structpred.objectives.names import multiclass_losses, scalar_losses
from structpred.objectives.part_losses import Hamming
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.rows.linear_task import RegressionTask
from structpred.slack.surrogate import SlackRescaling
from structpred.task.callback_task import CallbackTask
from structpred.task.task import Task


def rows() -> Task:
    """One label out of four, weights in float32."""
    rng = np.random.default_rng(0)
    labels = [[int(k)] for k in rng.integers(4, size=20)]
    return Task(LabelRows(rng.normal(size=(20, 5)), 4), MulticlassOracle(), labels, [(4,)] * 20, Hamming())


def chains() -> Task:
    """Short chains."""
    rng, oracle, shapes = np.random.default_rng(0), ChainOracle(), [(3, 2)] * 10
    features = PartFeatures([rng.normal(size=(oracle.n_parts((3, 2)), 6)) for _ in shapes])
    return Task(features, oracle, [rng.integers(2, size=3) for _ in shapes], shapes, Hamming())


@pytest.mark.mostly_slow
@pytest.mark.parametrize("task", [rows, chains])
@pytest.mark.parametrize("name", [name for name in surrogates() if name not in scalar_losses() | multiclass_losses()])
def test_surrogates_of_ours_pass(name: str, task) -> None:
    """No false alarm on outputs of one part and of several."""
    assert check_surrogate(surrogates()[name](), task()).checked["tangents"] == 200


@pytest.mark.parametrize("name", multiclass_losses())
def test_losses_of_many_classes_pass(name: str) -> None:
    """No false alarm."""
    assert check_surrogate(surrogates()[name](), rows()).checked["values"] == 40


@pytest.mark.parametrize("surrogate", [MarginalLogLoss(), SlackRescaling(cache_size=2), SlackRescaling("bisecting", rel=0.1)])
def test_settings_of_ours_pass(surrogate) -> None:
    """What is not convex, what remembers outputs, and a search that ends early."""
    assert check_surrogate(surrogate, chains()).checked["values"] == 40


class Halved(MarginRescaling):
    """values of half the function."""

    def values(self, task, w):
        return 0.5 * super().values(task, w)


class Constant(MarginRescaling):
    """A wrong constant of the pieces."""

    def offset(self, step):
        return 1.2 * super().offset(step)


class Ramp(MarginRescaling):
    """At most 1: not convex, though it says so."""

    def term(self, task, w, i, scale=1.0):
        found = super().term(task, w, i, scale)
        if found.violation <= 1.0:
            return found
        return found._replace(difference=SparseVector(np.empty(0, np.int64), np.empty(0)), loss=1.0, violation=1.0, bound=1.0)

    def values(self, task, w):
        return np.minimum(super().values(task, w), 1.0)

    def terms(self, task, w, rows, shares=None):
        raise NotImplementedError


class Slope(LogLoss):
    """A slope 1 % too large."""

    def term(self, task, w, i, scale=1.0):
        found = super().term(task, w, i, scale)
        return found._replace(difference=SparseVector(found.difference.indices, 1.01 * found.difference.values))


class Sum(LogLoss):
    """A gradient that forgets the shares."""

    def gradient(self, task, w, shares):
        return super().gradient(task, w, np.ones(len(shares)))


class Below(MarginRescaling):
    """Less than zero."""

    def term(self, task, w, i, scale=1.0):
        found = super().term(task, w, i, scale)
        return found._replace(violation=found.violation - 1.0, bound=found.bound - 1.0)

    def values(self, task, w):
        return super().values(task, w) - 1.0


class Doubled(MarginRescaling):
    """terms of twice the pieces."""

    def terms(self, task, w, rows, shares=None):
        found = super().terms(task, w, rows, shares)
        return found._replace(difference=2.0 * found.difference)


class Squares(LogLoss):
    """Roots in place of squares."""

    def squared_gradients(self, task, w, shares):
        return np.sqrt(super().squared_gradients(task, w, shares))


class Yes(MarginRescaling):
    """certified says something else than True or False."""

    def certified(self, task):
        return "yes"


class Concave(MarginalLogLoss):
    """Not convex, and a slope of the wrong sign."""

    def term(self, task, w, i, scale=1.0):
        found = super().term(task, w, i, scale)
        return found._replace(difference=SparseVector(found.difference.indices, -found.difference.values))


class Heavier(MarginRescaling):
    """Another margin where labels are missing."""

    def latent(self):
        return LatentHinge(2.0 * self.loss_weight)


class Double(MarginRescaling):
    """Twice the hinge, in all that it writes: what it inherits for missing labels is not held against it."""

    def term(self, task, w, i, scale=1.0):
        found = super().term(task, w, i, scale)
        twice = SparseVector(found.difference.indices, 2.0 * found.difference.values)
        return found._replace(difference=twice, loss=2.0 * found.loss, violation=2.0 * found.violation, bound=2.0 * found.bound)

    def values(self, task, w):
        return 2.0 * super().values(task, w)

    def terms(self, task, w, rows, shares=None):
        found = super().terms(task, w, rows, shares)
        return found._replace(difference=2.0 * found.difference, offset=2.0 * found.offset)


def test_what_a_right_subclass_inherits_is_no_fault() -> None:
    """A hinge of a user's own passes though it says nothing of missing labels."""
    assert check_surrogate(Double(), rows()).checked.get("latent", 0) == 0
    assert check_surrogate(MarginRescaling(), rows()).checked["latent"] > 0


BROKEN = [
    (Halved, "values"), (Constant, "offset"), (Ramp, "tangents"), (Slope, "tangents"), (Sum, "gradient"), (Below, "negative"),
    (Doubled, "terms"), (Squares, "squared_gradients"), (Yes, "certified"), (Concave, "slope"),
    (Heavier, "latent"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "rule"), BROKEN, ids=[kind.__name__ for kind, _ in BROKEN])
@pytest.mark.parametrize("task", [rows, chains])
def test_wrong_surrogates_are_named(kind, rule, task) -> None:
    """The error names the surrogate and the rule, whatever the outputs are."""
    with pytest.raises(LossError, match=rf"{kind.__name__} breaks(.|\n)*- {rule}, at"):
        check_surrogate(kind(), task())


@pytest.mark.parametrize("name", scalar_losses())
def test_losses_of_one_score_pass(name: str) -> None:
    """No false alarm on rows with a number each."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    targets = np.where(rng.random(7) < 0.5, 1.0, -1.0)
    task = RegressionTask(sparse.csr_array(rng.normal(size=(7, 3))), targets)
    assert check_surrogate(scalar_losses()[name](), task).checked["values"] == 35


def test_three_functions_pass() -> None:
    """A task without part scores."""
    eye = np.eye(3)

    def best(w, x, y, weight):
        return max(range(3), key=lambda k: w[k] * x + weight * (k != y))

    task = CallbackTask([1.0, -1.0, 0.5], [0, 2, 1], 3, lambda x, y: x * eye[y], lambda y, k: float(y != k), best)
    assert check_surrogate(MarginRescaling(), task).checked["terms"] == 10
