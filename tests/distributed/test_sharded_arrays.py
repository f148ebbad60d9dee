"""Arrays beside strings on shards: one standardisation of all shards, models as those of all data, errors that name shards."""

import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_sums import n_total, pieces, sharded, sums

from structpred.distributed import Shards, fit
from structpred.errors import DataError
from structpred.export import export_predictor
from structpred.io.templates import vectors as read
from structpred.io.templates.templates import Template, load_templates
from structpred.models import ChainLabeler
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling

READ = read.read_vectors
RNG = np.random.default_rng(4)
WORDS = [[f"w{RNG.integers(12)}" for _ in range(RNG.integers(2, 6))] for _ in range(24)]
TAGS = [[f"T{int(word[1:]) % 3}" for word in words] for words in WORDS]
ROWS = [[(word, word[-1]) for word in words] for words in WORDS]
# a mean that is large beside the deviation, a column that does not vary, one that is constant in each shard
DICTS = [
    [
        {"w": w, "k": np.array([int(w[1:]) % 3, 1e5 + RNG.normal()]), "v": np.array([0.1, float(i // 8), RNG.normal()]), "n": 0.5}
        for w in words
    ]
    for i, words in enumerate(WORDS)
]
BOUNDS = ([0, 24], [0, 8, 16, 24], list(range(25)))


def vectors(folder: Path) -> list[Template]:
    """The templates of tags, and vectors of this word and the last; w11 has none."""
    lines = [f"w{k} {np.sin(k):.4f} {1e4 + np.cos(3 * k):.4f} 1.5" for k in range(11)]
    (folder / "words.txt").write_text("\n".join(lines))
    return [*load_templates("pos"), *(Template(f"v{k}", ((0, k, f"vec:{folder}/words.txt"),)) for k in (0, -1))]


def kinds(folder: Path) -> dict[str, tuple[Callable[..., ChainLabeler], Any]]:
    """Every form of arrays beside strings."""
    template = vectors(folder)
    return {
        "names": (ChainLabeler, DICTS),
        "hashed names": (partial(ChainLabeler, n_bits=8), DICTS),
        "template": (partial(ChainLabeler, template=template, n_bits=9), ROWS),
        "names of templates": (partial(ChainLabeler, template=template, min_count=2), ROWS),
    }


@pytest.mark.parametrize("kind", ["names", "hashed names", "template", "names of templates"])
def test_shards_are_standardised_as_all_data(kind: str, tmp_path: Path) -> None:
    """Means and deviations are those of fit, in whatever number of shards; so are objective and gradient."""
    make, X = kinds(tmp_path)[kind]
    alone = make(max_iter=1).fit(X, TAGS).input_.arrays
    one = sharded(make(), [(X, TAGS)])
    assert 0.0 < alone.scale.factor.max() < 1e3
    w = np.random.default_rng(5).normal(size=one.whole.dim)
    for bounds in BOUNDS:
        many = sharded(make(), pieces(X, TAGS, bounds))
        arrays = many.plan.input_.arrays
        assert (arrays.names, arrays.widths) == (alone.names, alone.widths)
        np.testing.assert_allclose(arrays.scale.shift, alone.scale.shift, rtol=1e-12)
        np.testing.assert_allclose(arrays.scale.factor, alone.scale.factor, rtol=1e-9)  # 1e5 +- 1 loses ten of the digits
        assert (many.whole.dim, n_total(many)) == (one.whole.dim, 24.0)
        for surrogate in (LogLoss(), MarginRescaling()):
            for found, expected in zip(sums(many, w, surrogate), sums(one, w, surrogate), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_shard_without_a_known_word_and_constant_columns(tmp_path: Path) -> None:
    """A shard in which no word has a vector counts for nothing; a column of one value in all shards stays unscaled, exactly."""
    model = ChainLabeler(template=vectors(tmp_path), n_bits=8)
    made = sharded(model, [(ROWS, TAGS), ([[("w11", "1")] * 2], [["T2", "T2"]])])
    fitted = model.fit([*ROWS, [("w11", "1")] * 2], [*TAGS, ["T2", "T2"]])
    np.testing.assert_allclose(made.plan.input_.arrays.scale.shift, fitted.input_.arrays.scale.shift, rtol=1e-12)
    assert made.plan.input_.arrays.scale.factor[[2, 5]].tolist() == [1.0, 1.0]
    with pytest.raises(DataError, match="v0: no training token has a vector"):
        sharded(model, [([[("w11", "1")]], [["T2"]])] * 2)
    dicts = sharded(ChainLabeler(), pieces(DICTS, TAGS, [0, 8, 16, 24])).plan.input_.arrays
    assert (dicts.scale.shift[2], dicts.scale.factor[2]) == (np.float64(np.float32(0.1)), 1.0)
    assert 1.0 < dicts.scale.factor[3] < 1.5  # 0, 1, 2, constant in each of the shards


def test_keys_in_another_order_are_the_same_arrays() -> None:
    """Arrays are merged by their keys."""
    turned = [[dict(reversed(token.items())) for token in tokens] for tokens in DICTS]
    plan = sharded(ChainLabeler(), [(DICTS[:9], TAGS[:9]), (turned[9:], TAGS[9:])]).plan
    expected = sharded(ChainLabeler(), pieces(DICTS, TAGS, [0, 9, 24])).plan
    assert plan.input_.arrays.names == ["k", "v"]
    assert plan.input_.arrays.scale.shift.tolist() == expected.input_.arrays.scale.shift.tolist()


def third(k: int, change: Any = None, *, whole: bool = False) -> Any:
    """The samples of shard k of three, with another array at sample 2, position 1; whole: at all tokens."""
    X = [[dict(token) for token in tokens] for tokens in DICTS[8 * k : 8 * k + 8]]
    for i, tokens in enumerate(X):
        for t, token in enumerate(tokens):
            if change is not None and (whole or (i, t) == (2, 1)):
                token["v"] = change
    return X, TAGS[8 * k : 8 * k + 8]


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        (
            partial(third, 1, np.array([0.0, np.nan, 1.0])),
            "sample 2, position 1: feature 'v': .* 3 finite numbers, .*got NaN or infinity",
        ),
        (partial(third, 1, np.ones(2)), r"sample 2, position 1: feature 'v': .* 3 finite numbers, .*got ndarray \(2,\)"),
        (partial(third, 1, "a"), "sample 2, position 1: feature 'v': .* 3 finite numbers, .*got str"),
        (partial(third, 1, "a", whole=True), "sample 0, position 0: feature 'v': .* 3 finite numbers, .*got str"),
        (
            partial(third, 1, np.ones(4), whole=True),
            r"sample 0, position 0: feature 'v': .* 3 finite numbers, as at all tokens, got ndarray \(4,\)",
        ),
    ],
)
def test_a_bad_array_is_named_by_shard_and_sentence(here: Any, shard: Any, message: str) -> None:
    """NaN, another width at one token or in a whole shard, no array: shard, sample, position and key, before training."""
    model = ChainLabeler("lbfgs")
    with pytest.raises(DataError, match=rf"shard 1 \(function .*\): {message}"):
        fit(model, Shards.of_functions([partial(third, 0), shard, partial(third, 2)]), client=here)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("trainer", ["lbfgs", "bcfw", "sgd"])
def test_a_model_of_shards_is_one_of_all_data(here: Any, trainer: str, tmp_path: Path) -> None:
    """Trained on shards, it labels as that of fit, its explanations add up, and its file and its program say the same."""
    model = ChainLabeler(trainer, C=1.0, max_iter=40, tol=1e-3, random_state=0)
    alone = ChainLabeler(trainer, C=1.0, max_iter=40, tol=1e-3, random_state=0).fit(DICTS, TAGS)
    fit(model, Shards.of_functions([partial(third, k) for k in range(3)]), client=here)
    assert [p.tolist() for p in model.predict(DICTS)] == [p.tolist() for p in alone.predict(DICTS)] == TAGS
    if trainer == "lbfgs":  # the same optimum, names in another order
        places = [alone.input_.feature_names().index(name) for name in model.input_.feature_names()]
        np.testing.assert_allclose(model.emissions_, alone.emissions_[places], atol=0.02)
        assert np.abs(model.emissions_).max() > 0.3
    model.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    for one in (model, loaded):
        why = one.explain(DICTS[2])
        best = one.predict_kbest(DICTS[2:3], 1)[0][0][1]
        assert sum(c.score for c in why.contributions) == pytest.approx(best, abs=1e-5)
        assert sum(c.feature.startswith("v[") for c in why.contributions) == 3 * len(DICTS[2])
    export_predictor(loaded, tmp_path / "light_shards.py")
    sys.path.insert(0, str(tmp_path))
    try:
        import light_shards  # type: ignore[import-not-found]

        assert [p.tolist() for p in light_shards.predict(DICTS)] == TAGS
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["light_shards"]


@pytest.mark.parametrize("settings", [{"n_bits": 9}, {"min_count": 2}])
def test_vectors_of_words_are_read_once(
    here: Any, settings: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read where the run begins, not by shards; the optimum is that of all data, and the model has the vectors."""
    template, reads = vectors(tmp_path), list[str]()
    path = tmp_path / "train.txt"
    lines = ["\n".join(f"{' '.join(row)} {tag}" for row, tag in zip(*pair, strict=True)) for pair in zip(ROWS, TAGS, strict=True)]
    path.write_text("\n\n".join(lines) + "\n")
    monkeypatch.setattr(read, "read_vectors", lambda name: reads.append(name) or READ(name))
    model = ChainLabeler("lbfgs", template=template, max_iter=60, tol=1e-4, **settings)
    fit(model, Shards.of_file(path, 3), client=here)
    assert reads == [f"{tmp_path}/words.txt"]
    alone = ChainLabeler("lbfgs", template=template, max_iter=60, tol=1e-4, **settings).fit(ROWS, TAGS)
    assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-3)
    np.testing.assert_allclose(model.emissions_[:6], alone.emissions_[:6], atol=0.02)
    (tmp_path / "words.txt").unlink()
    assert [p.tolist() for p in pickle.loads(pickle.dumps(model)).predict(ROWS)] == [p.tolist() for p in alone.predict(ROWS)]
