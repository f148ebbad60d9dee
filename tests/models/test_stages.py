"""ChainLabeler(stages=2): a second labeler of what a first one says, which it learns from labelers of other documents."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.errors import CheckpointError, DataError, ModelFileError, ParameterError
from structpred.evaluation.model_selection import select_sequences
from structpred.export import export_predictor
from structpred.io import Atom, ColumnCorpus, Template, load_templates
from structpred.models import ChainLabeler, KernelChainLabeler, load
from structpred.models.chain.stages import SEEN
from structpred.models.sharding import sharding_of
from structpred.storage.bundles import read_bundle, write_bundle
from structpred.tuning import tune

TEMPLATE = [Template("w[0]", (Atom(0, 0),)), Template("w[-1]", (Atom(0, -1),)), Template("tag[0]", (Atom(1, 0),))]
NAMES = ["Ada", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal"]


def corpus(n: int = 16, seed: int = 0) -> tuple[ColumnCorpus, list[list[str]]]:
    """Documents of three sentences: a name follows its title once, and says nothing of its type elsewhere in the document."""
    rng = np.random.default_rng(seed)
    rows, y, groups = [], [], []
    for document in range(n):
        for name, title, kind in zip(rng.choice(NAMES, 2, replace=False).tolist(), ("Mr", "at"), ("PER", "LOC"), strict=True):
            rows += [[(title, "t"), (name, "n")], [("so", "x"), (name, "n"), ("is", "x")]]
            y += [["O", f"B-{kind}"], ["O", f"B-{kind}", "O"]]
            groups += [document] * 2
    return ColumnCorpus.from_rows(rows, groups=groups), y


X, Y = corpus()
NEW, TRUTH = corpus(8, 1)
SMALL: dict[str, Any] = {"template": TEMPLATE, "max_iter": 5}


def lists(labels: Any) -> list[list[Any]]:
    """Arrays of labels as lists."""
    return [row.tolist() for row in labels]


def by_hand(data: ColumnCorpus, labels: list[list[str]]) -> list[list[tuple[str, ...]]]:
    """Rows with the label, the label that most others of the word in the document have, and the same of types."""
    words, of = data.labels(0), data.document_of.tolist()
    rows = []
    for i, sentence in enumerate(data.sentences()):
        rows.append([])
        for t, (word, tag) in enumerate(sentence):
            places = [(j, k) for j, other in enumerate(words) for k, w in enumerate(other) if of[j] == of[i]]
            same = [labels[j][k] for j, k in places if words[j][k].lower() == word.lower() and (j, k) != (i, t)]
            kinds = [label[2:] for label in same if label != "O"]
            most = [min(found, key=lambda x: (-found.count(x), x)) if found else None for found in (same, kinds)]
            rows[-1].append((word, tag, labels[i][t], most[0] or "none", most[1] or ("O" if same else "none")))
    return rows


def templates_by_hand() -> list[Template]:
    """The user's, and those of the columns that follow."""
    at = {"said": (2, ""), "same": (3, ""), "type": (4, ""), "word": (0, ""), "shape": (0, "short_shape")}
    found = list(TEMPLATE)
    for text in SEEN:
        parts = [atom.rstrip("]").split("[") for atom in text.split("|")]
        found.append(Template(text, tuple(Atom(at[name][0], int(offset), at[name][1]) for name, offset in parts)))
    return found


def named(model: ChainLabeler) -> list[tuple[str, list[float]]]:
    """The weights of features by name."""
    return sorted(zip(model.input_.feature_names(), model.emissions_.tolist(), strict=True))


