"""Inference: blocks, threads and compiled code give what single calls give; fixed scores and errors are in one place."""

import pickle
import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from instance_kinds import KINDS, LENGTHS, N, chains, rows_of_parts, weights

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import InfeasibleError, OracleError
from structpred.features.fixed_scores import FixedScores
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task import inference
from structpred.task.fast import welds
from structpred.task.inference import Inference, part_scores
from structpred.task.task import Task

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("block", [1 << 15, 1])
def test_decoding_is_argmax_one_by_one(kind: str, n_jobs: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels and where they begin are those of single calls, in large and small blocks, on one thread and on two."""
    monkeypatch.setattr(inference, "BLOCK", block)
    features, oracle, shapes = KINDS[kind]()
    w = weights(features)
    expected = [oracle.argmax(part_scores(features, w, i), shape) for i, shape in enumerate(shapes)]
    for compiled in (True, False):
        labels, ends = Inference(features, oracle, shapes, n_jobs=n_jobs, compiled=compiled).decode(w)
        assert labels.tolist() == np.concatenate(expected).tolist()
        assert ends.tolist() == np.cumsum([0, *map(len, expected)]).tolist()


@every_kind
@pytest.mark.parametrize("scale", [1.0, 0.37])
def test_scores_of_blocks_are_those_of_instances(kind: str, scale: float) -> None:
    """To the last bit, fixed scores included."""
    features, oracle, shapes = KINDS[kind]()
    w, whole = weights(features), Inference(features, oracle, shapes)
    for first, last, places in whole.blocks(2, 8):
        found = whole.score_block(w, scale, first, last, places)
        expected = [part_scores(features, w, i, scale) for i in range(first, last)]
        assert found.tobytes() == np.concatenate(expected).tobytes()


@every_kind
def test_sweeps_in_blocks_are_the_steps(kind: str) -> None:
    """Violations of all instances equal those of plain steps: bit for bit where no kernel is welded to the features."""
    features, oracle, shapes = KINDS[kind]()
    w = weights(features)
    gold = Inference(features, oracle, shapes).outputs(weights(features)[::-1].copy())
    plain, compiled = (Task(features, oracle, gold, shapes, Hamming(), compiled=flag) for flag in (False, True))
    for loss_weight in (0.0, 1.0, 9.0):
        expected = np.array([plain.step(w, i, loss_weight).bound for i in range(N)])
        assert plain.violations(w, loss_weight).tobytes() == expected.tobytes()
        found = compiled.violations(w, loss_weight)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert "chains" in kind or found.tobytes() == expected.tobytes()
        assert expected.max() > 0.0


def test_compiled_steps_follow_the_weights() -> None:
    """Weights of another type, changed in place, loss weights that are whole numbers: the steps are those of a new task."""
    features, oracle, shapes = chains()
    gold = [np.zeros(t, np.int64) for t in LENGTHS]
    double, single = weights(features), weights(features)[::-1].astype(np.float32)
    task = Task(features, oracle, gold, shapes, Hamming())
    for w, loss_weight in ((double, 1), (single, 0.5), (double, 0.5), (single, 2)):
        w[:3] += 1.0
        for i in (0, 3):
            new = Task(features, oracle, gold, shapes, Hamming()).step(w.copy(), i, float(loss_weight))
            found = task.step(w, i, loss_weight)
            assert found.violation == new.violation > 0.0
            assert [x.tobytes() for x in found.difference] == [x.tobytes() for x in new.difference]


def test_threads_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """For two threads there are several blocks each, unless they would be tiny; one thread gets blocks as large as may be."""
    whole = Inference(*rows_of_parts())
    assert len(list(whole.blocks(0, N, 1))) == len(list(whole.blocks(0, N, 2))) == 1
    monkeypatch.setattr(inference, "TINY", 1)
    assert len(list(whole.blocks(0, N, 1))) == 1
    assert len(list(whole.blocks(0, N, 2))) >= 2 * inference.PIECES


@pytest.mark.parametrize("compiled", [True, False])
def test_what_is_forbidden_altogether_is_named(compiled: bool) -> None:
    """Where fixed scores leave no output the error has the sample and says what is missing."""
    features, oracle, shapes = chains()
    rows = np.array([[0.0] * 3, [FORBIDDEN] * 3])
    row_of = np.zeros(sum(LENGTHS), np.int32)
    row_of[sum(LENGTHS[:5]) + 1] = 1
    features = SequenceFeatures(features.data, 3, fixed=FixedScores(rows, row_of, np.zeros((3, 3))))
    with pytest.raises(InfeasibleError, match="sample 5: no label sequence satisfies the constraints"):
        Inference(features, oracle, shapes, compiled=compiled).decode(np.zeros(features.dim, np.float32))


def test_what_a_subclass_changes_is_asked() -> None:
    """Calls for whole blocks do not stand in for a method that a subclass, or an object, has changed."""

    class Last(MulticlassOracle):
        def argmax(self, scores: Any, shape: Any) -> Any:
            return np.array([shape[0] - 1])

    class Doubled(PartFeatures):
        def scores(self, w: Any, i: int) -> Any:
            return 2.0 * super().scores(w, i)

    _, _, shapes = rows_of_parts()
    features = Doubled([np.ones((n, 4)) for (n,) in shapes])
    asked = Inference(features, Last(), shapes)
    assert not asked.batched
    assert Inference(features, MulticlassOracle(), shapes).batched
    assert asked.score_block(np.ones(4), 1.0, 0, 1, np.array([0, 2])).tolist() == [8.0, 8.0]
    assert asked.decode(np.ones(4))[0].tolist() == [n - 1 for (n,) in shapes]
    features.scores = lambda w, i: np.full(shapes[i][0], 3.0)  # type: ignore[method-assign]
    assert asked.score_block(np.ones(4), 1.0, 0, 1, np.array([0, 2])).tolist() == [3.0, 3.0]


def test_marginals_and_the_k_best_name_the_sample() -> None:
    """Expected counts sum to one per position, the best of the k best is the decoded one, and what is raised has its sample."""
    features, oracle, shapes = chains()
    w, whole = weights(features), Inference(features, oracle, shapes)
    for mu, best, first, (t, k) in zip(whole.marginals(w), whole.kbest(w, 2), whole.outputs(w), shapes, strict=True):
        np.testing.assert_allclose(mu[: t * k].reshape(t, k).sum(axis=1), 1.0)
        assert best[0][0].tolist() == first.tolist()
        assert best[0][1] >= best[1][1]

    class Failing(ChainOracle):
        def marginals(self, scores: Any, shape: Any) -> Any:
            raise ZeroDivisionError("by hand") if shape[0] == 5 else InfeasibleError("none")

    failing = Inference(features, Failing(), shapes)
    with pytest.raises(InfeasibleError, match="sample 0: none"):
        list(failing.marginals(w))
    with pytest.raises(OracleError, match=r"sample 3: Failing\.marginals raised ZeroDivisionError"):
        failing.log_partition(failing.scores(w, 3), 3)


class Zeros:
    """A pair that finds nothing but zeros."""

    def __init__(self, features: Any, oracle: Any) -> None:
        pass

    def decode(self, w: Any, n_jobs: int) -> Any:
        """Zeros."""
        return np.zeros(N, np.int64), np.arange(N + 1)


def test_compiled_code_is_registered_from_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of one's own serves features and oracles that meet; the core finds chains without importing them."""
    features, oracle, shapes = rows_of_parts()
    assert welds.find("pair", *chains()[:2]) is not None
    assert welds.find("pair", features, oracle) is None

    names = [f"{kind.__module__}:{kind.__qualname__}" for kind in (Zeros, type(features), type(oracle))]
    own = welds.Weld("pair", names[0], names[1], ("scores",), (names[2],), ("argmax",))
    monkeypatch.setattr(welds, "TABLE", list(welds.TABLE))
    welds.register(own)
    assert not Inference(features, oracle, shapes).decode(weights(features))[0].any()
    assert Inference(features, oracle, shapes, compiled=False).decode(weights(features))[0].any()

    class Changed(type(oracle)):  # type: ignore[misc]
        def argmax(self, scores: Any, shape: Any) -> Any:
            return super().argmax(scores, shape)

    assert Inference(features, Changed(), shapes).decode(weights(features))[0].any()


def test_to_find_that_no_code_was_written_imports_nothing() -> None:
    """Classes are told by their names, so features and oracles of others load none of those that have compiled code."""
    code = """
import sys
from structpred.task.fast import welds

assert welds.TABLE
for weld in welds.TABLE:
    assert welds.find(weld.work, object(), object()) is None
ours = {weld.maker.split(":")[0] for weld in welds.TABLE}
ours |= {name.split(":")[0] for weld in welds.TABLE for name in (weld.features, *weld.oracles)}
assert not ours & set(sys.modules), ours & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_each_line_of_compiled_code_names_what_there_is() -> None:
    """Classes, makers and methods that the table names exist: a name that was changed elsewhere would switch code off."""
    for weld in welds.TABLE:
        found = [getattr(import_module(name.split(":")[0]), name.split(":")[1]) for name in (weld.maker, weld.features)]
        assert callable(found[0])
        assert all(hasattr(found[1], method) for method in weld.feature_methods), weld
        for name in weld.oracles:
            kind = getattr(import_module(name.split(":")[0]), name.split(":")[1])
            assert f"{kind.__module__}:{kind.__qualname__}" == name
        assert f"{found[1].__module__}:{found[1].__qualname__}" == weld.features


@every_kind
def test_tasks_pickle_small_also_after_use(kind: str) -> None:
    """A copy takes the same steps, and what has been used is no larger than what has not."""
    features, oracle, shapes = KINDS[kind]()
    w = weights(features)
    gold = Inference(features, oracle, shapes).outputs(-w)
    task = Task(features, oracle, gold, shapes, Hamming())
    before = len(pickle.dumps(task))
    for i in range(N):
        task.step(w, i, 1.0)
    task.violations(w, 1.0)
    features.spread(0, np.ones(features.n_parts(0)), features.scratch())
    assert len(pickle.dumps(task)) <= before + 100
    copy = pickle.loads(pickle.dumps(task))
    for i in range(N):
        step, other = task.step(w, i, 1.0), copy.step(w, i, 1.0)
        assert step.difference.values.tobytes() == other.difference.values.tobytes()
        assert (step.loss, step.violation) == (other.loss, other.violation)
