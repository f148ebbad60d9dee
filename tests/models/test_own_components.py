"""Components of a user's own are judged by their contract checks before `fit` trains, once a class, unless a setting says no."""

import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from structpred.core.costs import PartCosts
from structpred.data.decisions import shortest_path_data
from structpred.errors import DataError, LossError, OracleError, RegulariserError
from structpred.features.parts import PartFeatures
from structpred.layers import CRF
from structpred.layers.surrogates import LossSurrogate
from structpred.models import ChainLabeler, DecisionModel, LinearClassifier, StructuredPredictor
from structpred.models.own_components import MAX_CALLS
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.composite import Composite
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2
from structpred.objectives.scalar.margins import Hinge
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.task.process_oracle import ProcessOracle
from structpred.trainers.bcfw import BCFW

X = list(np.random.default_rng(0).normal(size=(12, 3, 4)))
Y, SHAPES = [np.array([int((x @ [1.0, -1.0, 0.5, 0.0]).argmax())]) for x in X], [(3,)] * 12
RIGHT = "training has not begun: the {} {} does not keep its contract .*check_components=False"


def own_oracle(**methods):
    """A class of one's own, new each time, that is right but for these methods."""
    return type("Mine", (MulticlassOracle,), {"argmax_batch": None, **methods})


def fitted(oracle=None, **settings):
    """A predictor of the planted classes."""
    return StructuredPredictor(oracle or MulticlassOracle(), **{"max_iter": 3, **settings}).fit(X, Y, SHAPES)


class Misses(MulticlassOracle):
    """Never finds the last of more than three labels, which the planted classes do not have."""

    argmax_batch = None

    def argmax(self, scores, shape):
        return super().argmax(scores[:-1], (shape[0] - 1,)) if shape[0] > 3 else super().argmax(scores, shape)


def test_an_oracle_that_fails_its_check_is_not_trained() -> None:
    """The error is that of the check, says that training has not begun and names the setting; each fit raises it again."""
    for _ in range(2):
        with pytest.raises(OracleError, match=r"(?s)" + RIGHT.format("oracle", "Misses") + ".*wrong argmax"):
            fitted(Misses())
    assert fitted(Misses(), check_components=False).certificate_.checked is False


def test_the_certificate_says_whether_own_components_were_checked() -> None:
    """True where all passed, False where the check was turned off, None where all components are the package's."""
    assert fitted(own_oracle()()).certificate_.checked is True
    assert fitted(own_oracle()(), check_components=False).certificate_.checked is False
    for off in (True, False):
        assert fitted(check_components=off).certificate_.checked is None


def test_a_class_is_checked_once_a_process_within_a_number_of_calls() -> None:
    """The first fit asks a counted number of times more than the second, which asks as often as one without the check."""
    calls = [0]

    def argmax(self, scores, shape):
        calls[0] += 1
        return MulticlassOracle.argmax(self, scores, shape)

    kind, asked = own_oracle(argmax=argmax), []
    for check in (False, True, True):
        calls[0] = 0
        fitted(kind(), check_components=check)
        asked.append(calls[0])
    assert asked[0] == asked[2] < asked[1] <= asked[0] + MAX_CALLS


def test_an_inexact_oracle_with_bounds_passes() -> None:
    """exact=False lets a heuristic through, and the bounds that it gives are checked."""

    def greedy(self, scores, shape):
        return np.array([int(scores[:2].argmax())])

    def bound(self, scores, shape):
        return greedy(self, scores, shape), float(scores.max())

    model = fitted(own_oracle(exact=False, argmax=greedy, argmax_bound=bound)())
    assert model.certificate_.checked is True
    low = own_oracle(exact=False, argmax=greedy, argmax_bound=lambda self, s, shape: (greedy(self, s, shape), float(s[:2].max())))
    with pytest.raises(OracleError, match="bound"):
        fitted(low())


