"""No guard names what is right: every component of the package, in a class from outside, under every trainer that takes it."""

import inspect
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from structpred.core.oracle import Oracle
from structpred.core.packing import has_points
from structpred.core.regulariser import Regulariser
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.features.label_rows import LabelRows
from structpred.features.parts import PartFeatures
from structpred.models import LinearClassifier, LinearRegressor, StructuredPredictor
from structpred.models.settings import resolve_surrogate, surrogates
from structpred.objectives.names import regularisers
from structpred.objectives.part_losses import ExtraParts
from structpred.oracles.multiclass import MulticlassOracle
from structpred.rows.scalar_loss import ScalarLoss
from structpred.runtime.discovery import public_subclasses
from structpred.trainers.names import trainers

#: surrogates of structures, by name
OF_PARTS = [name for name in surrogates() if name in ("margin", "slack", "log", "perturbed", "soft_margin", "sparsemap")]
#: those that expensive oracles are tried with, and losses of scores
FEW = ("bcfw", "n_slack", "lbfgs", "sgd")
#: trainers for what has no place here: sets of labels
NEEDS_MORE = ("marginal_bcfw", "pragam_b")
#: what says that a combination is not offered, before any work
NOT_OFFERED = (MissingCapabilityError, ParameterError)
pytestmark = pytest.mark.filterwarnings("ignore::structpred.errors.StructpredWarning")


def own(kind: type[Any]) -> type[Any]:
    """The same class as somebody else's: an empty subclass of another module."""
    return type(f"Own{kind.__name__}", (kind,), {"__module__": "somebody", "__doc__": kind.__doc__})


def plain(kind: type[Any]) -> bool:
    """Whether it can be made without arguments."""
    kinds = inspect.signature(kind).parameters.values()
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in kinds)


def oracles() -> list[type[Oracle]]:
    """All whose outputs are sets of parts."""
    found = public_subclasses("structpred.oracles", Oracle)  # type: ignore[type-abstract]
    return [kind for kind in found if plain(kind) and not has_points(kind())]


@cache
def shapes_of(kind: type[Oracle]) -> list[Any]:
    """Five shapes, of the examples that are not large."""
    oracle = kind()
    small = [shape for shape in oracle.example_shapes() if 0 < oracle.n_parts(shape) <= 60]
    return [small[k % len(small)] for k in range(5)]


def trained(trainer: str, oracle: Oracle, shapes: list[Any], **settings: Any) -> Any:
    """A model of outputs that a linear model with noise finds best; None where the combination is not offered."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(oracle.n_parts(shape), 3)) for shape in shapes]
    scores = [own @ np.array([1.0, -0.5, 0.3]) + 0.5 * rng.normal(size=len(own)) for own in rows]
    truths = [oracle.argmax(theta, shape) for theta, shape in zip(scores, shapes, strict=True)]
    model = StructuredPredictor(oracle, ExtraParts(), trainer, 0.2, max_iter=3, random_state=0, **settings)
    try:
        return model.fit(PartFeatures(rows), truths, shapes)
    except NOT_OFFERED:
        return None


def hinge(model: Any, kind: type[Oracle]) -> float:
    """The margin objective at its weights, by listing all outputs."""
    oracle, shapes, rng = kind(), shapes_of(kind), np.random.default_rng(0)
    rows = [rng.normal(size=(oracle.n_parts(shape), 3)) for shape in shapes]
    scores = [own @ np.array([1.0, -0.5, 0.3]) + 0.5 * rng.normal(size=len(own)) for own in rows]
    total = 0.0
    for x, theta, shape in zip(rows, scores, shapes, strict=True):
        truth = oracle.parts(oracle.argmax(theta, shape), shape)
        ell = ExtraParts().costs(oracle.argmax(theta, shape), shape, oracle).costs
        augmented = x @ model.coef_ + ell
        outputs = [oracle.parts(y, shape) for y in oracle.enumerate(shape)]  # type: ignore[attr-defined]
        total += max(augmented[parts].sum() for parts in outputs) - augmented[truth].sum()
    return float(np.square(model.coef_).sum() / (2 * 0.2 * len(shapes)) + total / len(shapes))


@pytest.mark.slow
@pytest.mark.parametrize("kind", oracles(), ids=lambda kind: kind.__name__)
def test_oracles_under_all_trainers(kind: type[Oracle]) -> None:
    """Every oracle, as somebody else's, under every trainer and surrogate that takes it: no error, and bounds that do not cross;
    where outputs can be listed and inference is exact, the primal of the hinge is that of the list."""
    mine, count = own(kind), 0
    few = [shape for shape in set(shapes_of(kind)) if callable(getattr(kind, "enumerate", None))]
    listed = kind.exact and few and all(len(list(islice(kind().enumerate(s), 3000))) < 3000 for s in few)  # type: ignore[attr-defined]
    for trainer in FEW if kind.expensive else trainers():
        for surrogate in OF_PARTS if trainer in FEW else ("margin", "slack", "log"):
            model = trained(trainer, mine(), shapes_of(kind), surrogate=surrogate)
            if model is None:
                continue
            count, certificate = count + 1, model.certificate_
            if certificate.primal is not None and certificate.dual is not None:
                assert certificate.dual <= certificate.primal * (1 + 1e-9) + 1e-9
            if listed and surrogate == "margin" and certificate.primal is not None:
                assert certificate.primal == pytest.approx(hinge(model, kind), rel=1e-6)
    assert count > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", regularisers())
def test_regularisers_under_all_trainers(name: str) -> None:
    """Every regulariser, as somebody else's, under every trainer and surrogate that takes it."""
    kind: type[Regulariser] = own(regularisers()[name])
    if not plain(kind):
        pytest.skip("it needs settings of its own")
    made = [
        trained(trainer, MulticlassOracle(), [(3,)] * 6, surrogate=surrogate, regulariser=kind())
        for trainer in trainers()
        for surrogate in ("margin", "log")
    ]
    found = [model.certificate_ for model in made if model is not None]
    assert found
    assert all(one.dual <= one.primal * (1 + 1e-9) + 1e-9 for one in found if one.dual is not None and one.primal is not None)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(trainers()))
