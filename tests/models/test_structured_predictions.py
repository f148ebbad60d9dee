"""StructuredPredictor: probabilities, k best, warm start, token weights, own losses in files, and faults named by sample."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subset_cases import Subsets, planted

from structpred import Instance
from structpred.core.costs import PartCosts
from structpred.errors import DataError, InfeasibleError, MissingCapabilityError, NoUpdateWarning, OracleError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.models import StructuredPredictor
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task import inference


def classes(n: int = 12, seed: int = 0) -> tuple[list[Instance], list[list[int]]]:
    """Rows of three labels, the label in the first column."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return [Instance(np.stack((np.eye(3)[k], rng.normal(size=3)), axis=1), (3,)) for k in y], [[int(k)] for k in y]


def test_marginals_are_probabilities_of_parts() -> None:
    """A model of the log loss gives the softmax of its scores; one of a margin refuses; an oracle without them is named."""
    X, y = classes()
    model = StructuredPredictor(MulticlassOracle(), trainer="lbfgs", max_iter=10).fit(X, y)
    for x, mu in zip(X, model.predict_marginals(X), strict=True):
        weights = np.exp(x.features @ model.coef_)
        np.testing.assert_allclose(mu, weights / weights.sum(), rtol=1e-10)
    assert model.predict_marginals([]) == []
    with pytest.raises(ParameterError, match="trained with trainer='bcfw' and a loss that is not the log loss"):
        StructuredPredictor(MulticlassOracle(), max_iter=2).fit(X, y).predict_marginals(X)
    with pytest.raises(MissingCapabilityError, match="predict_marginals needs marginals, which Subsets does not have"):
        StructuredPredictor(Subsets(), max_iter=2).fit(*planted(3)).predict_marginals(planted(3)[0])


def test_the_k_best_come_with_their_scores() -> None:
    """Best first, as many as there are, the first one what predict says; an oracle without kbest is named."""
    X, y = classes()
    model = StructuredPredictor(MulticlassOracle(), max_iter=5).fit(X, y)
    for x, best, first in zip(X, model.predict_kbest(X, 5), model.predict(X), strict=True):
        scores = x.features @ model.coef_
        assert [int(labels[0]) for labels, _ in best] == np.argsort(-scores, kind="stable").tolist()
        np.testing.assert_allclose([s for _, s in best], np.sort(scores)[::-1])
        assert best[0][0].tolist() == first.tolist()
    with pytest.raises(MissingCapabilityError, match="predict_kbest needs kbest"):
        StructuredPredictor(AssignmentOracle(), max_iter=2).fit([np.eye(4)], [[0, 1]], [(2,)]).predict_kbest([], 2)


def test_a_file_keeps_what_predictions_need(tmp_path: Path) -> None:
    """Probabilities, the scoring and the trainer survive a file."""
    X, y = classes()
    model = StructuredPredictor(MulticlassOracle(), trainer="lbfgs", max_iter=5, scoring="exact").fit(X, y)
    model.save(tmp_path / "m.spz")
    loaded = StructuredPredictor.load(tmp_path / "m.spz", MulticlassOracle())
    assert loaded.scoring == "exact"
    assert loaded.trainer == "lbfgs"
    assert all(map(np.array_equal, loaded.predict_marginals(X), model.predict_marginals(X)))


