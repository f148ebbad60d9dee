"""`structpred prune`: models without the groups of features that do not matter."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import Shell

from structpred.models import ChainLabeler, DependencyParser, load

#: the third column tells nothing
ROWS = [[(f"w{(k * j) % 3}", f"t{(k + j) % 2}", f"n{j}") for j in range(4)] for k in range(12)]
Y = [["a" if word == "w0" else "b" for word, _, _ in row] for row in ROWS]
TEMPLATES = "U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-2,2]/%x[0,2]\n"


@pytest.fixture
def trained(tmp_path: Path) -> ChainLabeler:
    """A chain model by online multiple kernel learning, and its file m.spz."""
    (tmp_path / "t.txt").write_text(TEMPLATES)
    model = ChainLabeler("online_mkl", C=0.05, max_iter=5, template=str(tmp_path / "t.txt"), check_every=5).fit(ROWS, Y)
    model.save(tmp_path / "m.spz")
    return model


def test_groups_that_are_zero_are_dropped_and_nothing_else_changes(trained: ChainLabeler, shell: Shell, tmp_path: Path) -> None:
    """The smaller model predicts the same, its certificate stays, and its templates can be trained with."""
    zero = [name for name, norm in zip(trained.group_names_, trained.group_norms_.tolist(), strict=True) if norm == 0.0]
    assert "U01:%x[0,1]" in zero
    done = shell("prune", "m.spz", "-o", "small.spz", "--templates", "kept.json", "--picture", "g.png", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [row["group"] for row in told["groups"] if row["dropped"]] == zero
    assert told["weights"]["after"] < told["weights"]["before"] == len(trained.coef_)
    small = load(tmp_path / "small.spz")
    assert small.certificate_ == trained.certificate_
    assert [p.tolist() for p in small.predict(ROWS)] == [p.tolist() for p in trained.predict(ROWS)]
    again = ChainLabeler("bcfw", template=str(tmp_path / "kept.json")).fit(ROWS, Y)
    assert again.group_names_ == [name for name in trained.group_names_ if name not in zero or name == "start and stop"]
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_not_zero_costs_the_certificate(trained: ChainLabeler, shell: Shell, tmp_path: Path) -> None:
    """The lower bound is kept, the primal is not known; scores are those with zeros in the place of the group."""
    done = shell("prune", "m.spz", "-o", "small.spz", "--below", "0.4")
    assert done.returncode == 0, done.stderr
    small, names = load(tmp_path / "small.spz"), trained.group_names_
    shares = trained.group_norms_ / trained.group_norms_.sum()
    gone = [name for name, share in zip(names, shares.tolist(), strict=True) if 0.0 < share <= 0.4]
    assert gone
    assert small.certificate_.primal is None
    assert small.certificate_.dual == trained.certificate_.dual
    w = trained.coef_.copy()
    w[np.repeat(shares <= 0.4, np.diff(trained.groups_))] = 0
    trained.coef_ = w
    assert [p.tolist() for p in small.predict(ROWS)] == [p.tolist() for p in trained.predict(ROWS)]


def test_templates_of_a_parser_are_dropped(shell: Shell, tmp_path: Path) -> None:
    """Blocks of weights go with their templates; the heads stay the same where the weights were zero."""
    X = [[{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}]] * 3
    parser = DependencyParser("online_mkl", C=0.02, max_iter=3).fit(X, [[(2, "nsubj"), (0, "root")]] * 3)
    parser.save(tmp_path / "p.spz")
    zero = [name for name, norm in zip(parser.group_names_, parser.group_norms_.tolist(), strict=True) if norm == 0.0]
    done = shell("prune", "p.spz", "-o", "small.spz", "--templates", "kept.txt")
    assert done.returncode == 0, done.stderr
    small = load(tmp_path / "small.spz")
    assert 0 < len(small.templates_) == len(parser.templates_) - len([name for name in zero if "each tag" not in name])
    assert (tmp_path / "kept.txt").read_text().splitlines() == [str(template) for template in small.templates_]
    assert small.predict(X)[0].heads.tolist() == parser.predict(X)[0].heads.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("prune", "m.spz", "-o", "m.spz"), "m.spz"),
        (("prune", "m.spz", "-o", "s.spz", "--below", "1.5"), "--below"),
        (("prune", "m.spz", "-o", "s.spz", "--below", "1"), "at least one template"),
        (("prune", "m.spz", "-o", "s.spz", "--templates", "kept.txt"), "ends in .json"),
        (("prune", "m.spz", "-o", "s.spz", "--picture", "g.gif"), ".png or .svg"),
        (("prune", "none.spz", "-o", "s.spz"), "MODEL none.spz: there is no such file"),
    ],
)
def test_wrong_input_is_refused_in_words(
    trained: ChainLabeler, shell: Shell, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """Nothing is written where options do not fit."""
    done = shell(*arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert not (tmp_path / "kept.txt").exists()
    assert not (tmp_path / "s.spz").exists()


def test_a_picture_needs_shares_along_training(shell: Shell, tmp_path: Path) -> None:
    """Other trainers do not report them: the error says which does."""
    ChainLabeler("sgd").fit(ROWS_AS_DICTS, Y).save(tmp_path / "m.spz")
    done = shell("prune", "m.spz", "-o", "s.spz", "--picture", "g.png")
    assert done.returncode != 0
    assert "online_mkl" in done.stderr


ROWS_AS_DICTS = [[{word: 1.0} for word, _, _ in row] for row in ROWS]


def test_training_looks_at_its_weights_without_small_groups(shell: Shell, tmp_path: Path) -> None:
    """Where groups of less than a thousandth are dropped the gap is known: the primal of the weights that are left."""
    X = [[{"a": 1.0}, {"b": 1.0}], [{"b": 1.0}, {"a": 1.0}]] * 3
    model = ChainLabeler("online_mkl", C=1.0, max_iter=30, check_every=30).fit(X, [["p", "q"], ["q", "p"]] * 3)
    small = [name for name, mark in zip(model.group_names_, model.report_["small_groups"].tolist(), strict=True) if mark]
    primal, dual = model.report_["bounds_without"].tolist()
    assert small
    assert dual == model.certificate_.dual
    assert primal >= dual
    without = model.without_groups(small)
    assert without.certificate_.primal in (primal, model.certificate_.primal)
    other = model.without_groups(["features"])
    assert other.certificate_.primal is None
    assert other.without_groups(small).certificate_.primal is None
