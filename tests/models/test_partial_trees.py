"""DependencyParser on trees with missing heads and relations, in Python, in files and in the shell."""

import numpy as np
import pytest
from parser_cases import corpus

from structpred.errors import DataError
from structpred.io import read_treebank
from structpred.models import DependencyParser


def partly(trees, share=0.3, seed=0):
    """The trees without some of their heads and relations."""
    rng = np.random.default_rng(seed)
    return [[(None, None) if rng.random() < share else arc for arc in tree] for tree in trees]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("settings", [{}, {"trainer": "lbfgs"}, {"prune": 4, "projective": False}])
def test_both_ways_learn_from_the_heads_that_are_known(settings):
    """With 30 % of the heads missing the parser does as well as with all, on this small language; the optimum is local."""
    X, y = corpus(40)
    test = corpus(30, seed=3)
    model = DependencyParser(max_iter=12, **settings).fit(X, partly(y))
    assert model.score(*test) > 0.97
    assert model.certificate_.local
    assert model.label_certificate_.local
    assert model.kept_ is None
    assert set(model.relations_.classes_.tolist()) == {relation for tree in y for _, relation in tree}


def test_marks_of_missing_heads():
    """None and -1 are the same; relations may be missing where the head is not, and the other way round."""
    X, y = corpus(15)
    heads = [[-1 if head is None else head for head, _ in tree] for tree in partly(y)]
    nones = [[None if head < 0 else head for head in tree] for tree in heads]
    one, other = (DependencyParser(max_iter=3).fit(X, given) for given in (heads, nones))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    mixed = [[(head, "_" if k == 0 else label) if k else (None, label) for k, (head, label) in enumerate(tree)] for tree in y]
    relations = DependencyParser(max_iter=3).fit(X, mixed).relations_
    assert relations is not None
    assert "_" not in relations.classes_


def test_bad_partial_trees_name_the_place():
    """A cycle of known heads, no head at all and scores of trees with gaps are refused; arcs that cross are left out."""
    X, y = corpus(3)
    n = len(y[1])
    with pytest.raises(DataError, match=r"sample 1, position 0.*a cycle"):
        DependencyParser().fit(X, [y[0], [(2, "x"), (1, "x"), *[(None, None)] * (n - 2)], y[2]])
    with pytest.raises(DataError, match="expected a head: a parser learns"):
        DependencyParser().fit(X, [[None] * len(tree) for tree in y])
    with pytest.raises(DataError, match="a second word of the sentence has head 0"):
        DependencyParser().fit(X, [y[0], [(0, "x"), (0, "x"), *[(None, None)] * (n - 2)], y[2]])
    crossing = [(n, "x"), (0, "root"), *[(None, None)] * (n - 2)]  # known arcs that cross: as whole trees that do
    assert DependencyParser(projective=True, max_iter=1).fit(X, [y[0], crossing, y[2]]).left_out_ == 1
    four = [{"form": word, "upos": "NOUN"} for word in "abcd"]
    hidden = [(4, "x"), (None, None), (None, None), (3, "x")]  # the root is under the arc from 4 to 1
    assert DependencyParser(projective=True, max_iter=1).fit([X[0], four, X[2]], [y[0], hidden, y[2]]).left_out_ == 1
    with pytest.raises(DataError, match="expected a head, since training and scoring need trees"):
        DependencyParser(max_iter=1).fit(X, y).score(X, partly(y))


ROWS = [(2, "nsubj"), ("_", "_"), (2, "obj")]


def conllu(rows):
    """One sentence of words with these heads and relations."""
    words = (f"{k}\tw{k}\t_\tNOUN\t_\t_\t{head}\t{relation}\t_\t_" for k, (head, relation) in enumerate(rows, 1))
    return "\n".join(words) + "\n\n"


def test_files_with_missing_heads(tmp_path):
    """`_` on some words of a sentence is read where it is asked for; what is known is checked, with the line."""
    path = tmp_path / "a.conllu"
    path.write_text(conllu([(0, "root")]) + conllu(ROWS))
    with pytest.raises(DataError, match=r"a.conllu:4: expected a head on every word of a sentence or on none, got _ on 1 of 3"):
        read_treebank(path)
    assert read_treebank(path, missing_heads=True).heads.tolist() == [0, 2, -1, 2]
    for rows, message in (
        ([(2, "x"), (1, "x"), ("_", "_")], r"a.conllu:1: the heads form a cycle"),
        ([(0, "root"), (0, "root"), ("_", "_")], r"a.conllu:2: expected one word with head 0, got 2"),
        ([(9, "x"), ("_", "_")], r"a.conllu:1: expected a head from 0 to 2"),
        ([("x", "x"), ("_", "_")], r"a.conllu:1: expected a whole number from 0 or _ as HEAD"),
    ):
        path.write_text(conllu(rows))
        with pytest.raises(DataError, match=message):
            read_treebank(path, missing_heads=True)
