"""The parser on real treebanks: a certified optimum on Hungarian, and languages where words are moved out of their phrases."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from structpred.features.arcs import ArcFeatures
from structpred.io import Treebank, read_treebank
from structpred.models.parser.arcs import tree_oracle
from structpred.models.parser.parser import DependencyParser
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.problem import Problem


def right_heads(model: DependencyParser, treebank: Treebank, projective: bool) -> float:
    """The share of words with the right head, punctuation included."""
    found = model.predict(treebank, projective=projective)
    return float((np.concatenate([tree.heads for tree in found]) == treebank.heads).mean())


@pytest.mark.slow
def test_the_gap_on_hungarian_is_proven_small(data_dir: Path) -> None:
    """At most 2 % of the primal within 150 passes at lambda n = 20; never negative; the bounds are what plain calls compute."""
    treebank = read_treebank(data_dir / "ud_hungarian_szeged" / "hu_szeged-ud-train.conllu.gz")
    trainer = BCFW(averaged=False, gap_sampling=True)
    model = DependencyParser(trainer, 0.05, 150, 0.02, projective=False, labelled=False, check_every=10).fit(treebank)
    checks = [row for row in model.history_ if row["gap"] is not None]
    for row in checks:
        print(f"pass {row['passes']}, {row['cpu_seconds']:.1f} CPU s: gap {100 * row['gap'] / row['primal']:.2f} %")
    print(model.certificate_)
    assert len(checks) >= 10
    assert min(row["gap"] for row in checks) >= 0
    assert all(b["dual"] >= a["dual"] for a, b in pairwise(checks))
    assert (model.stop_reason_, model.converged_) == ("tol", True)
    assert model.certificate_.proven
    assert model.certificate_.relative_gap is not None
    assert 0 < model.certificate_.relative_gap <= 0.02
    data = model.featurizer_.transform(treebank)
    features = ArcFeatures(data, model.templates_, model.bits_)
    gold, shapes = np.split(treebank.heads, treebank.offsets[1:-1]), [(n,) for n in treebank.lengths.tolist()]
    plain = Task(features, tree_oracle(False, True), gold, shapes, Hamming(), compiled=False)
    primal = Problem(plain, MarginRescaling(), 1 / (0.05 * len(treebank))).primal(model.coef_)
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "training"), [("ud_ancient_greek_perseus", "grc_perseus-ud-dev"), ("ud_latin_perseus", "la_perseus-ud-train")]
)
def test_crossing_arcs_are_worth_looking_for(folder: str, training: str, data_dir: Path) -> None:
    """With the usual settings non-projective parsing beats projective parsing, with the same weights and with its own."""
    train = read_treebank(data_dir / folder / f"{training}.conllu.gz")
    test = read_treebank(data_dir / folder / f"{training.split('-')[0]}-ud-test.conllu.gz")
    model, straight = (DependencyParser(labelled=False, projective=projective).fit(train) for projective in (None, True))
    assert not model.projective_
    free, same, own = right_heads(model, test, False), right_heads(model, test, True), right_heads(straight, test, True)
    print(f"{folder}: {free:.4f}, projective {same:.4f}, trained without crossing arcs {own:.4f} ({straight.left_out_} left out)")
    assert free > same > 0.6
    assert free > own
