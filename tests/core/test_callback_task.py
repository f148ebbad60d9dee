"""The three-callback task: the same training as a part-based task, and errors that name the sample."""

import numpy as np
import pytest
from scipy import sparse

from structpred.errors import DataError, MissingCapabilityError, OracleError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.callback_task import CallbackTask
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.corrective import Corrective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD

N_CLASSES, D, N = 4, 3, 30
DIM = N_CLASSES * D
EYE = np.eye(N_CLASSES)


def phi(x, y):
    """The block of class y holds x."""
    return np.kron(EYE[y], x)


def zero_one(y, other):
    """One for every wrong class."""
    return float(y != other)


def best(w, x, y, loss_weight):
    """All classes are tried; ties go to the first."""
    scores = w.reshape(N_CLASSES, D) @ x
    return int((scores + loss_weight * (np.arange(N_CLASSES) != y)).argmax())


@pytest.fixture
def data():
    """Inputs with whole-number features, so that every order of adding gives the same bits, and classes."""
    rng = np.random.default_rng(0)
    return list(rng.integers(-3, 4, (N, D)).astype(float)), rng.integers(0, N_CLASSES, N).tolist()


def task_of(data, **changes):
    """The task of the fixture, with some of its functions replaced."""
    functions = {"joint_feature": phi, "loss": zero_one, "argmax": best, **changes}
    return CallbackTask(*data, DIM, **functions)


@pytest.mark.parametrize("trainer", [AveragedPerceptron(), SGD(), BCFW(), BCFW(gap_sampling=True)])
def test_trains_as_the_part_based_task_does(data, trainer) -> None:
    """Every trainer gives the weights and the certificate of Task with the multiclass oracle."""
    rows = [np.kron(EYE, x) for x in data[0]]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N)
    shapes = [(N_CLASSES,)] * N
    plain = Task(PartFeatures(rows), MulticlassOracle(), [[y] for y in data[1]], shapes, Hamming(), sample_weight=weights)
    results = []
    for task in (plain, task_of(data, sample_weight=weights)):
        results.append(train(Problem(task, MarginRescaling(), lam=0.1), trainer, RunSettings(max_iter=5)))
    np.testing.assert_allclose(results[0].weights, results[1].weights, rtol=1e-10, atol=1e-12)
    assert results[0].certificate.proven == results[1].certificate.proven
    for a, b in ((r.certificate.primal, r.certificate.dual) for r in results):
        assert a is None or a >= b - 1e-9
    if results[0].certificate.primal is not None:
        assert results[0].certificate.primal == pytest.approx(results[1].certificate.primal, rel=1e-10)


@pytest.mark.parametrize(
    "form",
    [
        lambda v: sparse.csr_matrix(v[None]),
        lambda v: sparse.csr_array(v[None]),
        lambda v: sparse.coo_array(v),
        lambda v: (np.flatnonzero(v), v[np.flatnonzero(v)]),
        lambda v: (np.arange(DIM)[::-1], v[::-1]),
        lambda v: (list(range(DIM)), v.tolist()),
        lambda v: v.astype(np.float32),
        lambda v: v.astype(int),
    ],
)
def test_joint_features_in_any_form(data, form) -> None:
    """A dense vector, a sparse row and pairs in any order say the same."""
    a = task_of(data).features(3, 1)
    b = task_of(data, joint_feature=lambda x, y: form(phi(x, y))).features(3, 1)
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.values, b.values)
    assert a.values.all()


def test_no_features_at_all_is_allowed(data) -> None:
    """An empty pair of lists is the zero vector."""
    assert not len(task_of(data, joint_feature=lambda x, y: ([], [])).features(0, 0).indices)


def test_other_capabilities_are_refused_with_the_reason(data) -> None:
    """Asking for part scores is an error that says what a three-callback task gives up; argmax among alternatives will do."""
    task = task_of(data)
    task.require(("argmax", ("marginals", "argmax")), "trainer X")
    for need in ("marginals", ("argmax_relaxed", "argmax_constrained"), "kbest"):
        with pytest.raises(MissingCapabilityError, match=r"trainer X needs .* such as relaxations and constraints"):
            task.require(("argmax", need), "trainer X")


