"""The decision model: what it learns, its certificate, ragged instances, scikit-learn's ways, files, what is refused."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structpred import Instance
from structpred.data.decisions import knapsack_data, shortest_path_data
from structpred.errors import DataError, ModelFileError, ParameterError
from structpred.layers import Scores, SPOPlus
from structpred.layers.perturbed import PerturbedLoss
from structpred.layers.smoothed_difference import SmoothedDifferenceLayer
from structpred.models import DecisionModel, load
from structpred.models.bundles import to_bundle
from structpred.models.decision.adam import Adam
from structpred.oracles.knapsack import KnapsackOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.shortest_path import ShortestPathOracle

ORACLE = ShortestPathOracle()
DATA = shortest_path_data(400, grid=(3, 3), degree=6, noise=0.5, seed=2)
TRAIN, TEST = DATA.rows(slice(150)), DATA.rows(slice(150, None))


def path_model(**settings) -> DecisionModel:
    """A model of the paths of the test problem."""
    return DecisionModel(ORACLE, **{"shape": DATA.shape, "max_iter": 10, **settings})


@pytest.fixture(scope="module")
def two_stage() -> float:
    """The score of least squares."""
    model = path_model(regressor=LinearRegression()).fit(TRAIN.features, TRAIN.costs)
    return model.score(TEST.features, TEST.costs)


@pytest.mark.parametrize(
    "loss", ["spo+", PerturbedLoss(ORACLE, samples=4, sigma=0.5), SmoothedDifferenceLayer(ORACLE, samples=4)]
)
def test_learning_for_the_decision_beats_learning_the_costs(loss: object, two_stage: float) -> None:
    """Where costs are no linear function, models trained for the decision lose less than least squares does."""
    model = path_model(loss=loss).fit(TRAIN.features, TRAIN.costs)
    assert model.score(TEST.features, TEST.costs) > two_stage
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]


def test_decisions_are_best_at_the_predicted_costs() -> None:
    """predict gives the path that is shortest at predict_costs, and 1 - score is the sum of what is lost over the least sum."""
    model = path_model().fit(TRAIN.features, TRAIN.costs)
    costs, paths = model.predict_costs(TEST.features), model.predict(TEST.features)
    assert costs == pytest.approx(TEST.features @ model.coef_.T + model.intercept_)
    every = list(ORACLE.enumerate(DATA.shape))
    lost = least = 0.0
    for predicted, true, path in zip(costs, TEST.costs, paths, strict=True):
        assert predicted[path].sum() == pytest.approx(min(predicted[other].sum() for other in every))
        best = min(true[other].sum() for other in every)
        lost, least = lost + true[path].sum() - best, least + best
    assert model.score(TEST.features, TEST.costs) == pytest.approx(1.0 - lost / least)


def test_a_certificate_brackets_every_other_model() -> None:
    """With bcfw both bounds are those of lam / 2 |W|^2 + the mean of SPO+: Adam's weights are no better than the dual says."""
    n, C = len(TRAIN.features), 0.02
    proven = path_model(trainer="one_slack", C=C, max_iter=100, tol=0.01).fit(TRAIN.features, TRAIN.costs)
    assert proven.converged_
    assert proven.certificate_.proven
    bounds = path_model(trainer="bcfw", C=C, max_iter=5).fit(TRAIN.features, TRAIN.costs).certificate_
    other = path_model(C=C, max_iter=20).fit(TRAIN.features, TRAIN.costs)
    loss = SPOPlus(ORACLE)(Scores.of(ORACLE, [DATA.shape] * n), -other.predict_costs(TRAIN.features), true_scores=-TRAIN.costs)
    norm = float((other.coef_**2).sum() + (other.intercept_**2).sum())
    objective = norm / (2.0 * C * n) + loss.values.mean()
    assert bounds.dual <= proven.certificate_.primal <= bounds.primal * (1 + 0.01)
    assert proven.certificate_.dual <= objective <= proven.certificate_.primal * 1.2


def test_values_are_maximised() -> None:
    """Knapsacks of values: the decision takes what is predicted to be worth most, and costs are minus these values."""
    data = knapsack_data(200, n_items=10, capacity=15.0, degree=4, noise=0.3, seed=3)
    model = DecisionModel(KnapsackOracle(), shape=data.shape, max_iter=5).fit(data.features, values=data.values)
    same = DecisionModel(KnapsackOracle(), shape=data.shape, max_iter=5).fit(data.features, -data.values)
    assert np.array_equal(model.predict_costs(data.features), same.predict_costs(data.features))
    assert np.array_equal(model.coef_, -same.coef_)
    assert 0.8 < model.score(data.features, values=data.values) <= 1.0


def test_decisions_as_part_counts() -> None:
    """predict_points gives 1 for the parts of each decision and 0 for the others."""
    model = path_model(max_iter=1).fit(TRAIN.features, TRAIN.costs)
    points = np.array(model.predict_points(TEST.features[:3]))
    for own, labels in zip(points, model.predict(TEST.features[:3]), strict=True):
        assert np.flatnonzero(own).tolist() == sorted(labels.tolist())
        assert set(own.tolist()) == {0.0, 1.0}


