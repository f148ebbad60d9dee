"""Bad input to the parser is an error of ours that names the sample or the line, and leaves an earlier fit whole."""

import copy
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parser_cases import Arcs, as_bank, corpus, plain

from structpred.errors import DataError, ParameterError, StructpredError, StructpredWarning
from structpred.io import Sentence, Tree, read_treebank
from structpred.models.parser.parser import DependencyParser
from structpred.trainers.mira import MIRA

X, Y = corpus(20, 0, 0.3)


def changed(samples: list[Any], i: int, value: Any) -> list[Any]:
    """The list with another entry i."""
    return [*samples[:i], value, *samples[i + 1 :]]


def with_head(i: int, word: int, head: Any) -> list[Any]:
    """The trees with another head of one word (from 1) of sample i."""
    arcs: Arcs = list(Y[i])
    return changed(Y, i, [(head if m == word else h, name) for m, (h, name) in enumerate(arcs, 1)])


def root_of(i: int) -> int:
    """The word of sample i whose head is 0."""
    return [head for head, _ in Y[i]].index(0) + 1


N3 = len(X[3])
LISTS = [["a", "b"], ["c"]]
# name: (X, y, what the message says)
BAD_DATA: dict[str, tuple[Any, Any, str]] = {
    "no sentences": ([], [], "at least one sentence, got none"),
    "a string": ("the dog sleeps", Y, "got str; read files with io.read_treebank"),
    "a dict": ({"form": "x"}, Y, "got dict"),
    "nothing": (None, Y, "got NoneType"),
    "an array": (np.zeros((2, 2)), Y, "got ndarray"),
    "one sentence of dicts": (X[0], Y[0], "sample 0: .*got dict.*one sentence"),
    "one sentence of words": (["a", "b"], [[2, 0]], "sample 0: .*got str.*one sentence"),
    "an empty sentence": (changed(X, 3, []), changed(Y, 3, []), "sample 3: .*empty"),
    "an empty Sentence": ([Sentence([], [], [], [], [])], [[]], "sample 0: .*empty"),
    "columns of other lengths": ([Sentence(["a"], ["_"], ["_", "_"], ["_"], ["_"])], [[0]], "sample 0: expected 1 upos"),
    "a token without form": (changed(X, 2, [{"lemma": "a"}] * len(X[2])), Y, 'sample 2, word 1: .*"form"'),
    "an empty form": (changed(X, 2, [*X[2][:-1], {"form": ""}]), Y, f"sample 2, word {len(X[2])}: "),
    "a form that is a number": (changed(X, 2, [{"form": 5}] * len(X[2])), Y, "sample 2, word 1: "),
    "a form with a tab": (changed(X, 2, [{"form": "a\tb"}] * len(X[2])), Y, "sample 2, position 0: forms"),
    "a dict as feats": (changed(X, 2, [{"form": "a", "feats": {"A": "b"}}] * len(X[2])), Y, "sample 2, position 0: feats"),
    "an unknown key": (changed(X, 2, [{"form": "a", "head": 1}] * len(X[2])), Y, "sample 2, word 1: expected the keys .*'head'"),
    "keys that are no strings": (changed(X, 2, [{"form": "a", 1: "x", "b": "y"}] * len(X[2])), Y, "sample 2, word 1: .*got 1"),
    "a number as a token": (changed(X, 2, [3] * len(X[2])), Y, "sample 2, word 1: "),
    "no trees": (X, None, "sample 0, position 0: expected a head"),
    "trees missing": (X, Y[:-1], "y: expected one tree per sentence, 20, got 19"),
    "trees as a string": (LISTS, "ab", "y: expected one tree per sentence, 2, got 2"),
    "a number for the trees": (LISTS, 5, "y: .*got int"),
    "a number for a tree": (LISTS, [[2, 0], 0], "sample 1: expected a Tree"),
    "a tree too short": (X, changed(Y, 3, Y[3][:-1]), f"sample 3: the sentence has {N3} words, but its tree has {N3 - 1} heads"),
    "a tree too long": (X, changed(Y, 3, [*Y[3], (1, "x")]), f"sample 3: the sentence has {N3} words, but its tree has {N3 + 1}"),
    "relations for some words": (LISTS, [[(2, "x"), 0], [0]], "sample 0: some words have a relation and some have none"),
    "a relation too many": (LISTS, [[(2, "x", "y"), (0, "root", "z")], [0]], "sample 0: expected a Tree"),
    "a relation that is a number": (LISTS, [[(2, 5), (0, 5)], [0]], "sample 0, position 0: labels: .*5"),
    "a relation with a space": (LISTS, [[(2, "a b"), (0, "root")], [0]], "sample 0, position 0: labels"),
    "labels of another length": (LISTS, [Tree(np.array([2, 0]), ["x"]), [0]], "sample 0: expected 2 labels"),
    "a head beyond the sentence": (X, with_head(3, 1, N3 + 1), f"sample 3: expected heads from 0 to {N3}"),
    "a head below zero": (X, with_head(3, 1, -2), "sample 3: expected heads from 0"),
    "a head that is no number": (X, with_head(3, 1, "root"), "sample 3: expected a Tree, a list of heads"),
    "a head that is a text of a number": (X, with_head(3, 1, "2"), "sample 3: expected a Tree, a list of heads"),
    "a head that is not whole": (X, with_head(3, 1, 1.5), "sample 3: expected a Tree, a list of heads"),
    "heads as floats": (LISTS, [Tree(np.array([2.0, 0.0]), None), [0]], "sample 0: expected 2 whole numbers as heads"),
    "a head beyond 64 bits": (LISTS, [[2, 1 << 70], [0]], "sample 0: "),
    "a word that is its own head": (X, with_head(3, root_of(3), root_of(3)), "sample 3, position .* not a tree: word .* cycle"),
    "a cycle": (LISTS, [[2, 1], [0]], r"sample 0, position 0: the heads \[2, 1\] are not a tree: word 1 does not reach the root"),
    "two roots": (LISTS, [[0, 0], [0]], "sample 0, position 1: a second word of the sentence has head 0; single_root=False"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_DATA)
@pytest.mark.parametrize("projective", [False, True])
def test_bad_training_data_are_named(name: str, projective: bool) -> None:
    """Unusable data raise DataError that names the sample, also where other sentences are left out of training."""
    data, trees, message = BAD_DATA[name]
    with pytest.raises(DataError, match=message):
        DependencyParser(projective=projective).fit(data, trees)


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_held_out_data_are_said_to_be_held_out(name: str) -> None:
    """The same in `dev`: the message begins with dev, and nothing is trained before."""
    data, trees, message = BAD_DATA[name]
    if name == "two roots":
        return  # it may be scored
    seen: list[Any] = []
    with pytest.raises(StructpredError, match=f"^dev: .*(?:{message})"):
        DependencyParser(callbacks=seen.append).fit(X, Y, dev=(data, trees))
    assert not seen


@pytest.mark.parametrize("dev", [5, [1], (X,), (X, Y, X), "x"])
def test_held_out_data_of_another_kind_are_refused(dev: Any) -> None:
    """dev is a Treebank or a pair."""
    with pytest.raises(StructpredError, match=r"dev: expected a tuple \(X, y\)"):
        DependencyParser().fit(X, Y, dev=dev)


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD_DATA)
def test_a_failed_fit_leaves_the_earlier_one_whole(name: str) -> None:
    """After a second fit that fails, every attribute is the same, and so is what is predicted."""
    model = fitted()
    before, attributes = plain(model.predict(X)), copy.copy(vars(model))
    with pytest.raises(StructpredError):
        model.fit(*BAD_DATA[name][:2])
    assert all(vars(model)[key] is value for key, value in attributes.items())
    assert plain(model.predict(X)) == before


