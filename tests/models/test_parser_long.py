"""Very long sentences: thousands of words are parsed, a million are refused before anything large is allocated."""

from typing import Any

import numpy as np
import pytest
from parser_cases import corpus, is_tree

from structpred.errors import DataError
from structpred.io import Sentence, Tree, Treebank
from structpred.models.parser.parser import DependencyParser
from structpred.runtime import memory

X, Y = corpus(60, 0, 0.3)


def long_sentence(n: int) -> list[dict[str, str]]:
    """Sentences of the language one after the other, without an end."""
    words = [token for tokens in corpus(n // 4 + 1, 2)[0] for token in tokens]
    assert len(words) >= n
    return words[:n]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "settings"), [(5000, {}), (5000, {"prune": 8}), (1500, {"projective": True})])
def test_thousands_of_words_are_one_tree(n: int, settings: dict[str, Any]) -> None:
    """The result is a tree with one root, projective where that is asked, among short sentences that are parsed as alone."""
    model = DependencyParser(**settings).fit(X, Y)
    before, found, after = model.predict([X[0], long_sentence(n), X[1]])
    heads = found.heads.tolist()
    assert is_tree(heads)
    assert found.labels is not None
    assert len(found.labels) == n
    if settings.get("projective"):
        assert not any(
            not min(h, m) <= heads[k - 1] <= max(h, m) for m, h in enumerate(heads, 1) for k in range(min(h, m) + 1, max(h, m))
        )
    alone = model.predict(X[:2])
    assert [before.heads.tolist(), after.heads.tolist()] == [tree.heads.tolist() for tree in alone]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"prune": 4}, {"projective": True}])
def test_a_million_words_are_refused_with_the_size(settings: dict[str, Any]) -> None:
    """Every method says how many GiB the scores would need, and of which sentence, before it makes room for them."""
    model = DependencyParser("oeg", 1.0, 1, **settings).fit(X, Y)
    n, none = 1_000_000, ["_"] * 1_000_000
    short = Sentence(["w"], ["_"], ["NOUN"], ["_"], ["_"])
    trees = [Tree(np.zeros(1, np.int64), ["root"]), Tree(np.arange(n), ["x"] * n)]
    treebank = Treebank.of([short, Sentence(["w"] * n, none, ["NOUN"] * n, none, none)], trees)
    what = r"(the (arc scores of|constraints on) a sentence of 1,000,000 words|the scores of 1,000,001,000,000 parts)"
    message = rf"^(dev: )?sample 1: {what} would need 7450\.6 GiB"
    calls: list[Any] = [
        lambda: model.predict(treebank),
        lambda: model.predict_marginals(treebank),
        lambda: model.predict_kbest(treebank, 2),
        lambda: model.predict(treebank, fixed=[None, {1: 0}]),
        lambda: model.score(treebank),
        lambda: DependencyParser(max_iter=1, **settings).fit(treebank),
        lambda: DependencyParser(max_iter=1, **settings).fit(X, Y, dev=treebank),
    ]
    for call in calls:
        with pytest.raises(DataError, match=message):
            call()


def test_what_does_not_fit_is_refused_at_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little memory a sentence of 3,000 words is refused by its scores; shorter ones are parsed."""
    model = DependencyParser(max_iter=1).fit(X, Y)
    monkeypatch.setattr(memory, "available_bytes", lambda: 65 << 20)
    assert len(model.predict([X[0], long_sentence(500)])) == 2
    for n_jobs in (1, 4):
        model.n_jobs = n_jobs
        with pytest.raises(DataError, match=r"^sample 2: the scores of 9,003,000 parts would need 0\.1 GiB"):
            model.predict([X[0], X[1], long_sentence(3000)])
