"""Label sequences on shards: the problems of the shards add up to the one of all data."""

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from shard_sums import check_same, n_total, no_further, pieces, sharded

from structpred.core.result import Certificate, Result
from structpred.data.vocabulary import FeatureDictionary
from structpred.distributed import Shards
from structpred.distributed.shards import about_shard
from structpred.errors import DataError, ParameterError
from structpred.io.columns import read_columns
from structpred.io.templates import coded
from structpred.io.templates.featurizer import CountedTemplates, TemplateFeaturizer, merged_templates
from structpred.io.templates.templates import Template
from structpred.layers.surrogates import SoftMargin
from structpred.models import ChainLabeler, GaussianProcessLabeler
from structpred.models.chain.sharding import labelled
from structpred.models.sharding import holders_of, sharding_of
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem

RNG = np.random.default_rng(1)
WORDS = [[f"w{RNG.integers(12)}" for _ in range(RNG.integers(1, 5))] for _ in range(9)]
TAGS = [[f"T{RNG.integers(3)}" for _ in words] for words in WORDS]
DICTS = [[{"w": word, "size": len(word)} for word in words] for words in WORDS]
ROWS = [[(word, word[-1]) for word in words] for words in WORDS]
ARRAYS = [
    np.array([[len(word), 1.0, 0.0], [0.0, 2.0, int(word[1:])]])[:1].repeat(len(words), 0)
    for words in WORDS
    for word in words[:1]
]
LOSSES = (LogLoss(), MarginRescaling(), SoftMargin())
KINDS = {
    "names": (lambda: ChainLabeler(), DICTS),
    "hashed names": (lambda: ChainLabeler(n_bits=8), DICTS),
    "template": (lambda: ChainLabeler(template="pos"), ROWS),
    "names of templates": (lambda: ChainLabeler(template="pos", min_count=2), ROWS),
    "rules": (lambda: ChainLabeler(template="pos", n_bits=7, loss="hamming"), ROWS),
    "arrays": (lambda: ChainLabeler(), ARRAYS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_problems_of_shards_add_up_to_the_one_of_all_data(kind: str) -> None:
    """Objective and gradient are the sums over the shards, in whatever number of shards the data come."""
    make, X = KINDS[kind]
    one = sharded(make(), [(X, TAGS)])
    for bounds in ([0, 4, 9], list(range(10))):
        many = sharded(make(), pieces(X, TAGS, bounds))
        check_same(one, many, LOSSES)
        assert n_total(many) == 9.0
        assert many.plan.encoder.classes.tolist() == ["T0", "T1", "T2"]
        assert many.plan.input_.to_bundle().texts == one.plan.input_.to_bundle().texts  # names know nothing of the shards


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"template"}))  # whose table has 2**20 rows
def test_a_compact_task_gives_the_scores_of_the_full_one(kind: str) -> None:
    """With the weights that occur in it, a shard's part scores are to the last bit those of the model's table of weights."""
    make, X = KINDS[kind]
    many = sharded(make(), pieces(X, TAGS, [0, 5, 9]))
    (task, columns), plan = many.parts[1], many.plan
    full, _ = labelled(make(), plan.input_.transform(X[5:]), TAGS[5:], plan.encoder)
    w = columns.spread(np.random.default_rng(2).normal(size=columns.dim).astype(np.float32))
    own = w[columns.spread(np.ones(columns.dim)) != 0.0]
    assert len(w) == full.dim
    for i in range(len(task)):
        assert task.scores(own, i).tobytes() == full.scores(w, i).tobytes()
    assert columns.own_groups.tolist() == task.groups.tolist()
    assert columns.groups.tolist() == full.groups.tolist()
    assert list(columns.group_names) == task.group_names == full.group_names


