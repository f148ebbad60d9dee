"""Promises of DependencyParser(attributes=...): templates look at these alone, in training, in prediction and after loading."""

from pathlib import Path
from typing import Any

import pytest
from parser_cases import corpus, plain

from structpred.errors import DataError, ParameterError
from structpred.models import DependencyParser, load
from structpred.models.parser.sentences import attributes_read

X, Y = corpus(20, 0, 0.3)


def only(*names: str) -> list[Any]:
    """The sentences with these keys alone."""
    return [[{name: token[name] for name in names} for token in tokens] for tokens in X]


READ = [(("form", "upos"), ["upos"]), (("form",), []), (("upos", "lemma"), ["lemma", "upos"])]


@pytest.mark.parametrize(("names", "read"), READ)
def test_the_others_have_no_part_in_the_model(names: tuple[str, ...], read: list[str], tmp_path: Path) -> None:
    """The weights are those of data that lack the others, pruning included; so are the trees, after loading, too."""
    settings: dict[str, Any] = {"max_iter": 2, "max_bits": 8, "prune": None if names == ("form",) else 3}
    model = DependencyParser(attributes=names, **settings).fit(X, Y)
    model.save(tmp_path / "m.spz")
    loaded = load(tmp_path / "m.spz")
    assert (attributes_read(model), tuple(loaded.attributes)) == (read, names)
    assert plain(loaded.predict(X)) == plain(model.predict(X)) == plain(model.predict(only(*{"form", *names})))
    if "form" in names:
        assert (DependencyParser(**settings).fit(only(*names), Y).coef_ == model.coef_).all()
    else:
        assert {name for template in model.templates_ for name in template.attributes} == {*names}


def test_none_is_all_that_there_is() -> None:
    """Without the setting the parser looks at every attribute that the treebank has, as with all of them listed."""
    model = DependencyParser(max_iter=1, max_bits=8).fit(X, Y)
    assert attributes_read(model) == ["lemma", "upos"]
    listed = DependencyParser(max_iter=1, max_bits=8, attributes=["form", "lemma", "upos"]).fit(X, Y)
    assert (listed.coef_ == model.coef_).all()


@pytest.mark.parametrize("wanted", [[], "upos", ["pos"], 3, ["upos", None], ["case"]])
def test_what_is_no_list_of_columns_is_refused(wanted: Any) -> None:
    """ParameterError with the names that there are."""
    with pytest.raises(ParameterError, match="attributes: expected some of form, lemma, upos, xpos, feats, in a list"):
        DependencyParser(attributes=wanted).fit(X, Y)


def test_what_the_treebank_lacks_is_said() -> None:
    """DataError names the attribute that no word has."""
    with pytest.raises(DataError, match="attributes: the parser is to look at xpos, but no word"):
        DependencyParser(attributes=["form", "xpos"]).fit(X, Y)
