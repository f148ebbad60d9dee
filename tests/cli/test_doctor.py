"""Promises of structpred.cli.doctor: a true verdict per line, and what to do about each that is not well."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from structpred.cli import doctor


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No child process is started: every library imports and every solver solves."""
    monkeypatch.setattr(doctor, "_run", lambda code: "")


def named(findings: list[doctor.Finding], name: str) -> doctor.Finding:
    """The finding of that name."""
    return next(f for f in findings if f.name == name)


@pytest.mark.slow
def test_this_environment_is_sound() -> None:
    """Where the tests run, every library loads and both solvers solve in both import orders, in real processes."""
    found = doctor.diagnose()
    assert doctor.is_sound(found), doctor.render(found)
    assert named(found, "cvxpy, then ortools").verdict == "ok"
    assert named(found, "ortools, then cvxpy").verdict == "ok"


def test_every_library_and_check_has_a_line(quiet: None) -> None:
    """The diagnosis covers Python, structpred, the libraries, the solvers in both orders, the kernel cache and the data."""
    names = [f.name for f in doctor.diagnose()]
    assert names[:2] == ["python", "structpred"]
    for name in ("numpy", "scipy", "numba", "scikit-learn", "ortools", "cvxpy", "highspy", "kernel cache", "data folder"):
        assert names.count(name) == 1


def test_a_missing_required_library_fails(quiet: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without numba the exit code is 1 and the line says how to install it."""
    monkeypatch.setattr(doctor, "installed_version", lambda name: None if name == "numba" else "1.0")
    found = doctor.diagnose()
    assert not doctor.is_sound(found)
    assert named(found, "numba").verdict == "missing"
    assert "pip install 'structpred'" in named(found, "numba").advice


def test_missing_solvers_are_no_failure(quiet: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solvers are an extra: without them the exit code is 0, and the line names the extra."""
    monkeypatch.setattr(doctor, "installed_version", lambda name: None if name in ("ortools", "cvxpy", "highspy") else "1.0")
    found = doctor.diagnose()
    assert doctor.is_sound(found)
    assert named(found, "ortools").verdict == named(found, "solvers together").verdict == "missing"
    assert "structpred[solvers]" in named(found, "cvxpy").advice


def test_a_library_that_does_not_import_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is installed but fails to import is broken, with its own error in the line."""
    monkeypatch.setattr(doctor, "LIBRARIES", (("numpy", "no_such_module_at_all", None),))
    monkeypatch.setattr(doctor, "_solver_orders", list)
    found = doctor.diagnose()
    assert not doctor.is_sound(found)
    assert named(found, "numpy").verdict == "broken"
    assert "No module named 'no_such_module_at_all'" in named(found, "numpy").detail


def test_clashing_versions_are_broken(quiet: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A highspy that clashes with OR-Tools fails the diagnosis and names the version to install."""
    monkeypatch.setattr(doctor, "installed_version", lambda name: "1.15.1")
    found = doctor.diagnose()
    assert not doctor.is_sound(found)
    assert named(found, "highspy beside ortools").advice == "python -m pip install 'highspy>=1.14,<1.15'"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", ""),
        ("raise ValueError('the last line')", "ValueError: the last line"),
        ("import os; os.abort()", "the process was ended by signal 6"),
        ("import sys; sys.exit(3)", "exit code 3"),
    ],
)
def test_child_processes_are_reported_truly(code: str, said: str) -> None:
    """A child's error, crash or exit code becomes one line; success is the empty text."""
    assert doctor._run(code) == said


def test_the_data_folder_is_looked_for(quiet: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of STRUCTPRED_DATA; a folder that is not there is missing, not a failure."""
    monkeypatch.setenv("STRUCTPRED_DATA", str(tmp_path / "nowhere"))
    missing = doctor.diagnose()
    assert named(missing, "data folder").verdict == "missing"
    assert doctor.is_sound(missing)
    (tmp_path / "one_set").mkdir()
    monkeypatch.setenv("STRUCTPRED_DATA", str(tmp_path))
    assert named(doctor.diagnose(), "data folder").detail == f"{tmp_path} (1 entries)"


def test_text_and_json_say_the_same(quiet: None) -> None:
    """Both renderings carry every finding, and the exit code is 0 where all is well."""
    found = doctor.diagnose()
    run = CliRunner().invoke(doctor.doctor, ["--json"])
    text, data = doctor.render(found), json.loads(run.output)
    assert data["ok"] is True
    assert run.exit_code == 0
    assert [entry["name"] for entry in data["findings"]] == [f.name for f in found]
    for f in found:
        assert f.detail in text
        assert f.advice in text
    assert text.endswith("Everything that structpred needs is there and works.")


def test_what_is_not_installed_does_not_clash(quiet: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without highspy and OR-Tools nothing is said of how they go together, and matplotlib has a line of its own."""
    monkeypatch.setattr(doctor, "installed_version", lambda name: None if name in ("highspy", "ortools") else "1.0")
    names = [finding.name for finding in doctor.diagnose()]
    assert "highspy beside ortools" not in names
    assert "matplotlib" in names