def test_neither_memory_nor_messages_grow_with_the_bits() -> None:
    """A shard has the rows that occur in it: 2**24 hashed features make no larger problem than 2**16; a plan pickles small."""
    small, large = (sharded(ChainLabeler(template="pos", n_bits=n), [(ROWS, TAGS)]) for n in (16, 24))
    assert abs(small.whole.dim - large.whole.dim) <= 8 * 3  # a collision at most
    assert len(pickle.dumps(large.plan)) < 5000
    assert large.whole.n_rows == 1 << 24


def test_names_are_counted_over_all_shards() -> None:
    """min_count is about all data: a name that is rare in every shard is kept where it is frequent enough in all together."""
    one = FeatureDictionary(3).fit(DICTS)
    for bounds in ([0, 9], list(range(10))):
        plan = sharded(ChainLabeler(min_count=3), pieces(DICTS, TAGS, bounds)).plan
        assert plan.input_.features.names == sorted(one.names)
        assert 0 < len(one.names) < len(FeatureDictionary().fit(DICTS).names)


def test_how_many_shards_have_a_weight() -> None:
    """Each weight of the whole is counted once for each shard in which its feature occurs; all shards have the transitions."""
    many = sharded(ChainLabeler(), pieces(DICTS, TAGS, [0, 3, 6, 9]))
    held = holders_of([columns for _, columns in many.parts], many.whole)
    names = [{f"w:{word}" for words in WORDS[a : a + 3] for word in words} for a in (0, 3, 6)]
    for j, name in enumerate(many.plan.input_.feature_names()):
        expected = 3 if name == "size" else sum(name in own for own in names)
        assert held[8 * j : 8 * j + 8].tolist() == [expected] * 8
    assert set(held[-5 * 8 :].tolist()) == {3}


def test_what_is_kept_predicts_saves_and_loads(tmp_path: Path) -> None:
    """The weights of the whole go to their places: the model is that of fit on the same features, and its file reads back."""
    model = ChainLabeler("lbfgs", template="pos", n_bits=12, C=1.0, max_iter=60, tol=1e-4, check_every=1)
    made = sharded(model, [(ROWS, TAGS)])
    problem = Problem(made.parts[0][0], LogLoss(), 1.0 / n_total(made))
    result = train(problem, LBFGS(), RunSettings(max_iter=60, tol=1e-4, check_every=1))
    sharding_of(model).keep(model, made.plan, made.whole.spread_result(result), no_further)
    fitted = ChainLabeler("lbfgs", template="pos", n_bits=12, C=1.0, max_iter=60, tol=1e-4, check_every=1).fit(ROWS, TAGS)
    np.testing.assert_allclose(model.coef_, fitted.coef_, atol=1e-5)
    assert (model.groups_.tolist(), model.group_names_) == (fitted.groups_.tolist(), fitted.group_names_)
    assert model.converged_
    assert model.probabilistic_
    model.save(tmp_path / "model")
    again = ChainLabeler.load(tmp_path / "model").predict(ROWS)
    assert [labels.tolist() for labels in again] == [labels.tolist() for labels in fitted.predict(ROWS)]


def test_an_interrupted_run_is_kept_and_stops_the_program() -> None:
    """After Ctrl-C the model holds what was learnt, and KeyboardInterrupt goes on, as from fit."""
    model = ChainLabeler()
    made = sharded(model, [(DICTS, TAGS)])
    result = Result(np.ones(made.whole.dim), Certificate(), stop_reason="interrupted")
    with pytest.raises(KeyboardInterrupt):
        sharding_of(model).keep(model, made.plan, made.whole.spread_result(result), no_further)
    assert len(model.predict(DICTS)) == 9


