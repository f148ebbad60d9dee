"""ChainLabeler: its settings, its weights, held-out data, callbacks, and its place in scikit-learn."""

from typing import Any

import numpy as np
import pytest
from labeler_cases import SENTENCES, Y, one_hot, plain
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.utils import estimator_html_repr

from structpred.errors import ParameterError
from structpred.models import ChainLabeler
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.trainers.bcfw import BCFW
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.sgd import SGD

DICTS = [[{"w": w} for w in words] for words in SENTENCES]


def noisy(n: int = 30, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences of 2 to 6 tokens, three labels, features that tell the labels apart only in part."""
    rng = np.random.default_rng(seed)
    y = [rng.integers(0, 3, int(k)) for k in rng.integers(2, 7, n)]
    return [np.eye(3)[labels] + rng.normal(0, 0.8, (len(labels), 3)) for labels in y], y


@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "perceptron"])
def test_every_trainer_beats_the_commonest_label(trainer: str) -> None:
    """Each trainer by name learns more than the share of the commonest label, on data it was not trained on."""
    X, y = noisy(60)
    flat = np.concatenate(y[30:])
    model = ChainLabeler(trainer=trainer, random_state=0).fit(X[:30], y[:30])
    assert model.score(X[30:], y[30:]) > np.bincount(flat).max() / len(flat) + 0.1
    assert model.n_iter_ == 10
    assert len(model.history_) == 10
    assert model.stop_reason_ == "max_iter"


@pytest.mark.parametrize(("name", "trainer"), [("bcfw", BCFW()), ("sgd", SGD()), ("perceptron", AveragedPerceptron())])
def test_a_name_is_the_trainer_with_its_usual_settings(name: str, trainer: Any) -> None:
    """A trainer's name and a plain instance of it train alike, to the last bit."""
    X, y = noisy()
    assert ChainLabeler(trainer=name).fit(X, y).coef_.tobytes() == ChainLabeler(trainer=trainer).fit(X, y).coef_.tobytes()


def test_the_optimum_is_reached_and_said() -> None:
    """With a tolerance, training stops when the gap is that small, and `converged_` says so; SGD gets to the same value."""
    X, y = noisy()
    model = ChainLabeler(C=0.05, tol=1e-4, max_iter=2000).fit(X, y)
    assert (model.stop_reason_, model.converged_) == ("tol", True)
    assert model.certificate_.gap <= 1e-4 * model.certificate_.primal
    slow = ChainLabeler(trainer="sgd", C=0.05, max_iter=300).fit(X, y)
    assert slow.certificate_.primal == pytest.approx(model.certificate_.primal, rel=0.01)
    assert not ChainLabeler(max_iter=1).fit(X, y).converged_


def same_optimum(a: ChainLabeler, b: ChainLabeler) -> bool:
    """Whether the bounds of the two models, each 1e-4 apart, leave room for one optimum."""
    assert a.stop_reason_ == b.stop_reason_ == "tol"
    return bool(a.certificate_.dual <= b.certificate_.primal and b.certificate_.dual <= a.certificate_.primal)


TIGHT: dict[str, Any] = {"C": 0.1, "tol": 1e-4, "max_iter": 20000}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("loss", ["hamming", LabelCosts([[0, 3, 1], [1, 0, 1], [2, 1, 0]])])
@pytest.mark.parametrize("weight", [0, 2])
def test_a_sample_weight_is_a_number_of_copies(weight: int, loss: Any) -> None:
    """At the optimum, a sequence with the weight 2 counts as if it stood there twice, with 0 as if it were not there."""
    X, y = noisy(12)
    weights = np.ones(12)
    weights[:4] = weight
    weighted = ChainLabeler(loss=loss, **TIGHT).fit(X, y, sample_weight=weights)
    repeated = ChainLabeler(loss=loss, **TIGHT).fit(weight * X[:4] + X[4:], weight * y[:4] + y[4:])
    assert same_optimum(weighted, repeated)
    assert not same_optimum(weighted, ChainLabeler(loss=loss, **TIGHT).fit(X, y))
    # the objective is strongly convex, so the gaps bound how far apart the weights can be: lam/2 |w - w*|^2 <= gap
    lam = 1 / (0.1 * weights.sum())
    apart = sum(np.sqrt(2 * model.certificate_.gap / lam) for model in (weighted, repeated))
    assert np.linalg.norm(weighted.coef_ - repeated.coef_) <= apart


def test_token_weights_scale_the_loss() -> None:
    """Token weights of 2 everywhere are the loss of twice the costs; weights of 1 change nothing."""
    X, y = noisy(12)
    tight: dict[str, Any] = {"C": 0.2, "max_iter": 50}
    twice = ChainLabeler(loss=LabelCosts(2.0 * (1.0 - np.eye(3))), **tight).fit(X, y)
    weighted = ChainLabeler(**tight).fit(X, y, token_weight=[2.0 * np.ones(len(labels)) for labels in y])
    assert weighted.coef_.tobytes() == twice.coef_.tobytes()
    ones = ChainLabeler(**tight).fit(X, y, token_weight=[[1] * len(labels) for labels in y])
    assert ones.coef_.tobytes() == ChainLabeler(**tight).fit(X, y).coef_.tobytes()


def test_costly_labels_are_avoided() -> None:
    """A label that is dear to give wrongly is given less often than under the Hamming loss."""
    X, y = noisy(40)
    costs = 1.0 - np.eye(3)
    costs[1:, 0] = 20.0
    usual = np.concatenate(ChainLabeler(C=1.0, max_iter=50, loss=Hamming()).fit(X, y).predict(X))
    careful = np.concatenate(ChainLabeler(C=1.0, max_iter=50, loss=LabelCosts(costs)).fit(X, y).predict(X))
    assert (careful == 0).sum() < (usual == 0).sum()


def test_held_out_data_choose_the_weights() -> None:
    """With dev data the weights of the best pass are kept: the score is the best of the history; patience ends training."""
    X, y = noisy(40)
    dev = noisy(40, seed=1)
    model = ChainLabeler(trainer=SGD(averaged=False), C=100.0, max_iter=40, patience=3).fit(X, y, dev=dev)
    scores = [row["dev_score"] for row in model.history_]
    assert model.score(*dev) == max(scores)
    assert model.stop_reason_ == "dev"
    assert scores.index(max(scores)) == len(scores) - 4
    assert model.n_iter_ == len(scores) < 40


def test_dev_metric_is_the_users() -> None:
    """dev_metric gets gold and predicted labels, in the user's own type, and decides which pass is kept."""
    seen = []

    def fewest_verbs(gold: Any, predicted: Any) -> float:
        assert gold == Y
        seen.append(sum(labels.tolist().count("VERB") for labels in predicted))
        return -seen[-1]

    model = ChainLabeler(dev_metric=fewest_verbs, max_iter=5).fit(DICTS, Y, dev=(DICTS, Y))
    assert [row["dev_score"] for row in model.history_] == [-n for n in seen]
    assert sum(labels.count("VERB") for labels in plain(model.predict(DICTS))) == min(seen)


@pytest.mark.parametrize("bad", [float("nan"), None, "0.5"])
def test_a_dev_metric_must_give_a_number(bad: Any) -> None:
    """A metric that gives NaN or no number is an error that names what came."""
    with pytest.raises(ParameterError, match=f"finite number, got {bad!r} after pass 1"):
        ChainLabeler(dev_metric=lambda gold, predicted: bad).fit(DICTS, Y, dev=(DICTS, Y))


def test_callbacks_see_every_row_and_may_stop() -> None:
    """One callback or several get each row of the history; True from any of them stops, and all are called."""
    rows: list[Any] = []
    other: list[Any] = []
    model = ChainLabeler(callbacks=[lambda row: row["passes"] == 3, rows.append], max_iter=9).fit(DICTS, Y)
    assert (model.stop_reason_, model.n_iter_, len(rows)) == ("callback", 3, 3)
    ChainLabeler(callbacks=other.append, max_iter=4).fit(DICTS, Y)
    assert [row["passes"] for row in other] == [1, 2, 3, 4]


def test_transitions_are_named() -> None:
    """transitions_[a, b] is the weight of label b after label a: what always follows is liked, what never does is not."""
    model = ChainLabeler(max_iter=50, C=10.0).fit(DICTS, Y)
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    assert model.transitions_.shape == (4, 4)
    assert model.transitions_[place["NOUN"], place["VERB"]] > 0 > model.transitions_[place["NOUN"], place["DET"]]


def test_random_state_is_a_seed() -> None:
    """Another seed is another order of instances; a RandomState is taken as scikit-learn does; None is the seed 0."""
    X, y = noisy()
    weights = {seed: ChainLabeler(random_state=seed).fit(X, y).coef_.tobytes() for seed in (None, 0, 1)}
    assert weights[None] == weights[0] != weights[1]
    states = [ChainLabeler(random_state=np.random.RandomState(3)).fit(X, y).coef_.tobytes() for _ in range(2)]
    assert states[0] == states[1]


def test_predictions_do_not_depend_on_the_company() -> None:
    """Each sequence gets the labels it gets alone, in whatever order it stands."""
    X, y = noisy(20)
    model = ChainLabeler().fit(X, y)
    together = plain(model.predict(X))
    assert plain(model.predict(X[::-1])) == together[::-1]
    assert [plain(model.predict([x]))[0] for x in X] == together


def test_nothing_is_written_to_the_data() -> None:
    """Training and prediction leave X and y as they were; read-only arrays will do."""
    X, y = noisy()
    before = [x.copy() for x in X], [labels.copy() for labels in y]
    for array in (*X, *y):
        array.flags.writeable = False
    ChainLabeler().fit(X, y).predict(X)
    assert all(map(np.array_equal, (*X, *y), (*before[0], *before[1])))


def test_clone_and_params() -> None:
    """get_params gives what was set, set_params sets it, clone makes an unfitted twin; the constructor changes nothing."""
    settings = {"trainer": "sgd", "C": 0.5, "max_iter": 3, "tol": 0.1, "min_count": 2, "random_state": 4}
    model = ChainLabeler(**settings)
    assert {name: value for name, value in model.get_params().items() if name in settings} == settings
    twin = clone(model.fit(DICTS, Y))
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "coef_")
    assert twin.set_params(C=2.0).C == 2.0
    with pytest.raises(ValueError, match="unknown"):
        model.set_params(unknown=1)
    given = BCFW(gap_sampling=True)
    assert ChainLabeler(trainer=given).trainer is given


