"""Promises of `bench ocr-mkl`: the table, the paper's figures, and how much is run."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from structpred.experiments.ocr_kernels import KERNELS, Model, Plan, chosen, held_out, labeler, parted
from structpred.experiments.ocr_mkl import PAPER, OcrKernels, Row, Table
from structpred.features.positions import PositionSequences
from structpred.io.ocr import OcrWords, read_ocr
from structpred.models.kernels.gram import gram_of
from structpred.models.kernels.inputs import canonical
from structpred.trainers.proximal import OnlineProximal

Here = Callable[..., tuple[int, str, str]]


def linear(words: OcrWords) -> PositionSequences:
    """Words with the linear kernel."""
    return Model("linear", ("L",)).packed({"L": gram_of(KERNELS["L"], canonical(words.packed()))}, words.offsets)


@pytest.mark.slow
def test_kernels_are_compared(here: Here, data_dir: Path, tmp_path: Path) -> None:
    """A line for each model, weights of groups that sum to one, and the batch optimum with its gap."""
    common = ("bench", "ocr-mkl", "--quick", "--only", "second", "--data", str(data_dir))
    code, out, err = here(*common, "--batch", cwd=tmp_path)
    assert code == 0, err
    assert [line[:12].strip() for line in out.splitlines()[3:7]] == ["B1-spline", "average L+B1", "MKL L+B1", "MKL L+B1, ba"]
    assert "85.2" not in out
    table = json.loads(here(*common, "--json", cwd=tmp_path)[1])
    assert [row["model"] for row in table["rows"]] == ["B1-spline", "average L+B1", "MKL L+B1"]
    for row in table["rows"]:
        assert sum(row["weights"]) == pytest.approx(1.0)
        assert row["mean"] > 25.0
        assert "paper" not in row
    assert here(*common, "--folds", "0", cwd=tmp_path)[0] != 0


@pytest.mark.slow
def test_folds_that_are_done_are_kept(here: Here, data_dir: Path, tmp_path: Path) -> None:
    """A second run takes them from the folder; other settings are refused."""
    common = ("bench", "ocr-mkl", "--quick", "--json", "--output", "done", "--data", str(data_dir))
    first = here(*common, "--only", "second", cwd=tmp_path)
    assert first[0] == 0, first[2]
    path = tmp_path / "done" / "fold-0.json"
    kept = json.loads(path.read_text())
    kept["found"][0]["C"] = 7.0
    path.write_text(json.dumps(kept))
    again = json.loads(here(*common, "--only", "second", cwd=tmp_path)[1])
    expected = json.loads(first[1])
    expected["rows"][0]["C"] = [7.0]
    assert again | {"cpu_seconds": 0.0} == expected | {"cpu_seconds": 0.0}
    code, _, err = here(*common, "--only", "first", cwd=tmp_path)
    assert code != 0
    assert "expected a run with" in err


def test_each_claim_is_met_or_not() -> None:
    """A claim for each comparison whose models were run, under the names of the list; the paper's own figures meet all."""

    def met(rows: list[Row]) -> list[bool | None]:
        return [one.met for one in OcrKernels().claims(Table(10, 1, 1, 1, rows, 1.0))]

    rows = [Row(model, [], [m], m, 0.0, [1.0], [1.0], s, [], PAPER[model], None) for model, (m, _, s) in PAPER.items()]
    assert met(rows) == [True, True, True, True, True]
    assert met(rows[:5]) == [True, True]
    assert met(rows[5:]) == [True]
    one_less = [replace(row, mean=row.mean - 0.1, seconds=row.seconds + 0.1) if "MKL" in row.model else row for row in rows]
    assert met(one_less) == [False, False, False, False, False]
    listed = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "claims.json").read_text())
    own = {one.claim for one in OcrKernels().claims(Table(10, 1, 1, 1, rows, 1.0))}
    assert own <= {one["claim"] for one in listed}


def test_quick_words_are_not_trained_on(data_dir: Path) -> None:
    """No word that a quick run tests on was trained on, and there are many different ones."""
    parts = parted(read_ocr(data_dir / "ocr_letters" / "letter.data.gz"), 0, Plan.quick().most)
    train, test = ({"".join(word) for word in some.letters} for some in parts)
    assert not train & test
    assert min(len(train), len(test)) > 20


@pytest.mark.slow
def test_step_sizes_beyond_the_grid(data_dir: Path) -> None:
    """A grid far below the best step size ends where one that holds it does."""
    words = read_ocr(data_dir / "ocr_letters" / "letter.data.gz").select(np.arange(0, 600, 20))
    whole, low = (Plan(2, 2, 2, (1.0,), rates) for rates in ((1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0), (1e-3, 1e-2)))
    best, from_below = (chosen(linear(words), words.letters, plan).trainer for plan in (whole, low))
    assert isinstance(best, OnlineProximal)
    assert isinstance(from_below, OnlineProximal)
    assert from_below.eta0 == pytest.approx(best.eta0)
    assert from_below.eta0 > 0.05


def test_what_is_run(here: Here, tmp_path: Path) -> None:
    """The help page says how many runs there are; missing data are named."""
    assert "--folds" in here("bench", "ocr-mkl", "--help", cwd=tmp_path)[1]
    code, _, err = here("bench", "ocr-mkl", "--data", str(tmp_path), cwd=tmp_path)
    assert code != 0
    assert "letter.data" in err


@pytest.mark.slow
def test_the_constant_is_cross_validated(data_dir: Path) -> None:
    """The C is taken whose models label most letters of the held-out words correctly, each word being held out once."""
    words = read_ocr(data_dir / "ocr_letters" / "letter.data.gz").select(np.arange(60))
    X, plan = linear(words), Plan(epochs=3, trial=1, parts=3, grid=(1e-6, 1.0, 1e-5), rates=(1.0,))
    right = [held_out(labeler(X, C, 1.0, 3), X, words.letters, 3) for C in plan.grid]
    assert max(right) <= 1.0
    assert np.argmax(right) == 1
    assert chosen(X, words.letters, plan).C == 1.0