class Distance:
    """How far each item is from its place."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        return PartCosts(0.0, np.abs(np.arange(shape[0])[None, :] - labels[:, None]).astype(float).ravel())


def test_a_loaded_model_takes_its_own_loss(tmp_path: Path) -> None:
    """A file names an own loss but does not hold it: score and fit say so, and work with load(..., loss=)."""
    rng = np.random.default_rng(0)
    X, y = [Instance(rng.normal(size=(9, 2)), (3,)) for _ in range(4)], [rng.permutation(3) for _ in range(4)]
    model = StructuredPredictor(AssignmentOracle(), loss=Distance(), max_iter=3, scoring=lambda a, b: 0.5).fit(X, y)
    model.save(tmp_path / "m.spz")
    loaded = StructuredPredictor.load(tmp_path / "m.spz", AssignmentOracle())
    with pytest.raises(ParameterError, match="model files do not hold"):
        loaded.fit(X, y)
    whole = StructuredPredictor.load(tmp_path / "m.spz", AssignmentOracle(), loss=Distance())
    with pytest.raises(ParameterError, match=r"scoring: .*model files do not hold"):
        whole.score(X, y)
    assert whole.set_params(scoring=None).fit(X, y).coef_.tobytes() == model.coef_.tobytes()
    with pytest.raises(ParameterError, match="loss: expected"):
        StructuredPredictor.load(tmp_path / "m.spz", AssignmentOracle(), loss=3)  # type: ignore[arg-type]


def test_a_warm_start_goes_on() -> None:
    """Two passes, then two more with warm_start, are four passes to the last bit."""
    X, y = planted(8)
    whole = StructuredPredictor(Subsets(), max_iter=4, tol=0).fit(X, y)
    parts = StructuredPredictor(Subsets(), max_iter=2, tol=0, warm_start=True).fit(X, y)
    assert parts.set_params(max_iter=4).fit(X, y).coef_.tobytes() == whole.coef_.tobytes()


def test_token_weights_weigh_positions() -> None:
    """Weights of one change nothing, of two something; of zero, nothing is learnt. Oracles without a grid refuse them."""
    X, y = [Instance(np.eye(8), (2, 2))] * 2, [[0, 1]] * 2
    model = StructuredPredictor(ChainOracle(), max_iter=5)
    plain = model.fit(X, y).coef_
    assert model.fit(X, y, token_weight=[[1.0, 1.0]] * 2).coef_.tobytes() == plain.tobytes()
    assert model.fit(X, y, token_weight=[[2.0, 0.0]] * 2).coef_.tobytes() != plain.tobytes()
    with pytest.warns(NoUpdateWarning):
        assert not model.fit(X, y, token_weight=[[0.0, 0.0]] * 2).coef_.any()
    with pytest.raises(ParameterError, match="token weights need positions"):
        StructuredPredictor(Subsets()).fit(*planted(2), token_weight=[[1.0]] * 2)
    with pytest.raises(ParameterError, match="token_weight, sample 1: expected numbers"):
        StructuredPredictor(ChainOracle()).fit(X, y, token_weight=[[1.0, 1.0], ["a", "b"]])


class Failing(Subsets):
    """Fails for the instance whose scores hold a number above 100."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def argmax(self, scores: Any, shape: Any) -> Any:
        if scores.max() > 100.0:
            raise self.error
        return super().argmax(scores, shape)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (KeyError("edge"), OracleError, "sample 7: Failing.argmax raised KeyError: 'edge'"),
        (DataError("not for these scores"), DataError, "sample 7: not for these scores"),
        (InfeasibleError("no output"), InfeasibleError, "sample 7: no output"),
    ],
)
def test_what_an_oracle_raises_in_prediction_names_the_sample(
    error: Exception, kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception of the oracle says at which sample, also beyond the first chunk."""
    monkeypatch.setattr(inference, "CHUNK", 5)
    X, y = planted(10)
    model = StructuredPredictor(Failing(error), max_iter=2, check_components=False).fit(X, y)
    X[7] = Instance(np.full_like(X[7].features, 1e6) * np.sign(model.coef_), X[7].shape)
    with pytest.raises(kind, match=message):
        model.predict(X)


class FailingMap(PartFeatures):
    """Fails at instance 2."""

    def scores(self, w: Any, i: int) -> Any:
        if i == 2:
            raise ZeroDivisionError("by hand")
        return super().scores(w, i)


def test_what_a_feature_map_raises_in_prediction_names_the_sample() -> None:
    """An exception of the user's own map says at which sample."""
    X, y = planted(4)
    model = StructuredPredictor(Subsets(), max_iter=2).fit(X, y)
    with pytest.raises(OracleError, match=r"sample 2: FailingMap.scores raised ZeroDivisionError: by hand"):
        model.predict(FailingMap([x.features for x in X]), [x.shape for x in X])


def test_predictions_do_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances are scored some at a time; the outputs are those of one batch, with compiled batches and without."""
    for oracle, (X, y) in ((Subsets(), planted(11)), (MulticlassOracle(), classes(11))):
        model = StructuredPredictor(oracle, max_iter=3).fit(X, y)
        whole = model.predict(X)
        monkeypatch.setattr(inference, "CHUNK", 3)
        assert all(map(np.array_equal, model.predict(X), whole))
        monkeypatch.undo()


def test_scores_of_a_chunk_are_all_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a chunk of instances is decoded in one call."""
    monkeypatch.setattr(inference, "CHUNK", 4)
    sizes = []
    whole = inference.argmax_batch

    def noting(oracle: Any, scores: Any, offsets: Any, shapes: Any) -> Any:
        sizes.append(len(shapes))
        return whole(oracle, scores, offsets, shapes)

    monkeypatch.setattr(inference, "argmax_batch", noting)
    X, y = planted(10)
    StructuredPredictor(Subsets(), max_iter=1).fit(X, y).predict(X)
    assert sizes == [4, 4, 2]
