"""Compiled steps of trees are the plain calls, to the last bit: every trainer, both kinds of trees, weights, pruning, threads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from structpred.core.costs import GridCosts
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.sparse import SparseVector
from structpred.errors import InfeasibleError, OracleError
from structpred.features.arcs import ArcCandidates, ArcFeatures
from structpred.features.fixed_scores import FixedParts
from structpred.features.parts import PartFeatures
from structpred.fused import _tree_kernels
from structpred.fused.trees import TreeSteps
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.io.templates.arc_template_sets import default_templates
from structpred.io.treebanks.treebank import Sentence, Treebank
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.task import inference
from structpred.task.fast.part_steps import PartSteps
from structpred.task.plain_steps import PlainSteps
from structpred.task.task import Task
from structpred.trainers.arow import AROW
from structpred.trainers.bcfw import BCFW
from structpred.trainers.corrective import Corrective
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.passive_aggressive import PassiveAggressive
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD

LENGTHS = (1, 2, 5, 9, 26, 3, 4, 7, 2, 6)
TREES = {
    "arborescences": ArborescenceOracle(),
    "arborescences, several roots": ArborescenceOracle(single_root=False),
    "projective": ProjectiveOracle(),
    "projective, several roots": ProjectiveOracle(single_root=False),
}
MARGIN: dict[str, tuple[Callable[[], Any], float]] = {
    "perceptron": (AveragedPerceptron, 0.0),
    "mira": (MIRA, 1.0),
    "sgd": (SGD, 1.0),
    "sgd-last": (lambda: SGD(averaged=False), 1.0),
    "bcfw": (BCFW, 1.0),
    "corrective": (lambda: Corrective(corners=4), 1.0),
    "pa": (PassiveAggressive, 0.0),
    "arow": (AROW, 0.0),
}
RULES = ("none", "token weights", "pruned", "forbidden", "all")
every_kind = pytest.mark.parametrize("kind", TREES)


class Costly:
    """Every wrong head costs 2.5."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> GridCosts:
        return GridCosts(2.5)