def fitted() -> DependencyParser:
    """A parser."""
    return DependencyParser(max_iter=2).fit(X, Y)


@functools.cache
def shared() -> DependencyParser:
    """One for the tests that leave it as it is; made by the first of them, since importing this file must not compile."""
    return fitted()


BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "trainer": ({"trainer": "adam"}, "trainer: expected one of .*mira.*'adam'"),
    "trainer class": ({"trainer": MIRA}, "trainer: expected a name or an instance"),
    "C zero": ({"C": 0}, "^C must be a positive number, got 0"),
    "C text": ({"C": "1"}, "^C must be a positive number"),
    "C nan": ({"C": float("nan"), "prune": 3}, "^C must be a positive number"),
    "label_C": ({"label_C": -1.0}, "^label_C must be a positive number, got -1.0"),
    "max_iter": ({"max_iter": 0}, "max_iter must be a whole number >= 1, got 0"),
    "tol": ({"tol": -0.1}, "tol must be finite and >= 0"),
    "check_every": ({"check_every": 0}, "check_every must be"),
    "patience": ({"patience": 2}, "patience needs held-out data"),
    "max_bits small": ({"max_bits": 0}, "max_bits: expected a whole number in 1..28, got 0"),
    "max_bits large": ({"max_bits": 29}, "max_bits: .*got 29"),
    "max_bits text": ({"max_bits": "18"}, "max_bits: .*got '18'"),
    "prune zero": ({"prune": 0}, "prune: expected a number of heads per word >= 1, or None, got 0"),
    "prune true": ({"prune": True}, "prune: .*got True"),
    "prune half": ({"prune": 2.5}, "prune: .*got 2.5"),
    "projective": ({"projective": "no"}, "projective: expected True, False or None, got 'no'"),
    "loss": ({"loss": "zero-one"}, "loss: expected one of extra_parts, hamming"),
    "surrogate": ({"surrogate": "ramp"}, "surrogate: expected one of margin, log"),
    "surrogate of mira": ({"surrogate": "log", "trainer": "bcfw"}, "BCFW cannot minimise LogLoss; trainers that can: .*oeg"),
    "n_jobs": ({"n_jobs": 0}, "n_jobs must be a number"),
    "random_state": ({"random_state": -1}, "random_state must be >= 0"),
    "callbacks": ({"callbacks": 3}, "callbacks: expected a function"),
    "resume": ({"resume": True}, "resume needs the checkpoint"),
    "templates": ({"templates": ["h.form", "nonsense"]}, "arc template 'nonsense': expected atoms"),
    "no templates": ({"templates": []}, "none of the templates can be used"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings_are_named(name: str) -> None:
    """A setting out of its range raises ParameterError before any pass over the data, and an earlier fit stays whole."""
    settings, message = BAD_SETTINGS[name]
    model, seen = fitted(), []
    before = copy.copy(vars(model))
    model.set_params(**({"callbacks": seen.append} | settings))
    with pytest.raises(ParameterError, match=message):
        model.fit(X, Y)
    assert not seen
    assert all(vars(model)[key] is value for key, value in before.items() if key.endswith("_"))


@pytest.mark.parametrize("weights", [[1.0], np.ones(19), np.full(20, np.nan), -np.ones(20), np.zeros(20), "x" * 20])
def test_bad_sample_weights_are_refused(weights: Any) -> None:
    """One finite number >= 0 a sentence, not all of them zero."""
    with pytest.raises(ParameterError, match="sample_weight"):
        DependencyParser().fit(X, Y, sample_weight=weights)


BAD_RULES: dict[str, tuple[dict[str, Any], str]] = {
    "too few": ({"fixed": [None]}, "fixed: expected one entry per sentence, 20, got 1"),
    "too many": ({"forbidden": [None] * 21}, "forbidden: expected one entry per sentence, 20, got 21"),
    "one for all": ({"fixed": {1: 0}}, "fixed: expected a list with an entry for each sentence, got dict"),
    "a number": ({"forbidden": 7}, "forbidden: expected a list with an entry for each sentence, got int"),
    "pairs to fix": ({"fixed": changed([None] * 20, 4, [(1, 0)])}, r"fixed, sample 4: expected \{word: its head\}"),
    "a dict to forbid": ({"forbidden": changed([None] * 20, 4, {1: 0})}, "forbidden, sample 4: expected a list of pairs"),
    "a single pair": ({"forbidden": changed([None] * 20, 4, (0, 1))}, "forbidden, sample 4: expected pairs .*got 0"),
    "a triple": ({"forbidden": changed([None] * 20, 4, [(0, 1, 2)])}, "forbidden, sample 4: expected pairs"),
    "the root has no head": ({"fixed": changed([None] * 20, 4, {0: 1})}, "fixed, sample 4: .*head 1, modifier 0"),
    "a word too far": ({"fixed": changed([None] * 20, 4, {99: 1})}, "fixed, sample 4: .*modifier 99"),
    "a head too far": ({"forbidden": changed([None] * 20, 4, [(99, 1)])}, "forbidden, sample 4: .*head 99"),
    "below zero": ({"fixed": changed([None] * 20, 4, {1: -1})}, "fixed, sample 4: .*head -1"),
    "its own head": ({"fixed": changed([None] * 20, 4, {2: 2})}, "fixed, sample 4: .*head 2, modifier 2"),
    "a text": ({"fixed": changed([None] * 20, 4, {"1": 0})}, "fixed, sample 4: .*modifier '1'"),
    "a truth value": ({"fixed": changed([None] * 20, 4, {1: False})}, "fixed, sample 4: .*head False"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_RULES)
@pytest.mark.parametrize("method", ["predict", "predict_marginals", "predict_kbest"])
def test_bad_constraints_are_named(name: str, method: str) -> None:
    """Every method of prediction refuses entries that are no arcs of the sentence, with its number."""
    rules, message = BAD_RULES[name]
    arguments = (X, 2) if method == "predict_kbest" else (X,)
    with pytest.raises(DataError, match=message):
        getattr(shared(), method)(*arguments, **rules)


@pytest.mark.parametrize("switch", ["projective", "single_root"])
def test_switches_are_true_false_or_none(switch: str) -> None:
    """Anything else is refused, not taken for true."""
    with pytest.raises(ParameterError, match=f"{switch}: expected True, False or None, got 'no'"):
        shared().predict(X, **{switch: "no"})


@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_bad_numbers_of_trees_are_refused(k: Any) -> None:
    """k is a whole number >= 1."""
    with pytest.raises(ParameterError, match="k must be a whole number >= 1"):
        shared().predict_kbest(X, k)


@pytest.mark.parametrize("name", [name for name, (_, y, _) in BAD_DATA.items() if y is Y and name != "no sentences"])
def test_bad_sentences_are_refused_at_prediction(name: str) -> None:
    """What fit refuses as sentences, predict refuses."""
    with pytest.raises(DataError, match=BAD_DATA[name][2]):
        shared().predict(BAD_DATA[name][0])


def test_scoring_needs_trees_with_relations() -> None:
    """No sentences, no trees, or no relations where the parser has learnt them: DataError, not a score of zero."""
    with pytest.raises(DataError, match="at least one sentence to score"):
        shared().score([], [])
    with pytest.raises(DataError, match="expected a head"):
        shared().score(X)
    with pytest.raises(DataError, match="the parser has learnt relations, but these trees have none"):
        shared().score(X, [[head for head, _ in arcs] for arcs in Y])
    with pytest.raises(DataError, match="sample 3: the sentence has"):
        shared().score(X, changed(Y, 3, Y[3][:-1]))
    words = [[{"form": "a", "upos": "X"}, "b"]]
    assert shared().score(words, [[(0, "x"), (0, "y")]]) == 0.0  # several roots may be scored


def test_files_and_lines_are_named(tmp_path: Path) -> None:
    """What is wrong in a treebank that was read from a file is said with the file's name and the line."""
    path = tmp_path / "bad.conllu"
    lines = ["1\ta\t_\tX\t_\t_\t2\tdep\t_\t_", "2\tb\t_\tX\t_\t_\t1\tdep\t_\t_", "", ""]
    path.write_text("\n".join(["1\ta\t_\tX\t_\t_\t0\troot\t_\t_", "", *lines]))
    with pytest.raises(DataError, match=r"bad.conllu:3: the heads \[2, 1\] are not a tree"):
        DependencyParser().fit(read_treebank(path, check_trees=False))
    path.write_text("\n".join(lines).replace("\t2\tdep", "\t_\t_").replace("\t1\tdep", "\t_\t_"))
    with pytest.raises(DataError, match=r"bad.conllu:1: expected a head"):
        DependencyParser().fit(read_treebank(path))
    path.write_text("\n".join(lines).replace("\t2\tdep", "\t0\troot").replace("\t1\tdep", "\t0\troot"))
    with pytest.raises(DataError, match=r"bad.conllu:2: a second word of the sentence has head 0"):
        DependencyParser().fit(read_treebank(path, check_trees=False))
    assert len(shared().predict(read_treebank(path, check_trees=False))) == 1


def test_trees_given_beside_a_treebank_replace_its_own() -> None:
    """fit(treebank, y) trains on y; lengths must fit."""
    bank = as_bank(X, Y)
    chains = [list(range(len(tokens))) for tokens in X]
    model = DependencyParser().fit(bank, chains)
    assert [tree.heads.tolist() for tree in model.predict(X)] == chains
    with pytest.raises(DataError, match="y: expected one tree per sentence, 20, got 1"):
        DependencyParser().fit(bank, [[0]])


def test_words_without_the_tags_of_training_are_noticed() -> None:
    """A parser that learnt from tags warns where no word has one, held-out words too; one tag is enough."""
    parser = DependencyParser(max_iter=1).fit(X, Y)
    forms = [[token["form"] for token in tokens] for tokens in X]
    said = "X: expected words with upos, which the parser was trained with; got none, .* tag the words first"
    for predict in (parser.predict, lambda words: parser.predict_kbest(words, 2)):
        with pytest.warns(StructpredWarning, match=said):
            assert len(predict(forms)) == len(X)
    with pytest.warns(StructpredWarning, match=said):
        DependencyParser(max_iter=1).fit(X, Y, dev=(forms, Y))
    tagged = [[{"form": X[0][0]["form"], "upos": "DET"}, *forms[0][1:]], *forms[1:]]
    assert len(parser.predict(tagged)) == len(X)
    assert len(DependencyParser(max_iter=1).fit(forms, Y).predict(X)) == len(X)