BAD = [
    ("joint_feature", lambda x, y: np.zeros(DIM + 1), f"vectors of length dim = {DIM}, got length {DIM + 1}"),
    ("joint_feature", lambda x, y: sparse.csr_array((1, 5)), f"vectors of length dim = {DIM}, got length 5"),
    ("joint_feature", lambda x, y: ([DIM], [1.0]), f"got indices {DIM}"),
    ("joint_feature", lambda x, y: ([-1], [1.0]), "got indices -1"),
    ("joint_feature", lambda x, y: np.zeros((2, DIM)), r"got ndarray of shape \(2, 12\)"),
    ("joint_feature", lambda x, y: [1.0] * DIM, "got list"),
    ("joint_feature", lambda x, y: ([0, 1], [1.0]), "pair"),
    ("joint_feature", lambda x, y: ([0.5], [1.0]), "pair"),
    ("joint_feature", lambda x, y: np.full(DIM, np.nan), "finite numbers"),
    ("joint_feature", lambda x, y: 1 / 0, "joint_feature raised ZeroDivisionError"),
    ("loss", lambda y, other: -1.0, "got -1.0; is it a score"),
    ("loss", lambda y, other: float("nan"), "got nan"),
    ("loss", lambda y, other: None, "must return a number, got NoneType"),
    ("loss", lambda y, other: 1.0, "loss of the true output must be 0, got 1.0"),
    ("loss", lambda y, other: other.missing, "loss raised AttributeError"),
]


@pytest.mark.parametrize(("name", "function", "message"), BAD)
def test_bad_functions_are_found_before_training(data, name, function, message) -> None:
    """What joint_feature and loss return for the truth is checked at the start; the error names the sample."""
    with pytest.raises(OracleError, match=rf"sample 0: .*{message}"):
        task_of(data, **{name: function})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda w, x, y, c: best(-w, x, y, 0.0), "lower than the true output's"),
        (lambda w, x, y, c: int(w.reshape(N_CLASSES, D).dot(x).argmin()), "lower than the true output's"),
        (lambda w, x, y, c: 99, "joint_feature raised IndexError"),
        (lambda w, x, y, c: w.fill(0.0), "argmax raised ValueError: assignment destination is read-only"),
        (lambda w, x, y, c: x[99], "argmax raised IndexError"),
    ],
)
def test_bad_argmax_is_found(data, function, message) -> None:
    """An argmax that minimises, gives nonsense, raises or writes to the weights is an OracleError with the sample's number."""
    with pytest.raises(OracleError, match=rf"sample \d+: .*{message}"):
        train(Problem(task_of(data, argmax=function), MarginRescaling(), lam=0.1), SGD(), RunSettings(max_iter=3))


LIARS = [
    (lambda w, x, y, c: best(-w, x, y, -c), r"sample \d+: .* costs 0, but at .* one that costs 1: does it minimise"),
    (lambda w, x, y, c: best(w, x, y, 0.0), r"sample \d+: .* costs 0, but at .* one that costs 1: .* leave out loss_weight"),
    (lambda w, x, y, c: y, "true output of all of the first 10 samples.* does it return y_true"),
]


@pytest.mark.parametrize(("function", "message"), LIARS)
def test_an_argmax_that_makes_the_truth_look_optimal_is_named_before_training(data, function, message) -> None:
    """An argmax that minimises, leaves out the loss or returns the truth is refused when the task is made, unless exact=False."""
    with pytest.raises(OracleError, match=message):
        task_of(data, argmax=function)
    assert not task_of(data, argmax=function, exact=False).certified


def test_the_probe_asks_for_no_more_than_the_contract_promises(data) -> None:
    """An argmax may refuse negative loss weights and outputs of other inputs, and an input may have the true output alone."""

    def own(x: np.ndarray, y: int) -> list[int]:  # the outputs of an input; every second one has a single output
        return [y] if x[0] % 2 else list(range(N_CLASSES))

    def argmax(w, x, y, c):
        if c < 0:
            raise ValueError("loss_weight below 0")
        return max(own(x, y), key=lambda k: float(w @ phi(x, k)) + c * 2.0 * abs(y - k))

    assert task_of(data, argmax=argmax, loss=lambda y, k: 2.0 * abs(y - k)).certified
    zeros = task_of(data, argmax=lambda w, x, y, c: best(w, x, y, 0.0), loss=lambda y, k: 0.0)
    assert zeros.violations(np.zeros(DIM), 1.0).tolist() == [0.0] * N