class FarCosts:
    """A wrong head costs as much as it is far from the right one: no cost is the same for all."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> GridCosts:
        heads = np.arange(shape[0] + 1)
        return GridCosts(np.abs(np.subtract.outer(heads, heads)).astype(float))


def words(seed: int, lengths: tuple[int, ...]) -> Any:
    """Random sentences with few different words and tags, so that features are shared and collide."""
    rng = np.random.default_rng(seed)
    made = []
    for n in lengths:
        tags = rng.choice(["NOUN", "VERB", "PUNCT", "ADJ"], n).tolist()
        forms, lemmas = ([f"{letter}{k}" for k in rng.integers(0, 5, n)] for letter in "fl")
        made.append(Sentence(forms, lemmas, tags, [f"X{tag}" for tag in tags], ["_"] * n))
    treebank = Treebank.of(made)
    return ArcFeaturizer().fit(treebank).transform(treebank)


def tree_task(
    oracle: Any,
    rules: str = "none",
    *,
    seed: int = 0,
    lengths: tuple[int, ...] = LENGTHS,
    dtype: Any = np.float32,
    **options: Any,
) -> Task:
    """Random sentences and random true trees; rules: "token weights", "pruned", "forbidden", "all" of them, or "none"."""
    rng = np.random.default_rng(seed)
    data = words(seed, lengths)
    gold = [oracle.argmax(rng.normal(size=n * (n + 1)), (n,)) for n in lengths]
    starts, listed, fixed = [0], [], []
    for n, heads in zip(lengths, gold, strict=True):
        keep = rng.random((n, n + 1)) < 0.6
        keep[np.arange(n), heads] = True
        for m in range(n):
            listed += np.flatnonzero(keep[m]).tolist()
            starts.append(len(listed))
        barred = np.where(rng.random((n, n + 1)) < 0.3, FORBIDDEN, 0.0)
        barred[np.arange(n), heads] = 0.0
        fixed.append(barred.ravel() if n % 2 else None)
    templates = default_templates()
    templates = [t for t in templates if "feats" not in t.attributes]
    features = ArcFeatures(
        data,
        templates,
        [4 + t % 6 for t in range(len(templates))],
        dtype=dtype,
        candidates=ArcCandidates(np.array(starts), np.array(listed, np.int32)) if rules in ("pruned", "all") else None,
        fixed=FixedParts(fixed) if rules in ("forbidden", "all") else None,
    )
    options.setdefault("loss", Hamming())
    options.setdefault("sample_weight", rng.uniform(0.3, 2.0, len(lengths)))
    weights = [rng.uniform(0.3, 2.0, n) for n in lengths] if rules in ("token weights", "all") else None
    return Task(features, oracle, gold, [(n,) for n in lengths], token_weights=weights, **options)


def pair(oracle: Any, rules: str = "none", **options: Any) -> tuple[Task, Task]:
    """The task with compiled steps, and the same one without."""
    compiled, plain = (tree_task(oracle, rules, compiled=flag, **options) for flag in (True, False))
    assert isinstance(compiled.steps, TreeSteps)
    assert type(plain.steps) is PlainSteps
    return compiled, plain


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("loss", [Hamming(), Costly()], ids=["hamming", "2.5"])
def test_each_step_is_the_plain_one(kind: str, rules: str, loss: Any) -> None:
    """Difference, loss and violation of every sentence are equal bit for bit, at any weights, scale and weight of the loss."""
    compiled, plain = pair(TREES[kind], rules, loss=loss)
    rng = np.random.default_rng(1)
    moved = 0
    for size in (0.0, 1e-6, 0.3, 1e5):
        w = (size * rng.normal(size=compiled.dim)).astype(np.float32)
        for scale in (1.0, 0.37):
            for loss_weight in (0.0, 1.0, 17.0):
                for i in range(len(plain)):
                    a, b = compiled.step(w, i, loss_weight, scale), plain.step(w, i, loss_weight, scale)
                    assert a.difference.indices.tobytes() == b.difference.indices.tobytes()
                    assert a.difference.values.tobytes() == b.difference.values.tobytes()
                    assert (a.loss, a.violation, a.bound) == (b.loss, b.violation, b.bound)
                    moved += a.loss > 0
    assert moved > 100


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("trainer", MARGIN)
@pytest.mark.parametrize("rules", ["none", "all"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_margin_trainers_end_with_the_same_weights(kind: str, trainer: str, rules: str, dtype: Any) -> None:
    """Weights and dual values are bit-identical with and without compiled steps; the primal is to rounding."""
    make, loss_weight = MARGIN[trainer]
    results = [
        train(Problem(task, MarginRescaling(loss_weight), 0.05), make(), RunSettings(max_iter=4, check_every=2, seed=3))
        for task in pair(TREES[kind], rules, dtype=dtype)
    ]
    assert results[0].weights.dtype == dtype
    assert np.abs(results[0].weights).sum() > 0
    assert results[0].weights.tobytes() == results[1].weights.tobytes()
    assert results[0].certificate.dual == results[1].certificate.dual
    if results[0].certificate.primal is not None:
        assert results[0].certificate.primal == pytest.approx(results[1].certificate.primal, rel=1e-12)


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("rules", ["none", "all"])
def test_random_fields_end_with_the_same_weights(kind: str, rules: str) -> None:
    """SGD and OEG bit for bit; L-BFGS, whose gradient is summed arc by arc or sentence by sentence, to rounding."""
    for trainer, exact in ((SGD(), True), (OnlineEG(), True), (LBFGS(), False)):
        results = [
            train(Problem(task, LogLoss(), 0.05), trainer, RunSettings(max_iter=4, seed=3))
            for task in pair(TREES[kind], rules, dtype=np.float64)
        ]
        ours, others = (result.weights for result in results)
        assert np.abs(ours).max() > 1e-3
        if exact:
            assert ours.tobytes() == others.tobytes()
        np.testing.assert_allclose(ours, others, rtol=0, atol=1e-12)
        assert results[0].certificate.primal == pytest.approx(results[1].certificate.primal, rel=1e-12)


@pytest.mark.mostly_slow
@every_kind
@pytest.mark.parametrize("rules", RULES)
def test_sweeps_agree_with_the_steps(kind: str, rules: str) -> None:
    """Violations and log losses of all sentences, and the gradient of those, are what single plain calls give."""
    compiled, plain = pair(TREES[kind], rules, dtype=np.float64)
    rng = np.random.default_rng(2)
    w, shares = 0.5 * rng.normal(size=compiled.dim), rng.uniform(0.1, 2.0, len(plain))
    for loss_weight in (0.0, 1.0, 9.0):
        found = compiled.violations(w, loss_weight)
        np.testing.assert_allclose(found, plain.violations(w, loss_weight), rtol=1e-12, atol=1e-9)
        assert found.max() > 1.0
    (values, gradient), (others, expected) = compiled.log_losses(w, shares), plain.log_losses(w, shares)
    np.testing.assert_allclose(values, others, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["arborescences", "projective"])
def test_the_gradient_of_log_losses_is_that_of_finite_differences(kind: str) -> None:
    """Central differences of the summed log losses along random directions."""
    task = tree_task(TREES[kind], "pruned", dtype=np.float64)
    rng = np.random.default_rng(3)
    w, shares = 0.3 * rng.normal(size=task.dim), rng.uniform(0.1, 2.0, len(task))
    gradient = task.log_losses(w, shares)[1]
    for _ in range(5):
        along = rng.normal(size=task.dim)
        above, below = (float(shares @ task.log_losses(w + step * along, shares)[0]) for step in (1e-5, -1e-5))
        assert (above - below) / 2e-5 == pytest.approx(float(gradient @ along), rel=1e-6, abs=1e-6)


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("rules", RULES)
def test_threads_and_blocks_change_nothing(kind: str, rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The violations of a sweep are bit-identical on 1, 2 and 8 threads, in large blocks and in small ones."""
    lengths = LENGTHS * 7
    w = 0.5 * np.random.default_rng(4).normal(size=tree_task(TREES[kind]).dim)
    found = []
    for block in (inference.BLOCK, 40, 1):
        monkeypatch.setattr(inference, "BLOCK", block)
        for n_jobs in (1, 2, 8):
            task = tree_task(TREES[kind], rules, lengths=lengths, n_jobs=n_jobs)
            assert isinstance(task.steps, TreeSteps)
            found.append(task.violations(w, 1.0).tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("trainer", [BCFW, LBFGS])
def test_training_does_not_depend_on_threads(trainer: Any) -> None:
    """Weights, primal and dual values of trainers that sweep are bit-identical on 1, 2 and 8 threads."""
    found = []
    for n_jobs in (1, 2, 8):
        problem = Problem(
            tree_task(ArborescenceOracle(), n_jobs=n_jobs), MarginRescaling() if trainer is BCFW else LogLoss(), 0.05
        )
        result = train(problem, trainer(), RunSettings(max_iter=5, check_every=1))
        found.append((result.weights.tobytes(), result.certificate, [row["primal"] for row in result.history]))
    assert found[0] == found[1] == found[2]


def test_losses_without_one_cost_keep_to_the_plain_calls() -> None:
    """A loss that does not cost the same for every wrong head has no compiled steps, openly; its steps find it all the same."""
    task = tree_task(ArborescenceOracle(), loss=FarCosts())
    assert type(task.steps) is PartSteps
    step = task.step(np.zeros(task.dim, np.float32), 4, 1.0)
    assert step.loss > 26  # at zero weights it is the loss that is maximised: farther away than one place each


@every_kind
def test_other_features_keep_to_the_plain_calls(kind: str) -> None:
    """Trees over rows of numbers have no compiled steps."""
    features = PartFeatures([np.eye(6), np.eye(6)])
    task = Task(features, TREES[kind], [[2, 0], [0, 1]], [(2,), (2,)], Hamming())
    assert type(task.steps) is PartSteps


@every_kind
def test_sentences_without_a_tree_are_named(kind: str) -> None:
    """A sweep over a sentence whose constraints leave no tree raises InfeasibleError with its number."""
    n = LENGTHS[6]
    barred = np.zeros((n, n + 1))
    barred[:, 0] = FORBIDDEN
    for n_jobs in (1, 2):
        task = tree_task(TREES[kind], n_jobs=n_jobs)
        assert isinstance(task.features, ArcFeatures)
        task.features.fixed = FixedParts([None] * 6 + [barred.ravel()] + [None] * 3)
        with pytest.raises(InfeasibleError, match="sample 6: no tree satisfies the constraints"):
            task.violations(np.zeros(task.dim), 1.0)


@pytest.mark.parametrize("compiled", [True, False])
def test_taken_sentences_are_the_steps_of_the_whole(compiled: bool) -> None:
    """Pruned arcs, fixed scores and token weights go with their sentences, in any order, with repeats."""
    whole = tree_task(TREES["projective"], "all", compiled=compiled)
    rows, w = [9, 3, 3, 0], np.random.default_rng(1).normal(size=whole.dim).astype(np.float32)
    part = whole.take(rows)
    assert part.violations(w, 1.0).tobytes() == whole.violations(w, 1.0)[rows].tobytes()
    for k, i in enumerate(rows):
        a, b = part.step(w, k, 1.0), (whole.take([i]) if compiled else whole).step(w, 0 if compiled else i, 1.0)
        assert (a.difference.values.tobytes(), a.loss, a.violation) == (b.difference.values.tobytes(), b.loss, b.violation)


def test_a_step_whose_two_sums_differ_is_taken_by_plain_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled step compares what the difference of features is worth with the scores; the plain one names what differs."""
    task, asked = tree_task(ArborescenceOracle()), []
    w, right, plain = np.random.default_rng(1).normal(size=task.dim).astype(np.float32), _tree_kernels.step_tree, PlainSteps.one
    monkeypatch.setattr(PlainSteps, "one", lambda *given: asked.append(given[2]) or plain(*given))
    task.step(w, 3, 1.0)
    assert asked == []

    def bent(*given: Any) -> Any:
        finite, n, loss, product, gap, size = right(*given)
        return finite, n, loss, 1.01 * product, gap, size

    monkeypatch.setattr(_tree_kernels, "step_tree", bent)
    task.step(w, 3, 1.0)
    assert asked == [3]
    monkeypatch.setattr(task.features, "adjoint", lambda i, parts, counts: SparseVector(parts, 1.01 * counts))
    with pytest.raises(OracleError, match=r"sample 3: .*ArcFeatures.*check_feature_map"):
        task.step(w, 3, 1.0)
