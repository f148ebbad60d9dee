"""Treebanks on shards: the problems of the shards add up to the one of all data."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_sums import agreed, check_same, n_total, no_further, sharded
from sklearn.base import clone

from structpred.distributed import Shards
from structpred.distributed.shards import about_shard
from structpred.errors import DataError, ParameterError
from structpred.io.treebanks.reader import read_treebank
from structpred.models import DependencyParser
from structpred.models.parser.sharding import ParserSharding
from structpred.models.sharding import sharding_of
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.problem import Problem

WORD = "{0}\tw{1}\tl{1}\t{2}\t_\t_\t{3}\tdep\t_\t_\n"


def treebank(path: Path, crossing: bool) -> Path:
    """Nine sentences of two to five words; the last tag occurs in one of them, and two have crossing arcs if wanted."""
    rng, out = np.random.default_rng(6), []
    for k in range(9):
        n = 2 + k % 4
        heads = [0, *rng.integers(1, 2, n - 1).tolist()]
        if crossing and n == 5:
            heads = [0, 4, 1, 1, 3]
        tags = ["X" if k == 8 and j == 0 else f"T{rng.integers(3)}" for j in range(n)]
        out.append("".join(WORD.format(j + 1, rng.integers(20), tags[j], heads[j]) for j in range(n)) + "\n")
    path.write_text("".join(out))
    return path


@pytest.mark.parametrize("crossing", [False, True])
def test_the_problems_of_shards_of_a_treebank_add_up(tmp_path: Path, crossing: bool) -> None:
    """Objective and gradient are sums over the shards; tags, block sizes and the kind of trees are those of the whole file."""
    path = treebank(tmp_path / "a.conllu", crossing)
    model = DependencyParser(labelled=False, projective=True if crossing else None)
    fitted = DependencyParser(labelled=False, projective=True if crossing else None, max_iter=1).fit(read_treebank(path))
    read = {n: [shard.load()[:2] for shard in Shards.of_file(path, n, format="conllu")] for n in (1, 2, 3)}
    one = sharded(model, read[1])
    for n in (2, 3):
        many = sharded(model, read[n])
        check_same(one, many, (LogLoss(), MarginRescaling()))
        assert many.plan.bits == fitted.bits_
        assert many.plan.featurizer.to_bundle() == fitted.featurizer_.to_bundle()
        assert (many.plan.projective, many.plan.left_out) == (fitted.projective_, fitted.left_out_)
        assert n_total(many) == 9.0 - fitted.left_out_


def test_tags_and_block_sizes_are_those_of_what_is_trained_on(tmp_path: Path) -> None:
    """Where few arcs cross, the sentences in which they do are left out of all that is counted, as in `fit`: here a tag of
    theirs, and a hundred tags of which the first sixty are kept.
    """
    words = [[f"T{3 * k % 100}", "T1", "T2", "T3"] for k in range(400)]
    rows = [(tags, [0, 1, 1, 1]) for tags in words] + [(["LAST", *words[0]], [0, 4, 1, 1, 3])]
    path, n = tmp_path / "a.conllu", itertools.count()
    sentences = [[WORD.format(j, next(n) % 50, *pair) for j, pair in enumerate(zip(*row, strict=True), 1)] for row in rows]
    path.write_text("\n".join(map("".join, sentences)) + "\n")
    fitted = DependencyParser(labelled=False, max_iter=1).fit(read_treebank(path))
    assert (fitted.projective_, fitted.left_out_, "LAST" in fitted.featurizer_.tags) == (True, 1, False)
    for n_shards in (1, 3):
        data = [shard.load()[:2] for shard in Shards.of_file(path, n_shards, format="conllu")]
        plan = sharded(DependencyParser(labelled=False), data).plan
        assert (plan.projective, plan.left_out, plan.bits) == (True, 1, fitted.bits_)
        assert plan.featurizer.to_bundle() == fitted.featurizer_.to_bundle()


@pytest.mark.parametrize("projective", [False, True])
def test_what_pruning_keeps_is_that_of_one_machine(tmp_path: Path, projective: bool) -> None:
    """With the model for pruning of `fit` the shards have its arcs, and the share of true arcs that it keeps is that of all."""
    rng, path = np.random.default_rng(8), tmp_path / "a.conllu"
    lengths = [2 + k % 4 for k in range(30)]
    heads = [[0, *(int(rng.integers(1, j)) for j in range(2, n + 1))] for n in lengths]
    rows = ["".join(WORD.format(j + 1, rng.integers(20), f"T{rng.integers(3)}", h) for j, h in enumerate(own)) for own in heads]
    path.write_text("\n".join(rows) + "\n")
    model = DependencyParser("bcfw", labelled=False, projective=projective, prune=1, max_iter=1)
    fitted = clone(model).fit(read_treebank(path))
    assert fitted.kept_ is not None
    assert 0.5 < fitted.kept_ < 1.0
    assert (fitted.left_out_ > 0) == projective
    sharding = ParserSharding(fitted.pruner_)
    for n in (1, 2, 3):
        data = [shard.load()[:2] for shard in Shards.of_file(path, n, format="conllu")]
        many = agreed(sharding, model, data)
        assert many.plan.kept == fitted.kept_
        if n == 1:
            one = many
        check_same(one, many, (LogLoss(), MarginRescaling()))
        assert not any(task.features.candidates.complete for task, _ in many.parts)


def test_the_parser_is_that_of_fit(tmp_path: Path) -> None:
    """What is kept parses, saves and loads as the parser of fit."""
    path = treebank(tmp_path / "a.conllu", crossing=False)
    fitted, model = (DependencyParser(labelled=False, max_iter=3) for _ in range(2))
    fitted.fit(read_treebank(path))
    made = sharded(model, [(read_treebank(path), None)])
    result = train(Problem(made.parts[0][0], MarginRescaling(), 1.0 / (model.C * 9)), MIRA(), RunSettings(max_iter=3))
    sharding_of(model).keep(model, made.plan, made.whole.spread_result(result), no_further)
    assert model.coef_.tobytes() == fitted.coef_.tobytes()
    model.save(tmp_path / "model")
    again = DependencyParser.load(tmp_path / "model").predict(read_treebank(path))
    assert [tree.heads.tolist() for tree in again] == [tree.heads.tolist() for tree in fitted.predict(read_treebank(path))]


def interrupted(model: Any, sharding: Any) -> None:
    """In the place of a run that Ctrl-C ends."""
    raise KeyboardInterrupt


def test_what_a_parser_cannot_do_on_shards_is_said_at_once(tmp_path: Path) -> None:
    """A relation that is missing, and pruning without tags; a second root names its line, from the shard's first byte."""
    path = treebank(tmp_path / "a.conllu", crossing=False)
    some = tmp_path / "some.conllu"
    some.write_text(path.read_text().replace("\tdep\t", "\t_\t", 1))
    with pytest.raises(DataError, match=r"1 of \d+ words have no relation: .* or learn heads alone"):
        sharded(DependencyParser(), [(read_treebank(path), None), (read_treebank(some), None)])
    with pytest.raises(DataError, match="words have no relation"):  # before what prunes is trained
        ParserSharding().prepared(DependencyParser(prune=2), lambda first, how: agreed(how, first, [(read_treebank(some), None)]))
    bare = [["w1", "w2"]], [[0, 1]]
    with pytest.raises(ParameterError, match=r"prune needs tags or lemmas, and the treebank has only .*form"):
        ParserSharding().prepared(DependencyParser(prune=2), lambda first, how: agreed(how, first, [bare]))
    with pytest.raises(ParameterError, match="prune: expected a number of heads per word >= 1, or None, got 0"):
        ParserSharding().prepared(DependencyParser(prune=0), no_further)
    with pytest.raises(KeyboardInterrupt, match="while the model for pruning was trained; nothing is kept"):
        ParserSharding().prepared(DependencyParser(prune=2), interrupted)
    with pytest.raises(ParameterError, match="classes: DependencyParser has no list of labels"):
        sharded(DependencyParser(labelled=False), [(read_treebank(path), None)], classes=["a"])
    path.write_text(path.read_text() + "".join(WORD.format(j, j, "T0", 0) for j in (1, 2)) + "\n")
    shard = Shards.of_file(path, 2, format="conllu")[1]
    line = path.read_bytes()[shard.start :].count(b"\n") - 1
    with (
        pytest.raises(DataError, match=rf"a.conllu: byte {shard.start} \+ line {line}: expected one word with head 0"),
        about_shard(1, shard),
    ):
        sharding_of(model := DependencyParser(labelled=False)).scan(model, shard.load().X, None)