def test_wrapped_code_is_judged_as_a_class_of_ones_own_is() -> None:
    """Functions inside an oracle of ours, an oracle in processes, a method set on an object: each is found and checked."""

    def outputs(shape):
        return [np.array([k]) for k in range(shape[0])]

    def parts(labels, shape):
        return labels if len(labels) == 1 and 0 <= labels[0] < shape[0] else 1 / 0

    listed = EnumeratedOracle(outputs, parts, lambda shape: shape[0], example_shapes=[(2,), (3,)])
    assert fitted(listed).certificate_.checked is True
    listed = EnumeratedOracle(lambda shape: outputs(shape) * 2, parts, lambda shape: shape[0], example_shapes=[(2,), (3,)])
    with pytest.raises(OracleError, match=r"(?s)oracle EnumeratedOracle does not keep its contract.*duplicates"):
        fitted(listed)
    with pytest.raises(OracleError, match="oracle ProcessOracle does not keep"):
        fitted(ProcessOracle(Misses(), n_jobs=1))
    oracle = MulticlassOracle()
    oracle.argmax = partial(Misses.argmax, Misses())
    oracle.argmax_batch = None
    with pytest.raises(OracleError, match="oracle MulticlassOracle does not keep"):
        fitted(oracle)


def test_a_check_that_fails_in_code_of_ones_own_says_where() -> None:
    """What example shapes raise is worded as all that a user's code raises, and does not come out raw."""
    with pytest.raises(OracleError, match=r"training has not begun: the oracle Mine .*\nZeroDivisionError: .*line \d+"):
        fitted(own_oracle(example_shapes=staticmethod(lambda: [1 / 0]), enumerate=None)())


class Halved(PartFeatures):
    """Its adjoint is wrong for every second instance."""

    def adjoint(self, i, parts, counts):
        phi = super().adjoint(i, parts, counts)
        return phi if i % 2 else phi._replace(values=phi.values / 2)


class Grouped(L1):
    """Its prox is that of another strength."""

    def prox(self, w, step):
        return super().prox(w, 2.0 * step)


class Steep(Hinge):
    """Its derivative is not that of its value."""

    def derivative(self, z, y):
        return 1.5 * super().derivative(z, y)


class Negative:
    """An output of two less costs a negative amount, which no true label of the data shows."""

    def costs(self, labels, shape, oracle):
        costs = np.ones(shape[0])
        costs[labels[0]] = 0.0
        if labels[0] == shape[0] - 1:
            costs[0] = -0.5
        return PartCosts(0.0, costs)


def test_every_kind_of_component_is_checked() -> None:
    """Feature maps, losses, regularisers, also one in a sum, and scalar losses raise the error of their own check."""
    features = Halved(X)
    features.shapes = SHAPES
    with pytest.raises(OracleError, match=r"(?s)feature map Halved.*adjoint, at sample"):
        StructuredPredictor(MulticlassOracle()).fit(features, Y)
    known = [k for k, y in enumerate(Y) if y[0] != 2]
    with pytest.raises(LossError, match=r"(?s)loss Negative.*no output costs less than 0"):
        StructuredPredictor(own_oracle()(), loss=Negative()).fit(
            [X[k] for k in known], [Y[k] for k in known], [(3,)] * len(known)
        )
    for regulariser in (Grouped(0.1), Composite(L2(), Grouped(0.1))):
        with pytest.raises(RegulariserError, match=f"(?s)regulariser {type(regulariser).__name__}.*prox"):
            fitted(regulariser=regulariser, trainer="proximal")
    with pytest.raises(LossError, match=r"(?s)surrogate Steep.*derivative"):
        LinearClassifier("lbfgs", surrogate=Steep()).fit([[0.0], [1.0]], [0, 1])
    assert (
        ChainLabeler("proximal", regulariser=type("Mine", (L1,), {})(0.1), max_iter=2)
        .fit([np.eye(2)], [["a", "b"]])
        .certificate_.checked
        is True
    )


def test_feature_maps_are_checked_for_each_object() -> None:
    """A map holds the data: a second one of the same class is looked at again."""
    kind = type("Map", (PartFeatures,), {})
    right, wrong = kind(X), kind(X)
    right.shapes = wrong.shapes = SHAPES
    wrong.adjoint = lambda i, parts, counts: right.adjoint(i, parts, 2.0 * counts)
    assert StructuredPredictor(MulticlassOracle(), max_iter=2).fit(right, Y).certificate_.checked is True
    with pytest.raises(OracleError, match="feature map Map"):
        StructuredPredictor(MulticlassOracle()).fit(wrong, Y)


