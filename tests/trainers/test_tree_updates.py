"""Many updates towards trees in one compiled call: the bits of single updates, and single ones where something was changed."""

from typing import Any

import numpy as np
import pytest

from structpred.core.fixed_scores import FORBIDDEN
from structpred.data.sequences import AttributedSentences
from structpred.features.arcs import ArcCandidates, ArcFeatures
from structpred.features.fixed_scores import FixedParts
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.io.templates.arc_template_sets import parse_templates
from structpred.io.treebanks.treebank import Sentence, Treebank
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.task.task import Task
from structpred.trainers.arow import AROW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD

TEMPLATES = """
h.upos m.form | direction distance
h.form m.upos | between punctuation
h.upos m.upos | verbs
h.form h.upos m.form m.upos |
h.upos-1 m.upos+1 | distance
h.form | distance
m.upos | direction
"""
LENGTHS = (*range(1, 20), 40, 3, 7)


def words(rng: np.random.Generator) -> AttributedSentences:
    """Random sentences with few different words and tags, so that features are shared and collide."""
    made = []
    for n in LENGTHS:
        tags = rng.choice(["NOUN", "VERB", "PUNCT", "ADJ"], n).tolist()
        made.append(Sentence([f"f{k}" for k in rng.integers(0, 5, n)], ["_"] * n, tags, ["_"] * n, ["_"] * n))
    treebank = Treebank.of(made)
    return ArcFeaturizer().fit(treebank).transform(treebank)


def tree_task(oracle: Any, rule: str = "") -> Task:
    """Random sentences and trees; rule: "pruned", "weighted" words, "fixed" scores, or nothing."""
    rng = np.random.default_rng(0)
    data, options = words(rng), {}
    gold = [oracle.argmax(rng.normal(size=n * (n + 1)), (n,)) for n in LENGTHS]
    if rule == "pruned":
        keep = [np.flatnonzero((rng.random(len(y) + 1) < 0.6) | (np.arange(len(y) + 1) == h)) for y in gold for h in y]
        starts = np.cumsum([0, *map(len, keep)])
        options["candidates"] = ArcCandidates(starts, np.concatenate(keep).astype(np.int32))
    if rule == "fixed":
        barred = [np.where(rng.random((n, n + 1)) < 0.3, FORBIDDEN, 0.0) for n in LENGTHS]
        for own, heads in zip(barred, gold, strict=True):
            own[np.arange(len(heads)), heads] = 0.0
        options["fixed"] = FixedParts([own.ravel() if len(own) % 2 else None for own in barred])
    templates = parse_templates(TEMPLATES)
    features = ArcFeatures(data, templates, [4 + t % 6 for t in range(len(templates))], **options)
    weights = [rng.uniform(0.3, 2.0, n) for n in LENGTHS] if rule == "weighted" else None
    return Task(features, oracle, gold, [(n,) for n in LENGTHS], Hamming(), token_weights=weights)


def made(task: Task, trainer: Any) -> list[Any]:
    """All that a run says and keeps, but for times."""
    found = train(Problem(task, MarginRescaling(), 0.02), trainer, RunSettings(max_iter=3, check_every=2, seed=3, keep=True))
    assert found.progress is not None
    history = [{key: value for key, value in row.items() if "seconds" not in key} for row in found.history]
    return [found.weights.tobytes(), history, found.certificate, {k: a.tobytes() for k, a in found.progress.arrays.items()}]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("rule", ["", "pruned", "weighted", "fixed"])
@pytest.mark.parametrize("oracle", [ArborescenceOracle(), ArborescenceOracle(False), ProjectiveOracle()])
def test_visited_trees_move_the_weights_as_single_ones_do(oracle: Any, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, history, certificate and state are those of single updates, bit for bit, in few calls or broken off anywhere."""
    task = tree_task(oracle, rule)
    update_many, seen = task.compiled_updates(), []
    assert update_many is not None
    updates = update_many.__self__  # type: ignore[attr-defined]
    for trainer in (MIRA, SGD, AROW):
        monkeypatch.setattr(task, "compiled_updates", lambda: lambda *call: seen.append(found := update_many(*call)) or found)
        whole = made(task, trainer())
        assert [count for count, _ in seen] == [len(task)] * 3
        monkeypatch.setattr(updates, "most", 100)
        assert made(task, trainer()) == whole
        monkeypatch.undo()
        monkeypatch.setattr(task, "compiled_updates", lambda: None)
        assert made(task, trainer()) == whole
        seen.clear()


def test_what_visits_do_not_know_is_left_to_single_steps() -> None:
    """An oracle that looks for trees in its own way."""

    class Own(ProjectiveOracle):
        def argmax(self, scores: Any, shape: Any) -> Any:
            return super().argmax(scores, shape)

    assert tree_task(ProjectiveOracle()).compiled_updates() is not None
    assert tree_task(Own()).compiled_updates() is None


def test_a_score_that_is_not_finite_is_left_to_the_plain_update() -> None:
    """No sentence is visited then, and the weights stay: the update by itself says which sample it is."""
    task = tree_task(ProjectiveOracle())
    problem = Problem(task, MarginRescaling(), 0.02)
    state = MIRA().init_state(problem)
    state.weights.v[:] = np.inf
    rule, update_many = MIRA().update_rule(problem, state), task.compiled_updates()
    assert update_many is not None
    with np.errstate(invalid="ignore"):
        assert update_many(np.arange(5), rule, 1.0) == (0, False)