def test_fit_returns_self_and_keeps_its_parameters() -> None:
    """fit returns the estimator and writes to none of its settings."""
    model = ChainLabeler(tol=0.01, random_state=np.random.RandomState(0))
    before = dict(model.get_params())
    assert model.fit(DICTS, Y) is model
    assert model.get_params() == before


def test_repr_names_the_settings() -> None:
    """The text and the HTML form show the class and what was changed, before and after fit."""
    for model in (ChainLabeler(C=0.25), ChainLabeler(C=0.25).fit(DICTS, Y)):
        assert repr(model) == "ChainLabeler(C=0.25)"
        html = estimator_html_repr(model)
        assert "ChainLabeler" in html
        assert "0.25" in html


def test_cross_validation_and_grid_search() -> None:
    """cross_val_score, GridSearchCV (KFold) and train_test_split work with ragged arrays and with lists of strings."""
    X, y = noisy(24)
    scores = cross_val_score(ChainLabeler(max_iter=3), X, y, cv=KFold(3))
    assert scores.shape == (3,)
    assert (scores > 0.4).all()
    search = GridSearchCV(ChainLabeler(max_iter=5), {"C": [0.1, 1.0], "trainer": ["bcfw", "sgd"]}, cv=KFold(2)).fit(X, y)
    assert search.best_score_ > 0.5
    assert search.best_estimator_.n_iter_ == 5
    strings = GridSearchCV(ChainLabeler(max_iter=5), {"C": [0.1, 1.0]}, cv=KFold(2), error_score="raise").fit(DICTS, Y)
    assert set(strings.best_estimator_.classes_) == {"ADJ", "DET", "NOUN", "VERB"}
    parts = train_test_split(X, y, test_size=0.25, random_state=0)
    assert ChainLabeler().fit(parts[0], parts[2]).score(parts[1], parts[3]) > 0.4


