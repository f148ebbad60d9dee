"""Promises of ParsingPipeline: tags by a tagger that has not seen them, trees of these tags, one file for both."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parser_cases import as_bank, corpus, plain

from structpred.errors import CheckpointError, DataError, MissingCapabilityError, ModelFileError, ParameterError
from structpred.io import read_treebank
from structpred.models import ChainLabeler, DependencyParser, ParsingPipeline, load
from structpred.models.sharding import sharding_of

X, Y = corpus(24, 0, 0.2)
X_TEST, Y_TEST = corpus(6, 1, 0.2)
FORMS = [[token["form"] for token in tokens] for tokens in X_TEST]
SMALL: dict[str, Any] = {"max_iter": 2, "max_bits": 8}


def tagger_of(sentences: list[Any]) -> ChainLabeler:
    """The tagger that is the default, of these sentences."""
    rows = [[(token["form"],) for token in tokens] for tokens in sentences]
    return ChainLabeler("sgd", template="pos", missing="_").fit(
        rows, [[token["upos"] for token in tokens] for tokens in sentences]
    )


def retagged(sentences: list[Any], tagger: ChainLabeler) -> list[Any]:
    """Forms and the tags of a tagger, alone."""
    found = tagger.predict([[(token["form"],) for token in tokens] for tokens in sentences])
    return [
        [{"form": t["form"], "upos": str(tag)} for t, tag in zip(*pair, strict=True)]
        for pair in zip(sentences, found, strict=True)
    ]


def test_the_parser_learns_from_the_tags_of_taggers_of_the_other_parts() -> None:
    """Weights and trees are those of a parser that is given, sentence by sentence, the tags of a tagger of the other parts."""
    noisy = [[{**t, "upos": "X" if (k + m) % 7 == 0 else t["upos"]} for m, t in enumerate(tokens)] for k, tokens in enumerate(X)]
    given: list[Any] = [None] * len(noisy)
    for part in range(3):
        given[part::3] = retagged(noisy[part::3], tagger_of([tokens for k, tokens in enumerate(noisy) if k % 3 != part]))
    assert given != retagged(noisy, tagger_of(noisy))
    by_hand = DependencyParser(attributes=("form", "upos"), **SMALL).fit(given, Y)
    model = ParsingPipeline(jackknife=3, **SMALL).fit(noisy, Y)
    assert (model.coef_ == by_hand.coef_).all()
    assert (model.tagger_.coef_ == tagger_of(noisy).coef_).all()
    assert plain(model.predict(X_TEST)) == plain(by_hand.predict(retagged(X_TEST, tagger_of(noisy))))


def test_it_needs_words_alone_and_its_own_tags_count() -> None:
    """Bare words give the trees that tagged ones do; every way to predict and explain takes the tagger's tags."""
    model = ParsingPipeline(jackknife=2, **SMALL).fit(X, Y)
    wrong = [[{**token, "upos": "ADV", "lemma": "x"} for token in tokens] for tokens in X_TEST]
    assert plain(model.predict(FORMS)) == plain(model.predict(X_TEST)) == plain(model.predict(wrong))
    assert (
        model.tag(wrong).upos
        == model.tag(FORMS).upos
        == [token["upos"] for tokens in retagged(X_TEST, model.tagger_) for token in tokens]
    )
    best = [trees[0][0] for trees in model.predict_kbest(wrong, 1)]
    assert plain(best) == plain(model.predict(FORMS))
    assert any("NOUN" in c.feature for c in model.explain(wrong[0]).contributions)
    assert not any("ADV" in c.feature and "today" not in FORMS[0] + ["often"] for c in model.explain(wrong[0]).contributions)
    assert model.score(wrong, Y_TEST) == model.score(X_TEST, Y_TEST)


def test_the_file_holds_both(tmp_path: Path) -> None:
    """Tags, trees and settings come back, with pruning; it loads in each way, and a second fit gives the same weights."""
    model = ParsingPipeline(jackknife=2, prune=3, tagger=ChainLabeler(template="pos", max_iter=3), **SMALL).fit(X, Y)
    model.save(tmp_path / "m.spz")
    for loaded in (load(tmp_path / "m.spz"), ParsingPipeline.load(tmp_path / "m.spz")):
        assert plain(loaded.predict(FORMS)) == plain(model.predict(FORMS))
        assert loaded.tag(FORMS).upos == model.tag(FORMS).upos
        assert (loaded.jackknife, tuple(loaded.attributes), type(loaded.pruner_)) == (2, ("form", "upos"), DependencyParser)
    assert (loaded.fit(X, Y).coef_ == model.coef_).all()
    with pytest.raises(ModelFileError, match="expected a DependencyParser, the file holds a ParsingPipeline"):
        DependencyParser.load(tmp_path / "m.spz")


def test_without_parts_it_learns_from_the_tags_of_the_data(tmp_path: Path) -> None:
    """jackknife=None is a parser of the given tags; the file keeps that."""
    model = ParsingPipeline(jackknife=None, **SMALL).fit(X, Y)
    assert (model.coef_ == DependencyParser(attributes=["form", "upos"], **SMALL).fit(X, Y).coef_).all()
    model.save(tmp_path / "m.spz")
    assert load(tmp_path / "m.spz").jackknife is None


def test_held_out_trees_are_scored_with_predicted_tags() -> None:
    """The score of the last pass on dev is that of the fitted pipeline."""
    untagged = as_bank([[{"form": token["form"]} for token in tokens] for tokens in X_TEST], Y_TEST)
    model = ParsingPipeline(jackknife=2, labelled=False, **SMALL).fit(X, Y, dev=untagged)
    assert max(row["dev_score"] for row in model.history_) == model.score(X_TEST, Y_TEST)