def test_trainers_as_somebody_elses(name: str) -> None:
    """Every trainer, as a class from outside, on every surrogate that it minimises."""
    kind, count = own(trainers()[name]), 0
    kind.name = ""
    for surrogate in OF_PARTS:
        count += trained(kind(), MulticlassOracle(), [(3,)] * 6, surrogate=surrogate) is not None  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    for losses in (None, "hinge", "logistic", "smoothed_hinge", "squared"):
        try:
            LinearClassifier(kind(), surrogate=losses, max_iter=3).fit(X, X[:, 0] > 0.0)
            count += 1
        except NOT_OFFERED:
            continue
    assert count or name in NEEDS_MORE


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PARTS)
def test_surrogates_as_somebody_elses(name: str) -> None:
    """Every surrogate of structures, as a class from outside, under every trainer that takes it."""
    kind = own(type(resolve_surrogate(name)))
    made = [trained(trainer, MulticlassOracle(), [(3,)] * 6, surrogate=kind()) for trainer in trainers()]
    assert sum(model is not None for model in made) > 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [
    kind for kind in public_subclasses("structpred.objectives.scalar", ScalarLoss) if plain(kind)
], ids=lambda kind: kind.__name__)  # fmt: skip
def test_scalar_losses_as_somebody_elses(kind: type[ScalarLoss]) -> None:
    """Every loss of one score, as a class from outside, under every trainer that takes it."""
    mine, count = own(kind), 0
    rng = np.random.default_rng(0)
    X = rng.normal(size=(260, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=260)
    for trainer in trainers():
        try:
            if kind.signs:
                LinearClassifier(trainer, surrogate=mine(), max_iter=5).fit(X, np.sign(y))
            else:
                LinearRegressor(trainer=trainer, loss=mine(), max_iter=5).fit(X, y)
            count += 1
        except NOT_OFFERED:
            continue
    assert count


@pytest.mark.slow
@pytest.mark.parametrize("trainer", list(trainers()))
def test_feature_maps_as_somebody_elses(trainer: str) -> None:
    """Maps with calls for blocks and without, in float64 and float32, as classes from outside."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(30, 4)), [[k] for k in rng.integers(0, 3, 30)]
    maps = [own(LabelRows)(rows, 3), *(own(PartFeatures)([np.kron(np.eye(3), x) for x in rows], dtype=t) for t in ("f4", "f8"))]
    for features in maps:
        for surrogate in ("margin", "log"):
            model = StructuredPredictor(MulticlassOracle(), trainer=trainer, surrogate=surrogate, max_iter=3)
            try:
                model.fit(features, labels, [(3,)] * 30)
            except NOT_OFFERED:
                continue
            certificate = model.certificate_
            if certificate.primal is not None and certificate.dual is not None:
                assert certificate.dual <= certificate.primal * (1 + 1e-6)
