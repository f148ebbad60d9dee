"""What a run shows: nothing, lines, a bar, or one output of a notebook; and that showing it changes no result."""

import io
import re
import sys
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sklearn.base import clone
from training_cases import chain_task, problem

from structpred import models
from structpred.errors import ParameterError
from structpred.models import ChainLabeler, DependencyParser, LinearClassifier, RobustSVM
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.running import progress

X, y = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}, {"w": "b"}]] * 2, [["A", "B"], ["B", "B"]] * 2
LINE = re.compile(r"pass +(\d+) +\d+\.\d s  primal \S+  gap \S+ %( +dev 100\.00 %)?")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Handle:
    """What stands for the output of a cell: all that was shown in it, one after the other."""

    def __init__(self, view: Any) -> None:
        self.views = [view]

    def update(self, view: Any) -> None:
        self.views.append(view)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[Handle]:
    """The outputs of a notebook's cell."""
    made: list[Handle] = []

    def display(view: Any, display_id: bool) -> Handle:
        made.append(Handle(view))
        return made[-1]

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    return made


def test_a_line_for_each_pass(capfd: pytest.CaptureFixture[str]) -> None:
    """verbose=1 writes a line a pass to stderr, with seconds, primal, gap and the held-out score, and nothing to stdout."""
    ChainLabeler(max_iter=4, check_every=1, verbose=1).fit(X, y, dev=(X, y))
    out, err = capfd.readouterr()
    found = [LINE.fullmatch(line) for line in err.splitlines()]
    assert out == ""
    assert [line and line[1] for line in found] == ["1", "2", "3", "4"]
    assert all(line and line[2] for line in found)


def test_the_stages_of_a_training_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    """A parser tells arcs from relations; a table of labels names the column that a run is for."""
    sentence = [{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}]
    DependencyParser(max_iter=1, verbose=1).fit([sentence], [[(2, "nsubj"), (0, "root")]])
    LinearClassifier(max_iter=1, verbose=1).fit([[0.0], [1.0]], [[0, 1], [1, 0]])
    said = [line.split(":")[0] for line in capfd.readouterr().err.splitlines()]
    assert said == ["arcs", "relations", "0", "1"]


def test_short_passes_without_news_are_not_told(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of passes that take less than a tenth of a second only those with an objective or a score have a line."""
    now = iter(range(1_000))
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: 0.04 * next(now)))
    train(problem(chain_task()), BCFW(), RunSettings(max_iter=10, check_every=5, verbose=1))
    said = [int(line.split()[1]) for line in capfd.readouterr().err.splitlines()]
    assert said == [1, 4, 5, 8, 10]


def test_a_terminal_is_silent_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a bar shows trainer and pass below the lines, with verbose=1, and is gone in the end; without it: nothing."""
    for verbose, shown in ((0, False), (1, True)):
        screen = Terminal()
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setenv("COLUMNS", "120")  # on a narrow screen names are cut
        train(problem(chain_task(n=200)), BCFW(), RunSettings(max_iter=20, check_every=1, verbose=verbose))
        assert bool(re.search("BCFW: (pass|computing)", screen.getvalue())) is shown  # a quick run has few frames
        assert ("pass  20 " in screen.getvalue()) is shown
        assert bool(screen.getvalue()) is shown
        assert not screen.getvalue().split("\r")[-1]
        assert all("[" not in line.split("\r")[-1] for line in screen.getvalue().split("\n"))  # lines are written where none is


def test_the_time_left_is_told_once_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second after the start: what is left if the rest goes as fast. The bar moves four times a second at most."""
    now = iter([0.0, 0.5, 0.6, 3.0])
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: next(now)))
    row: Any = {"passes": 3, "seconds": 1.5, "primal": 2.0, "dual": 1.9, "gap": 0.1, "dev_score": None}
    with progress.display_of(1, "BCFW", 4, "") as bar:
        bar.update(0, 0.5, [])
        bar.update(0, 0.6, [])
        bar.update(3, 0.0, [row])
    shown = [text.rstrip() for text in screen.getvalue().split("\r") if "[" in text]
    assert shown == [
        "[==                  ]              BCFW: pass 1 of 4",
        "[===============     ]    1 s left  BCFW: pass 4 of 4, gap 0.1",
    ]


def test_a_notebook_has_one_output(cell: list[Handle], capfd: pytest.CaptureFixture[str]) -> None:
    """A long run has one output in a cell, with a bar while it runs; in the end it has the last few rows and no bar."""
    ChainLabeler(max_iter=40, check_every=1, verbose=1).fit(X, y)
    assert capfd.readouterr() == ("", "")
    assert len(cell) == 1
    first, last = (cell[0].views[k]._repr_html_() for k in (0, -1))
    assert "<progress" in first
    assert "BCFW: pass 1 of 40" in first
    assert "<progress" not in last
    assert re.search(r"BCFW: 40 passes in \d+\.\d s", last)
    assert re.findall(r'<tr><td class="number">(\d+)</td>', last) == [str(k) for k in range(33, 41)]


def test_names_in_a_notebook_stay_text(cell: list[Handle]) -> None:
    """The name of a label in the heading is text, not markup."""
    with progress.display_of(1, "BCFW", 3, "<b>\u202e"):
        pass
    assert all("<b>" not in view._repr_html_() and "\u202e" not in view._repr_html_() for view in cell[0].views)
    assert "&lt;b&gt;" in cell[0].views[-1]._repr_html_()


def test_what_is_shown_changes_no_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A checkpoint of a silent run is continued by one that is shown, to the same bits; a model file does not hold verbose."""
    whole = ChainLabeler(max_iter=6).fit(X, y)
    path = tmp_path / "run.ckpt"
    ChainLabeler(max_iter=3, checkpoint=path).fit(X, y)
    shown = ChainLabeler(max_iter=6, checkpoint=path, resume=True, verbose=1).fit(X, y)
    assert shown.coef_.tobytes() == whole.coef_.tobytes()
    shown.save(tmp_path / "m.spz")
    assert ChainLabeler.load(tmp_path / "m.spz").verbose == 0
    assert "pass   6" in capfd.readouterr().err


def test_machines_tell_each_better_solution(capfd: pytest.CaptureFixture[str]) -> None:
    """A classifier that chooses labels, points or states writes a line for each better choice, and none without verbose."""
    rows, classes = [[-2.0], [-1.0], [1.0], [2.0], [9.0]], ["a", "a", "b", "b", "a"]
    machine = RobustSVM("linear", C=10.0, verbose=1).fit(rows, classes)
    assert len(capfd.readouterr().err.splitlines()) == len(machine.history_) > 0
    machine.set_params(verbose=0).fit(rows, classes)
    assert capfd.readouterr().err == ""


def test_every_model_has_it() -> None:
    """Every class of models that has a fit with labels has the setting, silent by default."""
    found = [getattr(models, name) for name in models.__all__ if name[0].isupper()]
    fitted = [kind for kind in found if hasattr(kind, "predict")]
    assert len(fitted) >= 14
    for kind in fitted:
        assert signature(kind).parameters["verbose"].default == 0, kind


def test_verbose_is_a_setting_of_scikit_learn() -> None:
    """It is among the parameters, clones keep it, and anything but a whole number from 0 on is refused before training."""
    model = ChainLabeler(verbose=1)
    assert model.get_params()["verbose"] == clone(model).verbose == 1
    for wrong in (-1, "loud", 0.5):
        with pytest.raises(ParameterError, match=r"verbose must be 0 .* got"):
            ChainLabeler(verbose=wrong).fit(X, y)  # type: ignore[arg-type]