def test_a_heuristic_is_not_certified(data) -> None:
    """exact=False lets a poor argmax pass, and no certificate is then called a proof."""
    task = task_of(data, argmax=lambda w, x, y, c: best(-w, x, y, c), exact=False)
    result = train(Problem(task, MarginRescaling(), lam=0.1), BCFW(), RunSettings(max_iter=2))
    assert not result.certificate.proven
    assert "not a proof" in str(result.certificate)


@pytest.mark.slow
def test_a_loss_that_does_not_split_over_parts() -> None:
    """F1 loss on sets: the bound holds and training separates separable data."""
    rng = np.random.default_rng(0)
    every = [tuple(np.flatnonzero(bits)) for bits in np.ndindex(2, 2, 2)]

    def features(x, y):
        return np.kron(np.isin(range(3), y), x).astype(float)

    def f1_loss(y, other):
        return 0.0 if y == other else 1.0 - 2.0 * len({*y} & {*other}) / max(1, len(y) + len(other))

    def argmax(w, x, y, loss_weight):
        return max(every, key=lambda other: w @ features(x, other) + loss_weight * f1_loss(y, other))

    xs = list(rng.normal(size=(25, 4)))
    truth = rng.normal(size=12)
    ys = [max(every, key=lambda y: truth @ features(x, y)) for x in xs]
    task = CallbackTask(xs, ys, 12, features, f1_loss, argmax)
    result = train(Problem(task, MarginRescaling(), lam=0.003), Corrective(cached_passes=5), RunSettings(max_iter=60, tol=0.05))
    assert 0.0 <= result.certificate.gap <= 0.06 * result.certificate.primal
    assert [argmax(result.weights, x, y, 0.0) for x, y in zip(xs, ys, strict=True)] == ys


def test_sizes_that_do_not_fit_are_errors(data) -> None:
    """More inputs than outputs, no samples, a dimension that is none."""
    with pytest.raises(DataError, match="30 inputs but 29 outputs"):
        task_of((data[0], data[1][:-1]))
    with pytest.raises(DataError, match="no samples"):
        task_of(([], []))
    for dim in (0, 2.5, True):
        with pytest.raises(ParameterError, match="dim"):
            CallbackTask(*data, dim, phi, zero_one, best)


def test_fingerprint_follows_data_loss_and_weights(data) -> None:
    """Equal tasks have equal fingerprints; other labels, losses, features, sample weights or types have another."""
    same = task_of(data).fingerprint()
    assert same == task_of(data).fingerprint()
    others = [
        task_of((data[0], [*data[1][:-1], (data[1][-1] + 1) % N_CLASSES])),
        task_of(data, loss=lambda y, other: 2.0 * zero_one(y, other)),
        task_of(data, joint_feature=lambda x, y: 2.0 * phi(x, y)),
        task_of(data, sample_weight=np.arange(1.0, N + 1)),
        task_of(data, dtype=np.float32),
    ]
    assert len({same, *(t.fingerprint() for t in others)}) == 6


def test_a_small_cheat_of_argmax_is_named() -> None:
    """An output that the true one beats by 1e-4 is an error, which names the sample; 1e-9 is rounding."""

    def rounding(w, x, y, loss_weight):
        scores = (w * x + loss_weight * (np.arange(2) != y)).round(3)
        return 1 - int(scores[::-1].argmax())

    task = CallbackTask([1.0, 1.0], [0, 0], 2, lambda x, y: x * np.eye(2)[y], zero_one, rounding)
    with pytest.raises(OracleError, match=r"sample 1: argmax gave an output .* by 0\.0001"):
        task.step(np.array([1.0, 1.0 - 1e-4]), 1, 0.0)
    assert task.step(np.array([1.0, 1.0 - 1e-9]), 1, 0.0).violation == pytest.approx(-1e-9, abs=1e-15)
