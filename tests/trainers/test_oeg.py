"""Online exponentiated gradient: the dual rises under the primal at every pass, and both meet at the optimum."""

import numpy as np
import pytest
from training_cases import SMOOTH, chain_task, log_optimum, log_problem, multiclass_task, optimum

from structpred.data.sequences import PackedSequences
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.models import StructuredPredictor
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import ExtraParts, Hamming
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.semimarkov import SemiMarkovOracle
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD


def listed_task(oracle, shapes, seed, **options):
    """Parts with random features and random true outputs."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(oracle.n_parts(shape), 4)) for shape in shapes]
    outputs = [list(oracle.enumerate(shape)) for shape in shapes]
    return Task(PartFeatures(rows), oracle, [y[rng.integers(len(y))] for y in outputs], shapes, ExtraParts(), **options)


TASKS = {
    "chain": lambda seed: chain_task(seed, n=8, longest=4, weighted=True),
    "multiclass": lambda seed: multiclass_task(seed, sample_weight=np.linspace(0.1, 3.0, 20)),
    "listed matchings": lambda seed: listed_task(EnumeratedOracle.of(AssignmentOracle()), [(3,)] * 9, seed),
    "segments": lambda seed: listed_task(SemiMarkovOracle(), [(4, 2, 2), (3, 2, 3), (1, 2, 1)] * 2, seed),
}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("lam", [1.0, 0.05])
def test_the_dual_never_falls_and_never_passes_the_primal(name, lam) -> None:
    """At every pass, from several starts, on four structures with and without weights."""
    for seed, start in [(0, 12.0), (1, 0.0), (2, 3.0)]:
        trainer = OnlineEG(start=start, eta=1.0 if seed else 0.5)
        rows = train(log_problem(TASKS[name](seed), lam), trainer, RunSettings(max_iter=25, check_every=1, seed=seed)).history
        primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
        assert (dual <= primal + 1e-9 * (1.0 + np.abs(primal))).all()
        assert (np.diff(dual) >= -1e-9 * (1.0 + np.abs(dual[1:]))).all()
        assert primal[-1] - dual[-1] < primal[0] - dual[0]


def test_float32_weights_keep_the_bounds() -> None:
    """With the weights in single precision weak duality holds as well, and the dual falls by rounding at most."""
    task = chain_task(3, n=30, dtype=np.float32)
    rows = train(log_problem(task, 0.02), OnlineEG(), RunSettings(max_iter=40, check_every=1)).history
    primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
    assert (dual <= primal + 1e-6).all()
    assert (np.diff(dual) >= -1e-6).all()
    assert rows[-1]["gap"] < 1e-2 * rows[-1]["primal"]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("lam", [1.0, 0.05])
def test_oeg_lbfgs_and_scipy_reach_the_same_optimum(name, lam) -> None:
    """The objective to 1e-6, OEG and L-BFGS against SciPy on the listed log-likelihood; the weights to 1e-3."""
    task = TASKS[name](4)
    value, w = log_optimum(task, lam)
    for trainer, passes in ((OnlineEG(), 600), (LBFGS(), 150)):
        result = train(log_problem(task, lam), trainer, RunSettings(max_iter=passes, tol=1e-7, check_every=5))
        assert result.certificate.primal == pytest.approx(value, rel=1e-6)
        assert result.certificate.dual == pytest.approx(value, rel=1e-6)
        assert result.stop_reason == "tol"
        np.testing.assert_allclose(result.weights, w, atol=1e-3)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(("lam", "weight", "start"), [(0.5, 1.0, 12.0), (0.05, 2.0, 0.0)])
def test_the_margin_has_its_optimum_too(name, lam, weight, start) -> None:
    """The dual never falls, both bounds enclose the value of the quadratic program over all outputs, and come near to it."""
    pytest.importorskip("cvxpy")
    task = TASKS[name](1)
    made = Problem(task, MarginRescaling(weight), lam)
    result = train(made, OnlineEG(start=start), RunSettings(max_iter=400, tol=1e-3, check_every=2))
    value = weight * optimum(task, lam * weight)[0]  # with w = weight * v
    rows = [row for row in result.history if row["dual"] is not None]
    assert all(row["dual"] - 1e-8 <= value <= row["primal"] + 1e-8 for row in rows)
    assert (np.diff([row["dual"] for row in rows]) >= -1e-9).all()
    assert result.certificate.gap <= 2e-3 * value
    assert result.certificate.primal == pytest.approx(made.primal(result.weights))


def test_sgd_on_the_log_loss_nears_the_same_optimum() -> None:
    """Averaged subgradient descent with surrogate "log": within two hundredths of the optimal value."""
    task, lam = chain_task(5, n=10), 0.2
    value, _ = log_optimum(task, lam)
    result = train(log_problem(task, lam), SGD(), RunSettings(max_iter=400))
    assert value - 1e-9 <= result.certificate.primal <= 1.02 * value
    assert result.certificate.dual is None


def test_the_certificate_is_kept_track_of_exactly() -> None:
    """The weights are those of the dual point, and the tracked entropies are those of its distributions."""
    task, trainer = chain_task(6, weighted=True), OnlineEG()
    prob = log_problem(task, 0.05)
    state, rng = trainer.init_state(prob), np.random.default_rng(0)
    for item in rng.integers(0, len(task), 300):
        state, _ = trainer.update(prob, state, int(item))
    w = np.zeros(task.dim)
    for i, shape in enumerate(task.shapes):
        block = slice(state.offsets[i], state.offsets[i + 1])
        log_z, mu = task.oracle.marginals(state.theta[block], shape)
        assert state.entropy[i] == pytest.approx(log_z - state.theta[block] @ mu, abs=1e-9)
        error = -mu
        np.add.at(error, task.parts[i], 1.0)
        at = np.flatnonzero(error)
        w += prob.p[i] / prob.lam * task.features.adjoint(i, at, error[at]).dense(task.dim)
    np.testing.assert_allclose(state.weights.v, w, atol=1e-10)
    assert not state.scratch.any()


def test_a_sample_of_weight_two_is_two_samples() -> None:
    """At the optimum, weights stand for copies."""
    chosen = [0, 0, 1, 2, 3, 3, 4, 5]
    weighed = multiclass_task(2, n=6, sample_weight=np.bincount(chosen).astype(float))
    rows = weighed.features.values.reshape(6, 4, 3)
    blocks = [np.kron(np.eye(4), rows[k, 0]) for k in chosen]
    labels = [weighed.labels[k] for k in chosen]
    copied = Task(PartFeatures(blocks), weighed.oracle, labels, [(4,)] * 8, weighed.loss)
    settings = RunSettings(max_iter=500, tol=1e-8)
    results = [train(log_problem(task, 0.3), OnlineEG(), settings) for task in (copied, weighed)]
    assert results[0].certificate.primal == pytest.approx(results[1].certificate.primal, rel=1e-7)
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=1e-3)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", SMOOTH)
@pytest.mark.parametrize(
    "oracle",
    [MulticlassOracle(), EnumeratedOracle.of(AssignmentOracle()), SemiMarkovOracle()],
    ids=["single", "listed", "segments"],
)
def test_the_estimator_trains_any_oracle_with_marginals(trainer, oracle) -> None:
    """Through StructuredPredictor: planted weights are found, and the objective is that of L-BFGS."""
    hidden, rng = np.array([2.0, -1.0, 0.5]), np.random.default_rng(0)
    shapes = [(5, 2, 3) if isinstance(oracle, SemiMarkovOracle) else (3,)] * 60
    X = [rng.normal(size=(oracle.n_parts(shape), 3)) for shape in shapes]
    y = [oracle.argmax(x @ hidden, shape) for x, shape in zip(X, shapes, strict=True)]
    surrogate = "log" if trainer == "sgd-log" else None
    name = trainer.removesuffix("-log")
    model = StructuredPredictor(oracle, "extra_parts", name, surrogate=surrogate, C=1.0, max_iter=60)
    model.fit(X[:40], y[:40], shapes[:40])
    assert model.score(X[40:], y[40:], shapes[40:]) > 0.85
    best = StructuredPredictor(oracle, "extra_parts", "lbfgs", C=1.0, max_iter=60).fit(X[:40], y[:40], shapes[:40]).certificate_
    assert model.certificate_.primal >= best.dual
    assert model.certificate_.primal == pytest.approx(best.primal, rel=0.1 if trainer == "sgd-log" else 2e-3)


def test_what_it_cannot_do_is_refused() -> None:
    """Other surrogates, oracles without marginals, and settings out of range."""
    with pytest.raises(ParameterError, match="OnlineEG cannot minimise SlackRescaling"):
        train(Problem(chain_task(0), SlackRescaling(), 0.1), OnlineEG())
    for options in ({"start": -1.0}, {"eta": 0.0}, {"eta": 1.5}, {"max_cuts": 0}, {"start": np.inf}):
        with pytest.raises(ParameterError, match="expected start >= 0"):
            OnlineEG(**options)
    with pytest.raises(MissingCapabilityError, match="needs marginals"):
        StructuredPredictor(AssignmentOracle(), trainer="oeg").fit([np.ones((4, 2))], [[0, 1]], [(2,)])


def test_priors_are_part_of_the_certificate() -> None:
    """With finite fixed scores the dual stays below the primal and the gap closes; a margin refuses them."""
    rng = np.random.default_rng(5)
    data = PackedSequences(np.arange(13), rng.integers(0, 4, 12), rng.normal(size=12), np.array([0, 3, 7, 12]), 4)
    fixed = FixedScores(rng.normal(size=(3, 3)), rng.integers(0, 3, 12).astype(np.int32), rng.normal(size=(3, 3)))
    features = SequenceFeatures(data, 3, dtype=np.float64, fixed=fixed)
    gold = np.split(rng.integers(0, 3, 12), data.offsets[1:-1])
    task = Task(features, ChainOracle(), gold, [(n, 3) for n in data.lengths.tolist()], Hamming())
    result = train(Problem(task, LogLoss(), 0.3), OnlineEG(), RunSettings(max_iter=200, check_every=1))
    gaps = [row["gap"] for row in result.history]
    assert min(gaps) >= -1e-12
    assert gaps[-1] < 1e-6
    with pytest.raises(ParameterError, match="fixed scores"):
        Problem(task, MarginRescaling(), 0.3)