def test_it_is_a_labeler_of_rows_with_the_labels_of_labelers_of_other_documents() -> None:
    """The weights and predictions of a labeler that is given, by hand, what labelers of the other documents say."""
    model = ChainLabeler(stages=2, **SMALL).fit(X, Y)
    part = X.document_of % 2
    heard: list[Any] = [None] * len(X)
    for k in range(2):
        kept, held = np.flatnonzero(part != k), np.flatnonzero(part == k)
        other = ChainLabeler(template=TEMPLATE, max_iter=1).fit(select_sequences(X, kept), [Y[i] for i in kept])
        for i, labels in zip(held, other.predict(select_sequences(X, held)), strict=True):
            heard[i] = labels.tolist()
    second = ChainLabeler(template=templates_by_hand(), max_iter=3).fit(by_hand(X, heard), Y)
    for own, other in zip(named(model), named(second), strict=True):
        assert own[0] == other[0]
        np.testing.assert_allclose(own[1], other[1], atol=1e-6)
    first = ChainLabeler(**SMALL).fit(X, Y)
    assert model.first_stage_.coef_.tobytes() == first.coef_.tobytes()
    assert model.first_stage_.certificate_ == first.certificate_ != model.certificate_ == second.certificate_
    assert lists(model.predict(NEW)) == lists(second.predict(by_hand(NEW, lists(first.predict(NEW)))))


def test_it_finds_what_the_document_shows_elsewhere() -> None:
    """A name without its title has the type that it has with it: one stage guesses, two know; without documents they do not."""
    one, two = (ChainLabeler(template=TEMPLATE, stages=n).fit(X, Y) for n in (1, 2))
    assert one.score(NEW, TRUTH) < 0.95 < two.score(NEW, TRUTH)
    assert two.score(NEW.sentences(), TRUTH) < 0.95


@pytest.mark.parametrize("trainer", ["sgd", "lbfgs"])
def test_all_that_a_labeler_says_goes_together(trainer: str) -> None:
    """Probabilities, the k best, gaps, phrases, explanations and held-out scores are those of the labels that are predicted."""
    model = ChainLabeler(trainer, stages=2, coding="iobes", **SMALL).fit(X, Y, dev=(NEW, TRUTH))
    found = lists(model.predict(NEW))
    assert max(row["dev_score"] for row in model.history_) == model.score(NEW, TRUTH)
    assert [best[0][0].tolist() for best in model.predict_kbest(NEW, 2)] == found
    assert all((gaps >= 0).all() for gaps in model.predict_score_gaps(NEW))
    alone = select_sequences(NEW, [1])
    why = model.explain(alone)
    assert sum(c.value * c.weight for c in why.contributions) == pytest.approx(model.predict_kbest(alone, 1)[0][0][1], rel=1e-5)
    assert any(c.feature.startswith("said[0]=") for c in why.contributions)
    assert model.n_iter_ == {"sgd": 3, "lbfgs": 5}[trainer]
    assert model.first_stage_.coding_ == model.coding_ == ("iobes", "iob2")
    if trainer == "lbfgs":
        assert any("|sure[0]=" in name for name in model.input_.feature_names())
        tables = model.predict_marginals(NEW)
        assert all(np.allclose(table.sum(axis=1), 1.0) for table in tables)
        for i, phrases in enumerate(model.predict_phrases(NEW, min_probability=0.9)):
            assert all(found[i][p.start] == f"B-{p.label}" for p in phrases)


@pytest.mark.parametrize("trainer", ["bcfw", "lbfgs"])
def test_one_file_holds_both(trainer: str, tmp_path: Path) -> None:
    """Predictions, settings and both certificates come back; a second fit gives the same weights, and pruning keeps a stage."""
    model = ChainLabeler(trainer, stages=2, constraints="iob2", **SMALL).fit(X, Y)
    model.save(tmp_path / "m.spz")
    loaded = load(tmp_path / "m.spz")
    assert (loaded.stages, loaded.template) == (2, TEMPLATE)
    assert lists(loaded.predict(NEW)) == lists(model.predict(NEW))
    assert loaded.first_stage_.certificate_ == model.first_stage_.certificate_
    smaller = loaded.without_groups(["said[-2]", "said[2]", "same[1]"])
    smaller.save(tmp_path / "s.spz")
    assert len(load(tmp_path / "s.spz").predict(NEW)) == len(NEW)
    assert len(smaller.coef_) < len(loaded.coef_)
    assert loaded.fit(X, Y).coef_.tobytes() == model.coef_.tobytes()