def ragged(n: int, seed: int) -> tuple[list[Instance], list[np.ndarray]]:
    """Grids of several sizes, with a row of features for each edge, whose cost is the exponential of a linear function."""
    rng, shapes = np.random.default_rng(seed), [(2, 3), (3, 3), (4, 2)]
    X = [Instance(rng.normal(size=(ORACLE.n_parts(shape), 3)), shape) for shape in (shapes[k % 3] for k in range(n))]
    return X, [np.exp(x.features @ [1.0, -0.5, 0.2]) for x in X]


@pytest.mark.parametrize("trainer", ["adam", "one_slack"])
def test_instances_may_differ_in_size(trainer: str) -> None:
    """With a row of features for each part, grids of several sizes share weights; model selection splits Instances."""
    X, costs = ragged(60, 4)
    model = DecisionModel(ORACLE, trainer=trainer, max_iter=20).fit(X[:40], costs[:40])
    assert model.coef_.shape == (1, 3)
    assert model.score(X[40:], costs[40:]) > 0.9
    assert [len(own) for own in model.predict_costs(X[40:42])] == [len(own) for own in costs[40:42]]
    plain = DecisionModel(ORACLE, trainer=trainer, max_iter=20)
    plain.fit([x.features for x in X[:40]], costs[:40], shapes=[x.shape for x in X[:40]])
    assert np.array_equal(plain.coef_, model.coef_)
    search = GridSearchCV(DecisionModel(ORACLE, max_iter=2), {"C": [0.1, 1.0]}, cv=2).fit(X, costs)
    assert 0.5 < search.best_score_ <= 1.0