def test_the_setting_survives(tmp_path: Path) -> None:
    """clone, pickle and a model file keep it; a file without it has the default."""
    clone = pytest.importorskip("sklearn.base").clone
    model = fitted(Misses(), check_components=False)
    assert clone(model).check_components is False
    assert pickle.loads(pickle.dumps(model)).get_params(deep=False)["check_components"] is False
    model.save(tmp_path / "m.spz")
    again = StructuredPredictor.load(tmp_path / "m.spz", Misses())
    assert again.check_components is False
    assert again.certificate_.checked is False


def test_a_check_of_fit_is_told_apart_from_wrong_data() -> None:
    """Labels that are no outputs are still DataError: the data come first."""
    with pytest.raises(DataError, match="sample 1"):
        StructuredPredictor(own_oracle()()).fit(X[:2], [[0], [7]], SHAPES[:2])


class HalfValues(MarginRescaling):
    """Its values are half of those of its terms."""

    def values(self, task, w):
        return 0.5 * super().values(task, w)


class WrongSlope(CRF):
    """Its gradient is too long."""

    def terms(self, batch, theta, given):
        found = super().terms(batch, theta, given)
        return found._replace(gradient=1.5 * found.gradient)


class TooHigh(BCFW):
    """Its dual is the primal."""

    def objective(self, problem, state):
        primal, _ = super().objective(problem, state)
        return primal, primal


def test_surrogates_and_trainers_are_checked() -> None:
    """Also a loss of scores inside a surrogate of the package, and a trainer inside another; right ones pass."""
    with pytest.raises(LossError, match="surrogate HalfValues does not keep"):
        fitted(surrogate=HalfValues())
    oracle = MulticlassOracle()
    with pytest.raises(LossError, match=r"(?s)surrogate LossSurrogate does not keep.*(tangents|gradient)"):
        fitted(oracle, surrogate=LossSurrogate(WrongSlope(oracle)), trainer="lbfgs")
    with pytest.raises(OracleError, match=r"(?s)trainer TooHigh does not keep its contract.*dual"):
        fitted(trainer=TooHigh())
    kinds = [type("Mine", (kind,), {}) for kind in (MarginRescaling, CRF, BCFW)]
    assert fitted(surrogate=kinds[0](), trainer=kinds[2]()).certificate_.checked is True
    assert fitted(oracle, surrogate=LossSurrogate(kinds[1](oracle)), trainer="lbfgs").certificate_.checked is True


def test_decisions_are_checked_too(tmp_path: Path) -> None:
    """The oracle of a DecisionModel, and its loss, with Adam and with trainers that certify; the setting is saved."""
    data = shortest_path_data(30, degree=2, noise=0.1)

    class Longest(ShortestPathOracle):
        argmax_batch = argmax_bound = None

        def argmax(self, scores, shape):
            return ShortestPathOracle().argmax(-scores, shape)

    for trainer in ("adam", "bcfw"):
        settings = {"shape": data.shape, "trainer": trainer, "max_iter": 2}
        with pytest.raises(OracleError, match=r"(?s)oracle Longest does not keep its contract.*negated scores"):
            DecisionModel(Longest(), **settings).fit(data.features, data.costs)
        right = type("Mine", (ShortestPathOracle,), {})()
        model = DecisionModel(right, **settings).fit(data.features, data.costs)
        assert model.certificate_.checked is True
        assert DecisionModel(ShortestPathOracle(), **settings).fit(data.features, data.costs).certificate_.checked is None
    loss = WrongSlope(ShortestPathOracle())
    with pytest.raises(LossError, match="loss WrongSlope does not keep"):
        DecisionModel(ShortestPathOracle(), shape=data.shape, loss=loss).fit(data.features, data.costs)
    with pytest.raises(OracleError, match=r"sample \d+: .* Longest\.argmax gave .*best.*does it minimise"):
        DecisionModel(Longest(), **settings, check_components=False).fit(data.features, data.costs)
    off = DecisionModel(right, **settings, check_components=False).fit(data.features, data.costs)
    off.save(tmp_path / "m.spz")
    again = DecisionModel.load(tmp_path / "m.spz", right)
    assert (again.check_components, again.certificate_.checked) == (False, False)