def test_a_file_of_stages_in_stages_is_refused(tmp_path: Path) -> None:
    """A first stage that has stages itself, or none at all, is an error of the file."""
    ChainLabeler(stages=2, **SMALL).fit(X, Y).save(tmp_path / "m.spz")
    for bend in (lambda head: head["first"]["input"].update(kind="staged"), lambda head: head.pop("first")):
        bundle = read_bundle(tmp_path / "m.spz", kind="model")
        bend(bundle.header["input"]["header"])
        write_bundle(tmp_path / "b.spz", bundle, kind="model")
        with pytest.raises(ModelFileError, match="contents are inconsistent"):
            load(tmp_path / "b.spz")


def test_columns_that_no_template_reads_do_not_matter() -> None:
    """Data to predict may lack the column of the labels, or have others."""
    model = ChainLabeler(stages=2, **SMALL).fit(X, Y)
    with_labels = [[(*row, label) for row, label in zip(*pair, strict=True)] for pair in zip(NEW.sentences(), TRUTH, strict=True)]
    groups = NEW.document_of.tolist()
    assert lists(model.predict(ColumnCorpus.from_rows(with_labels, groups=groups))) == lists(model.predict(NEW))


@pytest.mark.parametrize("trainer", ["bcfw", "lbfgs"])
def test_threads_have_no_part_in_it(trainer: str) -> None:
    """The same bits with one thread and with two."""
    one, two = (ChainLabeler(trainer, stages=2, n_jobs=n, **SMALL).fit(X, Y) for n in (1, 2))
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert lists(one.predict(NEW)) == lists(two.predict(NEW))


def test_weights_rules_and_missing_labels_go_to_all_parts() -> None:
    """Weights of sequences and tokens, allowed labels and labels that are missing are those of the sequences of each part."""
    y: list[Any] = [[None if (i + t) % 5 == 0 else label for t, label in enumerate(row)] for i, row in enumerate(Y)]
    given: dict[str, Any] = {
        "sample_weight": np.arange(1.0, len(Y) + 1), "token_weight": [[1.0] * len(row) for row in Y],
        "allowed": [[["O", "B-PER", "B-LOC"]] * len(row) for row in Y],
    }  # fmt: skip
    with pytest.warns(Warning, match="missing"):
        model = ChainLabeler("lbfgs", stages=2, missing=None, **SMALL).fit(X, y, **given)
    assert model.score(NEW, TRUTH) > 0.8
    plain = ChainLabeler("lbfgs", stages=2, **SMALL).fit(X, Y)
    given["sample_weight"] = np.ones(len(Y))
    assert ChainLabeler("lbfgs", stages=2, **SMALL).fit(X, Y, **given).coef_.tobytes() == plain.coef_.tobytes()


def numbers(labels: list[list[str]]) -> list[list[int]]:
    """Labels as whole numbers."""
    return [[("O", "B-PER", "B-LOC").index(label) for label in row] for row in labels]


def test_labels_may_be_whole_numbers() -> None:
    """They are text only in the columns."""
    model = ChainLabeler(stages=2, **SMALL).fit(X, numbers(Y))
    assert {type(label) for row in lists(model.predict(NEW)) for label in row} == {int}


