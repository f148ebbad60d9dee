"""--surrogate: losses of part scores for each kind of model, what inspect and reports call them, and who cannot minimise them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from structpred.cli import training_options
from structpred.models.settings import surrogates
from structpred.objectives.names import multiclass_losses, scalar_losses

Here = Callable[..., tuple[int, str, str]]
NAMES = {"perturbed": "perturbed loss", "soft_margin": "soft margin", "sparsemap": "SparseMAP loss"}
FEW = ("--max-iter", "1", "-q", "--trainer")
TRAINERS = {"perturbed": "sgd", "soft_margin": "lbfgs", "sparsemap": "sgd"}


def test_the_shell_offers_all_but_losses_of_linear_models() -> None:
    """A surrogate with a name is one of `--surrogate`, unless it is for linear models alone."""
    assert set(training_options.SURROGATES) == set(surrogates()) - {*scalar_losses(), *multiclass_losses()}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", NAMES)
def test_each_kind_trains_with_it(name: str, here: Here, corpus: Path, treebanks: Path, labelled: Path, tmp_path: Path) -> None:
    """Chains, parsers and label sets are trained with it; the model file keeps it, and inspect and the page name it."""
    kinds = {
        "chain": (corpus / "test.txt", "--format", "conll2000", "--template", "chunking"),
        "parser": (treebanks / "dev.conllu",),
        "multilabel": (labelled / "weather-test.arff", "--edges", "tree"),
    }
    for kind, (data, *options) in kinds.items():
        model = str(tmp_path / f"{kind}.spz")
        done = here("train", kind, str(data), *options, "-o", model, "--surrogate", name, *FEW, TRAINERS[name], cwd=tmp_path)
        assert done[0] == 0, done[2]
        out = here("inspect", model, cwd=tmp_path)[1]
        assert f"{TRAINERS[name]}, {NAMES[name]}" in out
        assert "max-margin" not in out
    assert here("report", "chain.spz", str(corpus / "test.txt"), "-o", "chain.html", cwd=tmp_path)[0] == 0
    assert f"{TRAINERS[name]}, {NAMES[name]}" in (tmp_path / "chain.html").read_text()


def test_trainers_and_oracles_that_cannot_refuse(here: Here, labelled: Path, tmp_path: Path) -> None:
    """A trainer for maxima of linear functions, and a graph without marginals, are refused, with what would do."""
    train = ("train", "multilabel", "-o", "m.spz", "--surrogate")
    code, _, err = here(*train, "sparsemap", str(labelled / "weather-train.arff"), cwd=tmp_path)
    assert (code, "BCFW cannot minimise SparseMAPSurrogate; trainers that can: bmrm, lbfgs" in err) == (2, True), err
    every = ",".join(map(str, range(18)))  # too many labels to list all sets
    (tmp_path / "many.svm").write_text(f"{every} 1:1\n0,1 2:1\n")
    code, _, err = here(*train, "soft_margin", "--trainer", "lbfgs", "--edges", "complete", "many.svm", cwd=tmp_path)
    assert (code, "SoftMargin" in err, "marginals" in err) == (1, True, True), err
    assert not (tmp_path / "m.spz").exists()


def test_the_log_loss_needs_no_name_of_a_trainer(here: Here, labelled: Path, tmp_path: Path) -> None:
    """It is minimised by oeg, and the model has probabilities."""
    train, test = (str(labelled / f"weather-{part}.arff") for part in ("train", "test"))
    done = here("train", "multilabel", train, "--surrogate", "log", "--kernel", "rbf", "-o", "m.spz", cwd=tmp_path)
    assert done[0] == 0, done[2]
    assert "oeg" in here("inspect", "m.spz", cwd=tmp_path)[1]
    code, out, err = here("predict", "m.spz", test, "--json", "--marginals", cwd=tmp_path)
    assert (code, '"marginals"' in out) == (0, True), err