BARE = [[{"form": token["form"]} for token in tokens] for tokens in X]
BAD: dict[str, tuple[dict[str, Any], Any, Any, type[Exception], str]] = {
    "no tags": ({}, BARE, Y, DataError, r"expected a tag \(UPOS\): a pipeline learns them; got none in the whole treebank"),
    "no sentences": ({}, [], [], DataError, "at least one sentence, got none"),
    "an empty sentence": ({}, [*X[:2], []], [*Y[:2], []], DataError, "sample 2: .*empty"),
    "too few sentences": ({}, X[:5], Y[:5], ParameterError, "jackknife: .*as many as sentences, 5, got 10"),
    "one part": ({"jackknife": 1}, X, Y, ParameterError, "jackknife: .*got 1"),
    "no number": ({"jackknife": True}, X, Y, ParameterError, "jackknife: .*got True"),
    "a setting of the parser": ({"max_bits": 99}, X, Y, ParameterError, "max_bits"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_before_anything_is_trained(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours in one line, and no tagger was trained."""
    settings, words, trees, error, message = BAD[name]
    monkeypatch.setattr(ChainLabeler, "fit", lambda *args, **options: pytest.fail("a tagger was trained"))
    with pytest.raises(error, match=message) as caught:
        ParsingPipeline(**settings).fit(words, trees)
    assert "\n" not in str(caught.value)


def test_interrupted_while_tagging_an_earlier_fit_stays_whole() -> None:
    """Interrupted in each part, it says so; the earlier tags and trees stay. Rows say which stage they are of."""
    model = ParsingPipeline(jackknife=2, **SMALL).fit(X, Y)
    before = plain(model.predict(FORMS)), model.tag(FORMS).upos
    stages: list[Any] = []

    def stop(row: dict[str, Any]) -> None:
        stages.append(row.get("stage"))
        if stages.count(4) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="while the tagger was trained; nothing is kept"):
        model.set_params(callbacks=stop).fit(X[:12], Y[:12])
    assert (plain(model.predict(FORMS)), model.tag(FORMS).upos) == before
    assert set(stages) == {3, 4}


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("stop", [(3, 2), (4, 1), (4, 4), (1, 1), (2, 1)], ids=lambda stop: f"stage {stop[0]}, row {stop[1]}")
def test_interrupted_anywhere_it_ends_in_the_same_bits(signal_number: int, stop: tuple[int, int], tmp_path: Path) -> None:
    """A run that is stopped in a tagger, in that of a part, in the arcs or in the relations, and resumed, is an unbroken one."""
    seen: list[int] = []

    def interrupt(row: dict[str, Any]) -> None:
        seen.append(row.get("stage") or 1)
        if (seen[-1], seen.count(seen[-1])) == stop:
            signal.raise_signal(signal_number)

    tagger = ChainLabeler("sgd", 0.1, template="pos", max_iter=3)  # halves of 12 sentences learn, too
    settings = {**SMALL, "trainer": "mira", "jackknife": 2, "tagger": tagger}
    unbroken = ParsingPipeline(**settings).fit(X, Y)
    path = tmp_path / "run.ckpt"
    with pytest.raises(KeyboardInterrupt, match="continue with resume=True"):
        ParsingPipeline(**settings, checkpoint=path, callbacks=interrupt).fit(X, Y)
    before = len(seen)
    model = ParsingPipeline(**settings, checkpoint=path, resume=True, callbacks=interrupt).fit(X, Y)
    assert before + len(seen[before:]) <= 3 * 3 + 2 * 2  # no pass was made twice
    for own, other in ((model, unbroken), (model.tagger_, unbroken.tagger_), (model.relations_, unbroken.relations_)):
        np.testing.assert_array_equal(own.coef_, other.coef_)
    assert (model.history_[-1]["passes"], plain(model.predict(FORMS))) == (2, plain(unbroken.predict(FORMS)))
    ParsingPipeline(**settings, checkpoint=path).fit(X[:12], Y[:12])  # what begins anew forgets an earlier run
    with pytest.raises(CheckpointError):
        ParsingPipeline(**settings, checkpoint=path, resume=True).fit(X, Y)


def test_what_parsers_refuse_is_said_before_taggers_are_trained(tmp_path: Path) -> None:
    """A trainer that is for rows alone ends the fit at once, and nothing is kept."""
    seen: list[Any] = []
    with pytest.raises(MissingCapabilityError, match="SDCA is for rows"):
        ParsingPipeline(**{**SMALL, "trainer": "sdca"}, checkpoint=tmp_path / "run.ckpt", callbacks=seen.append).fit(X, Y)
    assert (seen, list(tmp_path.iterdir())) == ([], [])


def test_it_is_not_trained_on_shards() -> None:
    """Shards are refused by name."""
    with pytest.raises(ParameterError, match="ParsingPipeline cannot be trained on shards"):
        sharding_of(ParsingPipeline())


@pytest.mark.slow
def test_english_from_words_alone(data_dir: Path) -> None:
    """A fifth of English EWT, five passes: the tags, heads and relations of the test part reach a floor without its tags."""
    train, test = (read_treebank(str(data_dir / "ud_english_ewt" / f"en_ewt-ud-{name}.conllu.gz")) for name in ("train", "test"))
    model = ParsingPipeline(jackknife=5, max_iter=5).fit(train.take(np.arange(len(train)) % 5 == 0))
    heads = np.concatenate([tree.heads for tree in model.predict(test)])
    assert np.mean(np.array(model.tag(test).upos) == np.array(test.upos)) > 0.92
    assert np.mean(heads == test.heads) > 0.775
    assert model.score(test) > 0.715