REFUSED: dict[str, tuple[type[ChainLabeler], dict[str, Any], Any, str]] = {
    "three": (ChainLabeler, {"stages": 3}, X, "stages: expected 1, or 2 .* got 3"),
    "dicts": (ChainLabeler, {"template": None}, [[{"w": "a"}]] * 4, "stages: .* 2 for rows with a template"),
    "arrays": (ChainLabeler, {"template": None}, [np.ones((1, 2))] * 4, "stages: .* 2 for rows with a template"),
    "hashed": (ChainLabeler, {"n_bits": 8}, X, "stages: .* without n_bits .hashed features."),
    "warm start": (ChainLabeler, {"warm_start": True}, X, "stages: .* warm_start"),
    "a kernel": (KernelChainLabeler, {}, X, "stages: .* kernel"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_one_stage_is_refused_before_any_work(name: str, tmp_path: Path) -> None:
    """One line that names it; nothing is written."""
    kind, settings, data, message = REFUSED[name]
    model = kind(**{**SMALL, "stages": 2, "checkpoint": tmp_path / "run.ckpt", **settings})
    with pytest.raises(ParameterError, match=message) as caught:
        model.fit(data, [["O"]] * len(data))
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_pieces_shards_and_programs_have_one_stage(tmp_path: Path) -> None:
    """partial_fit, fit_stream, shards and exported programs say so; so does a single document."""
    model = ChainLabeler("sgd", stages=2, **SMALL)
    refused = [
        lambda: model.partial_fit(X, Y, n_total=9), lambda: sharding_of(model),
        lambda: model.fit_stream(lambda: zip(X.sentences(), Y, strict=True), ["O"]),
        lambda: export_predictor(ChainLabeler(stages=2, **SMALL).fit(X, Y), tmp_path / "tagger.py"),
    ]  # fmt: skip
    for call in refused:
        with pytest.raises(ParameterError, match="stages"):
            call()
    with pytest.raises(ParameterError, match="stages: passes of one stage are counted"):
        tune(model, {"C": [0.1, 1.0]}, X, Y, cv=2)
    with pytest.raises(DataError, match="other documents say: expected 2 documents, got 1"):
        model.fit(ColumnCorpus.from_rows(X.sentences(), groups=[0] * len(X)), Y)


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("stop", [(2, 1), (3, 1), (3, 3), (1, 2)], ids=lambda stop: f"stage {stop[0]}, row {stop[1]}")
def test_interrupted_anywhere_it_ends_in_the_same_bits(stop: tuple[int, int], tmp_path: Path) -> None:
    """Stopped in the first stage, in one of its parts or in the second one, and resumed: an unbroken run; no pass made twice."""
    seen: list[int] = []

    def interrupt(row: dict[str, Any]) -> None:
        seen.append(row.get("stage") or 1)
        if (seen[-1], seen.count(seen[-1])) == stop:
            signal.raise_signal(signal.SIGINT)

    settings = {"stages": 2, "template": TEMPLATE}
    unbroken, path = ChainLabeler(**settings).fit(X, Y), tmp_path / "run.ckpt"
    with pytest.raises(KeyboardInterrupt, match="continue with resume=True"):
        ChainLabeler(checkpoint=path, callbacks=interrupt, **settings).fit(X, Y)
    model = ChainLabeler(checkpoint=path, resume=True, callbacks=interrupt, **settings).fit(X, Y)
    assert len(seen) == 10 + 2 * 2 + 5
    assert model.coef_.tobytes() == unbroken.coef_.tobytes()
    assert model.first_stage_.coef_.tobytes() == unbroken.first_stage_.coef_.tobytes()
    assert [row["primal"] for row in model.history_] == [row["primal"] for row in unbroken.history_]
    ChainLabeler(checkpoint=path, **settings).fit(NEW, TRUTH)  # what begins anew forgets an earlier run
    with pytest.raises(CheckpointError):
        ChainLabeler(checkpoint=path, resume=True, **settings).fit(X, Y)


def test_templates_by_name_and_words_without_documents() -> None:
    """Lists of rows, each a document of its own, with a named template; an empty sequence has no labels."""
    rows = [[(word,) for word in words] for words in X.labels(0)]
    model = ChainLabeler(template="ner", stages=2, max_iter=2).fit(rows, Y)
    assert model.template == "ner"
    assert len(load_templates("ner")) + len(SEEN) == len(model.input_.features.templates)
    assert [len(row) for row in model.predict([rows[0], [], rows[1]])] == [2, 0, 3]


def test_what_is_selected_keeps_its_documents() -> None:
    """Sequences of a corpus that are picked are parted where their documents change."""
    assert select_sequences(X, [0, 2, 4, 5, 9]).document_of.tolist() == [0, 0, 1, 1, 2]
    assert select_sequences(ColumnCorpus.from_rows(X.sentences()), [3, 4]).documents is None