def test_bad_data_name_file_and_line(tmp_path: Path) -> None:
    """A label that `classes` do not have is named with its file and line, not only with the number of the sequence."""
    path = tmp_path / "train.txt"
    path.write_text(
        "".join(
            "".join(f"{word} {tag}\n" for word, tag in zip(*pair, strict=True)) + "\n" for pair in zip(WORDS, TAGS, strict=True)
        )
    )
    lines = path.read_text().split("\n")
    model, data = ChainLabeler(template="pos"), [(part.X, part.y) for part in (s.load() for s in Shards.of_file(path, 2))]
    at = next(k for k, line in enumerate(lines, 1) if line.endswith("T2"))
    start = next(k for k in range(at, 0, -1) if k == 1 or not lines[k - 2])
    with pytest.raises(DataError, match=rf"train.txt:{start}: sample \d+: label 'T2' is not among the labels in `classes`"):
        sharded(model, data, classes=["T0", "T1"])
    made = sharded(model, data)
    assert read_columns(path).n_tokens == sum(len(labels) for _, y in data for labels in y)
    last, shard = Shards.of_file(path, 2)[1].load(), Shards.of_file(path, 2)[1]
    with (
        pytest.raises(DataError, match=rf"shard 1 .*train.txt: byte {shard.start:,} \+ line 1: sample 0: label 'new'"),
        about_shard(1, shard),
    ):
        sharding_of(model).task(model, made.plan, last.X, [["new"] * len(labels) for labels in last.y])


def test_shards_that_do_not_fit_each_other_are_refused() -> None:
    """Shards of other forms, other numbers of columns or other kinds of labels, and models without a sum, are clear errors."""
    with pytest.raises(DataError, match="features of one form, got numeric and tokens"):
        sharded(ChainLabeler(), [(DICTS, TAGS), (ARRAYS, TAGS)])
    with pytest.raises(DataError, match="shard 1: expected 3 feature columns as in shard 0, got 2"):
        sharded(ChainLabeler(), [(ARRAYS, TAGS), ([x[:, :2] for x in ARRAYS], TAGS)])
    with pytest.raises(DataError, match="all strings or all whole numbers"):
        sharded(ChainLabeler(), [(DICTS, TAGS), (DICTS, [[1] * len(tags) for tags in TAGS])])
    with pytest.raises(ParameterError, match="GaussianProcessLabeler cannot be trained on shards: use fit"):
        sharding_of(GaussianProcessLabeler())
    with pytest.raises(ParameterError, match="signs: training on shards does not take it"):
        sharding_of(ChainLabeler(signs={"size": 1}))


@pytest.mark.parametrize("limit", [2**62, 40])
def test_merged_templates_are_those_of_all_data(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates fitted to shards and merged have the features, counts and names of those fitted to all sentences; also where
    sentences are padded, and where keys are folded because their number is too large.
    """
    monkeypatch.setattr(coded, "KEY_LIMIT", limit)
    padded = {"pair": ((0, -1), (0, 1)), "three": ((0, -2), (1, 0), (0, 1))}
    templates = [Template("w", ((0, 0),)), *(Template(name, atoms, pad=True) for name, atoms in padded.items())]
    for min_count in (1, 2):
        whole = TemplateFeaturizer(templates, min_count).fit(ROWS)
        parts = [CountedTemplates.of(templates, ROWS[a:b])[0] for a, b in ((0, 2), (2, 3), (3, 9))]
        merged = merged_templates(parts, min_count)
        assert set(merged.feature_names()) == set(whole.feature_names())
        assert merged.feature_names() == merged_templates([CountedTemplates.of(templates, ROWS)[0]], min_count).feature_names()
        names, own = np.array(merged.feature_names()), np.array(whole.feature_names())
        packed, expected = merged.transform(ROWS), whole.transform(ROWS)
        assert packed.indptr.tolist() == expected.indptr.tolist()
        for a, b in pairwise(packed.indptr.tolist()):
            assert sorted(names[packed.indices[a:b]]) == sorted(own[expected.indices[a:b]])
        if limit == 2**62:  # what files may hold
            again = TemplateFeaturizer.from_bundle(merged.to_bundle())
            assert again.transform(ROWS).indices.tolist() == packed.indices.tolist()
