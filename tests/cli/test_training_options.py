"""Promises of the options about trainers, hashing, constraints and threads, and of predictions as JSON."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from structpred.cli.curve import curve
from structpred.cli.kinds.sequences import Sequences
from structpred.cli.train import train_command
from structpred.evaluation.model_selection import select_sequences
from structpred.io import read_columns
from structpred.models import ChainLabeler

Here = Callable[..., tuple[int, str, str]]
CHUNKING = ("--format", "conll2000", "--template", "chunking")


def trained(here: Here, corpus: Path, folder: Path, *options: str) -> ChainLabeler:
    """The model that `train chain` makes of the small corpus."""
    code, _, err = here("train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", "m.spz", "-q", *options, cwd=folder)
    assert code == 0, err
    return ChainLabeler.load(folder / "m.spz")


def test_defaults_are_the_estimators() -> None:
    """What the command line takes by default is what Python takes; so does `curve`."""
    given = train_command(Sequences()).make_context("chain", ["-", "-o", "m.spz", *CHUNKING]).params
    defaults = ChainLabeler().get_params()
    compared = set(given) & set(defaults) - {"checkpoint", "template", "dev_metric", "missing"}  # files mark it by _
    assert len(compared) == 18
    assert {name: given[name] for name in compared} == {name: defaults[name] for name in compared}
    curves = curve.make_context("curve", ["-", "--test", "-", *CHUNKING]).params
    assert {name: curves[name] for name in ("trainer", "C", "max_iter")} == {n: given[n] for n in ("trainer", "C", "max_iter")}


def test_templates_can_be_hashed(here: Here, corpus: Path, tmp_path: Path) -> None:
    """--n-bits goes with --template; the file says so, and evaluate and predict work from it as the estimator does."""
    model = trained(here, corpus, tmp_path, "--n-bits", "14", "--trainer", "sgd")
    assert (model.n_bits, model.n_features_in_) == (14, 2**14)
    rows = read_columns(corpus / "test.txt")
    alike = ChainLabeler("sgd", template="chunking", n_bits=14)
    train = read_columns(corpus / "train.txt")
    expected = alike.fit(train, train.labels()).predict(rows)
    out = here("predict", "m.spz", str(corpus / "test.txt"), cwd=tmp_path)[1]
    assert [line.split(" ")[-1] for line in out.split("\n") if line] == [str(y) for labels in expected for y in labels]
    code, out, _ = here("evaluate", "m.spz", str(corpus / "test.txt"), "--json", cwd=tmp_path)
    assert (code, json.loads(out)["f1"] > 0.8) == (0, True)


@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "perceptron", "mira", "oeg", "lbfgs", "owlqn", "pa", "arow"])
def test_every_trainer_has_its_name(here: Here, corpus: Path, tmp_path: Path, trainer: str) -> None:
    """Each trainer runs from the shell, and only those of the log loss make models with probabilities."""
    model = trained(here, corpus, tmp_path, "--trainer", trainer, "--max-iter", "2")
    assert model.trainer == trainer
    assert model.probabilistic_ == (trainer in ("oeg", "lbfgs", "owlqn"))


def test_sgd_takes_either_surrogate(here: Here, corpus: Path, tmp_path: Path) -> None:
    """--surrogate log makes sgd train a conditional random field."""
    assert trained(here, corpus, tmp_path, "--trainer", "sgd", "--surrogate", "log").probabilistic_
    assert not trained(here, corpus, tmp_path, "--trainer", "sgd", "--surrogate", "margin").probabilistic_


def test_constraints_are_kept_in_the_model(here: Here, corpus: Path, tmp_path: Path) -> None:
    """With --constraints iob2, or a coding, none of the twenty best breaks the rules; without them some do."""
    broken = {}
    for options in (("--constraints", "iob2", "--coding", "none"), ("--coding", "none"), ("--constraints", "iob2"), ()):
        found_rules = trained(here, corpus, tmp_path, *options).constraints
        assert (found_rules.scheme if "--constraints" in options else found_rules) == (
            "iob2" if "--constraints" in options else None
        )
        model = str(tmp_path / "m.spz")
        out = here("predict", model, str(corpus / "test.txt"), "--json", "--kbest", "20", cwd=tmp_path)[1]
        found = [best["labels"] for line in out.splitlines() for best in json.loads(line)["kbest"]]
        pairs = [(a, b) for labels in found for a, b in pairwise(["O", *labels])]
        broken[options] = sum(b[:2] == "I-" and a[1:] != b[1:] for a, b in pairs)
    assert [count > 0 for count in broken.values()] == [False, True, False, False]


def test_threads_do_not_change_the_result(here: Here, corpus: Path, tmp_path: Path) -> None:
    """--n-jobs 2 ends in the same weights and the same predictions as one thread."""
    one = trained(here, corpus, tmp_path, "--trainer", "lbfgs", "--max-iter", "3")
    two = trained(here, corpus, tmp_path, "--trainer", "lbfgs", "--max-iter", "3", "--n-jobs", "2")
    assert np.array_equal(one.coef_, two.coef_)
    outs = {here("predict", "m.spz", str(corpus / "test.txt"), "--n-jobs", n, cwd=tmp_path)[1] for n in ("1", "2", "-1")}
    assert len(outs) == 1


def test_pixels_have_an_intercept_unless_it_is_refused(here: Here, corpus: Path, tmp_path: Path) -> None:
    """OCR letters get a constant feature, and --no-intercept leaves it out."""
    for options, names in (((), ["intercept"]), (("--no-intercept",), [])):
        data = (str(corpus / "train.data"), "--format", "ocr", "-o", "o.spz")
        assert here("train", "chain", *data, "--max-iter", "1", "-q", *options, cwd=tmp_path)[0] == 0
        assert ChainLabeler.load(tmp_path / "o.spz").input_.feature_names()[128:] == names


WRONG = {
    "surrogate of another trainer": (
        ("--trainer", "bcfw", "--surrogate", "log"),
        "BCFW cannot minimise LogLoss; trainers that can: bmrm, lbfgs",
    ),
    "strict without a certificate": (("--trainer", "mira", "--strict", "--tol", "0.1"), "mira has none"),
    "no threads": (("--n-jobs", "0"), "n_jobs must be"),
    "an intercept beside named features": (("--no-intercept",), "--no-intercept is for pixels, not for --format conll2000"),
    "counts of hashed features": (("--n-bits", "10", "--min-count", "2"), "hashing keeps no counts"),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_that_do_not_go_together(here: Here, corpus: Path, tmp_path: Path, name: str) -> None:
    """Each is refused with exit code 2 before anything is read."""
    options, message = WRONG[name]
    code, _, err = here("train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", "m.spz", *options, cwd=tmp_path)
    assert (code, message in err) == (2, True), err
    assert not list(tmp_path.iterdir())


def test_json_of_a_margin_model(here: Here, corpus: Path) -> None:
    """--json gives one object per sequence; there are labels and the best sequences, but no probabilities to be had."""
    command = ("predict", "chunk.spz", "test.txt")
    code, out, _ = here(*command, "--json", "--kbest", "3", cwd=corpus)
    entries = [json.loads(line) for line in out.splitlines()]
    expected = ChainLabeler.load(corpus / "chunk.spz").predict(read_columns(corpus / "test.txt"))
    assert code == 0
    assert [entry["labels"] for entry in entries] == [labels.tolist() for labels in expected]
    assert all(set(entry) == {"tokens", "labels", "kbest"} for entry in entries)
    for entry in entries:
        scores = [best["score"] for best in entry["kbest"]]
        assert (len(scores), scores) == (3, sorted(scores, reverse=True))
        assert entry["kbest"][0]["labels"] == entry["labels"]
    code, out, err = here(*command, "--json", "--marginals", cwd=corpus)
    assert (code, out, "not log-probabilities" in err) == (2, "", True)
    assert "train with --trainer lbfgs or oeg, or without probabilities: --kbest 2 shows" in err
    assert here(*command, "--marginals", cwd=corpus)[0] == 2


def test_json_of_a_random_field(here: Here, corpus: Path, tmp_path: Path) -> None:
    """A model with probabilities gives that of each label, and with --marginals those of all labels, which sum to one."""
    trained(here, corpus, tmp_path, "--trainer", "oeg", "--max-iter", "3")
    command = ("predict", "m.spz", str(corpus / "test.txt"), "--json")
    for line in here(*command, "--marginals", cwd=tmp_path)[1].splitlines():
        entry = json.loads(line)
        rows = zip(entry["labels"], entry["probabilities"], entry["marginals"], strict=True)
        assert all(p == table[label] and abs(sum(table.values()) - 1) < 1e-9 for label, p, table in rows)
    plain = [json.loads(line) for line in here(*command, cwd=tmp_path)[1].splitlines()]
    assert all(set(entry) == {"tokens", "labels", "probabilities"} for entry in plain)


def test_a_share_of_the_training_data_is_held_out(here: Here, corpus: Path, tmp_path: Path) -> None:
    """--dev-fraction trains on the other sequences and keeps the weights that do best on the share that the seed draws."""
    model = trained(
        here,
        corpus,
        tmp_path,
        "--trainer",
        "sgd",
        "--max-iter",
        "3",
        "--coding",
        "none",
        "--dev-fraction",
        "0.2",
        "--seed",
        "5",
        "--dev-metric",
        "token_accuracy",
    )
    rows = read_columns(corpus / "train.txt")
    drawn = np.random.default_rng(5).permutation(len(rows))
    rest, held_out = (np.sort(part).tolist() for part in (drawn[len(rows) // 5 :], drawn[: len(rows) // 5]))
    (X, y), dev = ((select_sequences(rows, part), [rows.labels()[i] for i in part]) for part in (rest, held_out))
    alike = ChainLabeler("sgd", max_iter=3, template="chunking", random_state=5).fit(X, y, dev=dev)
    assert model.history_[-1]["dev_score"] == alike.history_[-1]["dev_score"] is not None
    assert np.array_equal(model.coef_, alike.coef_)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--dev", "test.txt", "--dev-fraction", "0.1"), "--dev FILE and --dev-fraction exclude each other"),
        (("--dev-fraction", "0.999"), "leaves nothing to train on: TRAIN has 120 sequences"),
        (("--dev-fraction", "1"), "0<x<1"),
        (("--patience", "2"), "--patience needs --dev FILE or --dev-fraction"),
    ],
)
def test_a_share_that_cannot_be_held_out(here: Here, corpus: Path, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    """--dev-fraction with --dev, and a share that leaves no sequence to train on, are wrong usage; nothing is written."""
    code, _, err = here("train", "chain", "train.txt", *CHUNKING, "-o", str(tmp_path / "m.spz"), *options, cwd=corpus)
    assert (code, said in err) == (2, True), err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_coding_is_in_the_model_and_the_answers_in_the_users_scheme(here: Here, corpus: Path, tmp_path: Path) -> None:
    """--coding, with a label that breaks the scheme, and constraints: commands speak IOB2, weights and marginals IOBES."""
    rows = (corpus / "train.txt").read_text().split("\n")
    first = next(k for k, row in enumerate(rows) if row.endswith("B-NP"))
    assert first == 0 or not rows[first - 1] or rows[first - 1].endswith("O")
    rows[first] = rows[first].replace("B-NP", "I-NP")
    (tmp_path / "broken.txt").write_text("\n".join(rows))
    command = ("train", "chain", "broken.txt", *CHUNKING, "--trainer", "lbfgs", "--coding", "iobes", "--constraints", "iobes")
    code, _, err = here(*command, "-o", "m.spz", "-q", cwd=tmp_path)
    assert code == 0, err
    model, test = ChainLabeler.load(tmp_path / "m.spz"), str(corpus / "test.txt")
    assert model.coding_ == ("iobes", "iob2")
    code, out, _ = here("predict", "m.spz", test, "--json", "--marginals", "--kbest", "2", cwd=tmp_path)
    for entry in map(json.loads, out.splitlines()):
        assert {label[:1] for label in entry["labels"]} <= set("BIO")
        assert entry["kbest"][0]["labels"] == entry["labels"]
        forms = {"B": "BS", "I": "IE", "O": "O"}
        for label, share, table in zip(entry["labels"], entry["probabilities"], entry["marginals"], strict=True):
            assert share in [table.get(form + label[1:]) for form in forms[label[0]]]
            assert sum(table.values()) == pytest.approx(1.0)
    assert json.loads(here("evaluate", "m.spz", test, "--json", cwd=tmp_path)[1])["f1"] > 0.8
    assert "iobes inside, iob2 in answers" in here("inspect", "m.spz", cwd=tmp_path)[1]
    assert here("explain", "m.spz", test, "--position", "0", cwd=tmp_path)[0] == 0
    assert here("report", "m.spz", test, "-o", "page.html", cwd=tmp_path)[0] == 0
