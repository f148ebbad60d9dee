"""Promises of structpred.runtime.dependencies: one clear sentence instead of a crash of the loader."""

import pytest

from structpred.errors import DependencyError
from structpred.runtime import dependencies


@pytest.mark.parametrize("highspy", ["1.15.0", "1.15.1", "1.16.0rc1", "2.0"])
def test_a_clashing_highspy_is_refused(highspy: str) -> None:
    """Every highspy from 1.15 on is refused with OR-Tools, naming both versions and the command that fixes it."""
    message = dependencies.solver_clash(highspy, "9.15.6755")
    assert message is not None
    assert highspy in message
    assert "9.15.6755" in message
    assert "pip install 'highspy>=1.14,<1.15'" in message


@pytest.mark.parametrize(
    ("highspy", "ortools"), [("1.14.0", "9.15.6755"), (None, "9.15.6755"), ("1.15.1", None), ("1.9.0", "9.14")]
)
def test_versions_that_get_along_are_let_through(highspy: str | None, ortools: str | None) -> None:
    """An older highspy, or one of the two alone, is no clash."""
    assert dependencies.solver_clash(highspy, ortools) is None


def test_the_check_reads_the_installed_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """check_solver_versions raises DependencyError for the versions that are installed."""
    monkeypatch.setattr(dependencies, "installed_version", {"highspy": "1.15.1", "ortools": "9.15.6755"}.get)
    with pytest.raises(DependencyError, match=r"highspy 1\.15\.1 and ortools"):
        dependencies.check_solver_versions()


def test_the_installed_solvers_get_along() -> None:
    """The pinned versions of this environment pass the check."""
    dependencies.check_solver_versions()


def test_a_missing_library_is_named_with_its_extra() -> None:
    """Something not installed raises DependencyError with who needs it and the command to install it."""
    with pytest.raises(DependencyError, match=r"the LP oracle needs nonesuch-lib.*pip install 'structpred\[solvers\]'"):
        dependencies.require_installed("nonesuch-lib", extra="solvers", needed_by="the LP oracle")