@pytest.mark.slow
def test_grid_search_in_processes() -> None:
    """Estimators travel to worker processes and back."""
    X, y = noisy(12)
    search = GridSearchCV(ChainLabeler(max_iter=2), {"C": [0.1, 1.0]}, cv=KFold(2), n_jobs=2).fit(X, y)
    alone = GridSearchCV(ChainLabeler(max_iter=2), {"C": [0.1, 1.0]}, cv=KFold(2)).fit(X, y)
    assert search.cv_results_["mean_test_score"].tolist() == alone.cv_results_["mean_test_score"].tolist()


def test_score_is_the_share_of_right_tokens() -> None:
    """score counts tokens, not sequences; sample_weight weighs the tokens of a sequence."""
    model = ChainLabeler(max_iter=30).fit(DICTS, Y)
    wrong = [["X"] * len(Y[0]), *Y[1:]]
    total, first = sum(map(len, Y)), len(Y[0])
    assert model.score(DICTS, wrong) == pytest.approx(1 - first / total)
    weights = [5.0] + [1.0] * (len(Y) - 1)
    assert model.score(DICTS, wrong, sample_weight=weights) == pytest.approx(1 - 5 * first / (total + 4 * first))


def test_prediction_of_nothing_is_nothing() -> None:
    """An empty list of sequences gives an empty list, for every kind of input."""
    assert ChainLabeler().fit(DICTS, Y).predict([]) == []
    assert ChainLabeler().fit(one_hot(), Y).predict([]) == []
