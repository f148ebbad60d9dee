"""Training with slack rescaling: the optimum of the quadratic program, honest gaps, and every model that takes the name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slack_cases import DIRECT, all_points, chains, hinges, parts_task, slack_optimum, without

from structpred.features.parts import PartFeatures
from structpred.models import ChainLabeler, DependencyParser, StructuredPredictor
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.slack.search import search
from structpred.slack.surrogate import SlackRescaling
from structpred.slack.task_problem import TaskProblem
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD

LAM = 1.0


def true_primal(task: Task, w: Any, lam: float) -> float:
    """The objective by enumeration."""
    p = task.sample_weight / task.sample_weight.sum()
    return float(lam / 2 * np.asarray(w, float) @ np.asarray(w, float) + p @ hinges(task, w))


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", ["chains", "matchings by constraints"])
def test_bcfw_reaches_the_optimum(name: str) -> None:
    """Primal and dual meet at the optimum of the quadratic program over all outputs."""
    pytest.importorskip("cvxpy")
    task = chains(1, n=6, longest=3) if name == "chains" else parts_task(1, without(AssignmentOracle(), *DIRECT), (3,), n=6, d=3)
    value, w = slack_optimum(task, LAM)
    result = train(
        Problem(task, SlackRescaling(), LAM), BCFW(averaged=False), RunSettings(max_iter=400, tol=1e-3, check_every=50)
    )
    assert result.certificate.proven
    assert result.certificate.primal == pytest.approx(value, rel=3e-3)
    assert result.certificate.dual == pytest.approx(value, rel=3e-3)
    assert result.certificate.dual <= value * (1 + 1e-7) <= result.certificate.primal * (1 + 1e-6)
    np.testing.assert_allclose(result.weights, w, atol=0.06)


@pytest.mark.parametrize("trainer", [BCFW, SGD, MIRA, AveragedPerceptron])
def test_trainers_take_the_surrogate_unchanged(trainer: Any) -> None:
    """Each runs; where it has bounds they hold by enumeration; and the hinge falls."""
    task = chains(2, n=10)
    result = train(Problem(task, SlackRescaling(), 0.3), trainer(), RunSettings(max_iter=20))
    assert trainer is AveragedPerceptron or hinges(task, result.weights).mean() < hinges(task, np.zeros(task.dim)).mean()
    if result.certificate.primal is not None:
        assert result.certificate.primal == pytest.approx(true_primal(task, result.weights, 0.3), rel=1e-9)
        assert result.certificate.dual is None or result.certificate.dual <= result.certificate.primal
    else:
        assert trainer is AveragedPerceptron


@pytest.mark.parametrize("method", ["auto", "angular"])
def test_block_gaps_add_up_to_the_duality_gap(method: str) -> None:
    """sum_i lam (w_i - w_s) . w - l_i + l_s = primal - dual at the iterate, when the search is exact."""
    task = parts_task(3, without(AssignmentOracle(), *DIRECT), (4,))
    trainer, problem = BCFW(averaged=False), Problem(task, SlackRescaling(method), 0.3)
    state, rng = trainer.init_state(problem), np.random.default_rng(0)
    for item in rng.integers(0, len(task), 100):
        state, _ = trainer.update(problem, state, int(item))
    total = 0.0
    for i in range(len(task)):
        step = problem.surrogate.term(task, state.weights.v, i)
        w_i = np.zeros(task.dim)
        np.add.at(w_i, *state.blocks.block(i))
        w_s = problem.p[i] / problem.lam * step.difference.dense(task.dim)
        total += problem.lam * (w_i - w_s) @ state.weights.v - state.offsets[i] + problem.p[i] * step.loss
    primal, dual = trainer.objective(problem, state)
    assert total == pytest.approx(primal - dual, abs=1e-10)
    assert primal == pytest.approx(true_primal(task, state.weights.v, 0.3), abs=1e-10)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("method", ["hull", "bisecting", "binary"])
def test_gaps_of_plain_searches_do_not_lie(method: str) -> None:
    """Searches that miss outputs: the gap reported is never below the true one, while the gap of what was found is, somewhere."""
    lies = 0
    for seed in range(3):
        task = parts_task(seed, AssignmentOracle(), (4,), n=10, d=6)
        trainer, surrogate = BCFW(averaged=False), SlackRescaling(method)
        problem = Problem(task, surrogate, 0.05)
        state, rng = trainer.init_state(problem), np.random.default_rng(seed)
        for _ in range(8):
            for item in rng.permutation(len(task)):
                state, _ = trainer.update(problem, state, int(item))
            w = state.weights.v
            primal, dual = trainer.objective(problem, state)
            true_gap = true_primal(task, w, 0.05) - dual
            assert primal - dual >= true_gap - 1e-10
            found = np.array([search(TaskProblem(task, w, i), method).phi for i in range(len(task))])
            lies += bool(0.025 * w @ w + found.mean() - dual < true_gap - 1e-9)
            blocks = [state.gaps[i] for i in range(len(task))]
            assert min(blocks) >= 0.0
    assert lies


def test_block_gaps_of_plain_searches_are_safe() -> None:
    """The gap that BCFW keeps for a block right after visiting it counts what the search may have missed."""
    task = parts_task(0, AssignmentOracle(), (4,), n=10, d=6)
    trainer, problem = BCFW(averaged=False), Problem(task, SlackRescaling("hull"), 0.05)
    state, rng = trainer.init_state(problem), np.random.default_rng(0)
    for item in rng.integers(0, len(task), 60).tolist():
        w_i, l_i, w = np.zeros(task.dim), float(state.offsets[item]), state.weights.v.copy()
        np.add.at(w_i, *state.blocks.block(item))
        truth = problem.lam * w_i @ w - l_i + problem.p[item] * hinges(task, w)[item]
        state, _ = trainer.update(problem, state, item)
        assert state.gaps[item] >= truth - 1e-10


class Recorded(ChainLabeler):
    """Keeps the task that it was trained on."""

    def _train(self, task: Any, dev: Any, names: Any = None) -> Any:
        type(self).task = task
        return super()._train(task, dev, names)


@pytest.mark.slow
def test_chain_labeler_reaches_the_enumerated_optimum() -> None:
    """ChainLabeler(surrogate="slack") on a small corpus: its certificate encloses the optimum of the quadratic program."""
    pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(k), 2)) for k in rng.integers(1, 4, 8)]
    y = [rng.choice(["a", "b", "c"], len(x)).tolist() for x in X]
    model = Recorded(C=0.125, max_iter=1500, tol=1e-4, surrogate="slack").fit(X, y)
    lam = 1.0 / (0.125 * 8)
    value, w = slack_optimum(Recorded.task, lam)
    certificate = model.certificate_
    assert certificate.proven
    assert certificate.dual <= value * (1 + 1e-6)
    assert certificate.primal >= value * (1 - 1e-6)
    assert certificate.primal == pytest.approx(value, rel=2e-4)
    np.testing.assert_allclose(model.coef_, w, atol=0.02)
    assert true_primal(Recorded.task, model.coef_, lam) == pytest.approx(certificate.primal, rel=1e-5)
    margin = ChainLabeler(C=0.125, max_iter=200).fit(X, y)
    assert np.abs(margin.coef_ - model.coef_).max() > 0.02  # another objective


@pytest.mark.slow
def test_chain_labeler_with_rules_weights_and_files(tmp_path: Path) -> None:
    """Constraints, token weights, prediction, saving and a second fit work as with any other surrogate."""
    X = [[{"w": w} for w in s.split()] for s in ("the cat sat", "a dog ran off", "the dog sat")]
    y = [["B-N", "I-N", "O"], ["B-N", "I-N", "O", "O"], ["B-N", "I-N", "O"]]
    token_weight = [[0.5] * len(s) for s in X]
    model = ChainLabeler(surrogate="slack", constraints="iob2", max_iter=50).fit(X, y)
    weighed = ChainLabeler(surrogate="slack", max_iter=30).fit(X, y, token_weight=token_weight)
    assert [p.tolist() for p in model.predict(X)] == y == [p.tolist() for p in weighed.predict(X)]
    assert model.certificate_.proven
    model.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    assert loaded.fit(X, y).coef_.tobytes() == model.coef_.tobytes()


def test_a_surrogate_object_comes_back_from_a_file(tmp_path: Path) -> None:
    """SlackRescaling with settings of its own is kept in a model file."""
    X, y = [np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]]
    surrogate = SlackRescaling("hull", rel=0.01, max_queries=5, cache_size=2)
    model = ChainLabeler(surrogate=surrogate, max_iter=3).fit(X, y)
    model.save(tmp_path / "m.spz")
    loaded: Any = ChainLabeler.load(tmp_path / "m.spz").surrogate
    kept = ("method", "relaxed", "rel", "abs", "max_queries", "cache_size")
    assert [getattr(loaded, name) for name in kept] == [getattr(surrogate, name) for name in kept]


def test_a_resumed_run_ends_at_the_same_weights(tmp_path: Path) -> None:
    """A run cut in two by a checkpoint gives the weights of one that was not, to the last bit."""
    task = chains(4, n=8)
    problem = Problem(task, SlackRescaling(), 0.3)
    whole = train(problem, BCFW(), RunSettings(max_iter=6))
    file = tmp_path / "run.ckpt"
    train(problem, BCFW(), RunSettings(max_iter=3, checkpoint=file))
    resumed = train(Problem(task, SlackRescaling(), 0.3), BCFW(), RunSettings(max_iter=6, checkpoint=file, resume=True))
    assert resumed.weights.tobytes() == whole.weights.tobytes()


@pytest.mark.slow
def test_structured_predictor_takes_the_name() -> None:
    """Matchings, by plain queries: a valid certificate, and the labels are learnt."""
    rng = np.random.default_rng(0)
    X, y, w = [], [], rng.normal(size=6)
    for _ in range(20):
        X.append(rng.normal(size=(16, 6)))
        y.append(AssignmentOracle().argmax(X[-1] @ w, (4,)))
    model = StructuredPredictor(AssignmentOracle(), surrogate="slack", C=1.0, max_iter=30).fit(X, y, [(4,)] * 20)
    task = Task(PartFeatures(X), EnumeratedOracle.of(AssignmentOracle()), y, [(4,)] * 20, model_loss())
    assert model.certificate_.proven
    assert model.certificate_.primal >= true_primal(task, model.coef_, 1 / 20) * (1 - 1e-6)
    assert model.certificate_.dual <= true_primal(task, model.coef_, 1 / 20)
    assert model.score(X, y, [(4,)] * 20) > 0.95


def model_loss() -> Any:
    """The default loss of the estimators."""
    from structpred.objectives.part_losses import Hamming

    return Hamming()


def test_dependency_parser_takes_the_name() -> None:
    """Arcs by plain queries, relations by counted errors: both are trained, and their certificates hold together."""
    X = [
        [{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}],
        [{"form": "the", "upos": "DET"}, {"form": "dog", "upos": "NOUN"}, {"form": "barks", "upos": "VERB"}],
    ]
    y = [[(2, "nsubj"), (0, "root")], [(2, "det"), (3, "nsubj"), (0, "root")]]
    parser = DependencyParser("bcfw", surrogate="slack", C=1.0, max_iter=20).fit(X, y)
    assert [tree.heads.tolist() for tree in parser.predict(X)] == [[2, 0], [2, 3, 0]]
    assert [tree.labels for tree in parser.predict(X)] == [["nsubj", "root"], ["det", "nsubj", "root"]]
    for certificate in (parser.certificate_, parser.label_certificate_):
        assert certificate is not None
        assert certificate.proven
        assert certificate.dual <= certificate.primal


def test_slack_tells_outputs_of_one_margin_apart() -> None:
    """Where a small error violates the margin as much as a large one, the piece is the large one: loss times h decides."""
    task = chains(7, n=10)
    w = np.zeros(task.dim)
    for i in range(len(task)):
        step = SlackRescaling().term(task, w, i)
        outputs, _, g = all_points(task, w, i)
        assert step.loss == g.max() == step.violation
        assert len(outputs) == 3 ** len(task.labels[i])