class Frame:
    """What a data frame is to NumPy: rows as an array, names where it is iterated over."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.shape = rows, rows.shape

    def __iter__(self):
        return iter(map(str, range(self.shape[1])))

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.rows.astype(dtype)

    def to_numpy(self) -> np.ndarray:
        """The rows."""
        return self.rows


def test_tables_of_any_kind() -> None:
    """Data frames, lists of lists and shapes given one by one, equal but not the same objects, give what arrays give."""
    wanted = path_model(max_iter=2).fit(TRAIN.features, TRAIN.costs).coef_
    frames = path_model(max_iter=2).fit(Frame(TRAIN.features), Frame(TRAIN.costs))
    lists = path_model(max_iter=2).fit(TRAIN.features.tolist(), TRAIN.costs.tolist(), shapes=[[3, 3] for _ in range(150)])
    assert np.array_equal(frames.coef_, wanted)
    assert np.array_equal(lists.coef_, wanted)


def test_it_is_an_estimator_of_scikit_learn() -> None:
    """Cloned, searched and put into a pipeline it works as others do; the same settings give the same weights."""
    model = path_model(C=3.0, trainer=Adam(batch_size=16))
    again = clone(model)
    assert again.get_params()["C"] == 3.0
    search = GridSearchCV(path_model(max_iter=2), {"C": [1e-4, 1.0]}, cv=2).fit(TRAIN.features, TRAIN.costs)
    assert search.best_params_ == {"C": 1.0}
    piped = make_pipeline(StandardScaler(), model).fit(TRAIN.features, TRAIN.costs)
    assert piped.score(TEST.features, TEST.costs) > 0.8
    first, second = (clone(model).fit(TRAIN.features, TRAIN.costs).coef_ for _ in range(2))
    assert np.array_equal(first, second)
    with pytest.raises(NotFittedError, match="call fit"):
        again.predict(TEST.features)


def test_the_two_stage_baseline_takes_any_regressor() -> None:
    """A regressor with one output is fitted once for each part, on rows of instances and of parts alike."""
    trees = HistGradientBoostingRegressor(max_iter=5)
    model = path_model(regressor=trees).fit(TRAIN.features[:40], TRAIN.costs[:40])
    assert len(model.regressor_.estimators_) == 12
    assert 0.0 < model.score(TEST.features, TEST.costs) < 1.0
    X, costs = ragged(20, 5)
    per_part = DecisionModel(ORACLE, regressor=LinearRegression()).fit(X, costs)
    assert per_part.regressor_.coef_.shape == (3,)
    with pytest.raises(DataError, match="cannot be saved"):
        model.save("anywhere.spz")


@pytest.mark.parametrize("trainer", ["one_slack", Adam(batch_size=16)])
def test_files_bring_the_model_back(trainer: object, tmp_path: Path) -> None:
    """A loaded model predicts the same to the bit, has the certificate and settings, and can be fitted again."""
    model = path_model(trainer=trainer, max_iter=3).fit(TRAIN.features, TRAIN.costs)
    model.save(tmp_path / "m.spz")
    for loaded in (DecisionModel.load(tmp_path / "m.spz", ORACLE), load(tmp_path / "m.spz", oracle=ORACLE)):
        assert np.array_equal(loaded.predict_costs(TEST.features), model.predict_costs(TEST.features))
        assert (loaded.certificate_, loaded.shape, loaded.max_iter) == (model.certificate_, (3, 3), 3)
        assert np.array_equal(loaded.fit(TRAIN.features, TRAIN.costs).coef_, model.coef_)
    for wrong in (None, MulticlassOracle()):
        with pytest.raises(ParameterError, match=r"ShortestPathOracle; give load"):
            DecisionModel.load(tmp_path / "m.spz", wrong)
    bundle = to_bundle(model)
    bundle.header["n_outputs"] = 11
    from structpred.storage.bundles import write_bundle

    write_bundle(tmp_path / "m.spz", bundle, kind="model")
    with pytest.raises(ModelFileError, match="contents are inconsistent"):
        load(tmp_path / "m.spz", oracle=ORACLE)


def test_a_callback_ends_training() -> None:
    """A callback sees each pass, and True stops after it."""
    model = path_model(callbacks=lambda row: row["passes"] == 3).fit(TRAIN.features, TRAIN.costs)
    assert (model.n_iter_, model.stop_reason_, len(model.history_)) == (3, "callback", 3)


BAD = {
    "loss": ({"loss": "sop+"}, {}, ParameterError, "loss: expected one of .*spo.*, got 'sop.'"),
    "trainer": (
        {"loss": "pg", "trainer": "bcfw"},
        {},
        ParameterError,
        "'bcfw' cannot minimise loss='pg': take for this loss trainer='adam', or for this trainer loss='hinge' or 'spo.'",
    ),
    "smooth": ({"trainer": "lbfgs"}, {}, ParameterError, "'lbfgs' cannot minimise loss='spo.'.*loss='crf' or .* or 'sparsemap'"),
    "zero": ({"loss": "perceptron", "trainer": "bcfw"}, {}, ParameterError, "take for this loss trainer='adam' or 'arow'"),
    "layer": ({"loss": SmoothedDifferenceLayer(ORACLE), "trainer": "sgd"}, {}, ParameterError, "a layer, loss='imle': .*'adam',"),
    "rows": ({"trainer": "sdca"}, {}, ParameterError, "'sdca' cannot minimise loss='spo.': .*loss=.none of this package"),
    "cost": ({"loss": "expected_cost"}, {}, ParameterError, r"give an object, ExpectedCost\(oracle, cost\)"),
    "C": ({"C": -1.0}, {}, ParameterError, "C must be a positive number"),
    "shape": ({"shape": None}, {}, DataError, "the shapes are missing"),
    "sizes": ({}, {"costs": TRAIN.costs[:, :11]}, DataError, "sample 0: expected 12 costs, one a part"),
    "numbers": ({}, {"X": TRAIN.features[:9]}, DataError, "there are 9 instances, but costs of 150"),
    "both": ({}, {"values": TRAIN.costs}, ParameterError, "one of them, not both"),
    "nan": ({}, {"X": np.full((150, 5), np.nan)}, DataError, "sample 0: features must be finite"),
    "shapes": ({}, {"shapes": [(3, 3)] * 149 + [(2, 2)]}, DataError, "sample 149: 4 parts, and 12 in sample 0"),
    "one sample": ({}, {"X": TRAIN.features[0]}, DataError, "expected a table of numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_trained_is_refused(name: str) -> None:
    """Settings and data that do not fit raise a clear error before training."""
    settings, given, error, message = BAD[name]
    with pytest.raises(error, match=message):
        path_model(**settings).fit(**{"X": TRAIN.features, "costs": TRAIN.costs, **given})


def test_other_features_are_refused_in_prediction() -> None:
    """Another number of features, or rows of parts in place of instances, are named."""
    model = path_model(max_iter=1).fit(TRAIN.features, TRAIN.costs)
    with pytest.raises(DataError, match="trained with 5 features in rows of instances and 12 outputs each, got 4 features"):
        model.predict(TEST.features[:, :4])
    with pytest.raises(DataError, match="rows of parts and 1 outputs"):
        model.predict([np.zeros((12, 5))])


@pytest.mark.slow
def test_paths_of_the_published_size() -> None:
    """1,000 paths of 5 x 5, degree 6, noise 1/2: ten passes lose a third less than least squares; bcfw proves 1 %."""
    data = shortest_path_data(2000, degree=6, noise=0.5, seed=1)
    train, test = data.rows(slice(1000)), data.rows(slice(1000, None))

    def lost(**settings) -> tuple[DecisionModel, float]:
        model = DecisionModel(ORACLE, shape=data.shape, **settings).fit(train.features, train.costs)
        return model, 1.0 - model.score(test.features, test.costs)

    _, least_squares = lost(regressor=LinearRegression())
    _, spo_plus = lost(max_iter=10)
    proven, certified = lost(trainer="bcfw", C=0.1, tol=0.01, max_iter=60)
    assert spo_plus < 0.082 < 0.66 * least_squares
    assert certified < 0.082
    assert proven.converged_
    assert proven.certificate_.relative_gap <= 0.01
