"""Checks of installed libraries before they are imported: clear sentences instead of a crash of the dynamic loader."""

import re
from importlib.metadata import PackageNotFoundError, version

from structpred.errors import DependencyError

# highspy 1.15 brings a shared library of the same name as the one inside OR-Tools (both HiGHS, of different versions); the
# loader keeps whichever came first, and the second importer fails. 1.14 links it statically. See or-tools issue 5246.
HIGHSPY_CLASHES_FROM = (1, 15)


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, None if it is not there; nothing is imported.

    >>> installed_version("no-such-distribution") is None
    True
    """
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def require_installed(distribution: str, *, extra: str, needed_by: str) -> str:
    """The version of `distribution`; raises DependencyError with the command that installs it if it is missing.

    >>> require_installed("numpy", extra="solvers", needed_by="this example").count(".") >= 1
    True
    """
    found = installed_version(distribution)
    if found is None:
        raise DependencyError(
            f"{needed_by} needs {distribution}, which is not installed: python -m pip install 'structpred[{extra}]'"
        )
    return found


def check_solver_versions() -> None:
    """Raise DependencyError if the installed highspy and OR-Tools cannot live in one process.

    To be called before ortools or cvxpy is imported. It asks for installed versions only, so it costs well under a millisecond
    after the first call and works in either import order.
    """
    message = solver_clash(installed_version("highspy"), installed_version("ortools"))
    if message is not None:
        raise DependencyError(message)


def solver_clash(highspy: str | None, ortools: str | None) -> str | None:
    """What is wrong with these two versions side by side (None: not installed), or None if nothing is.

    >>> solver_clash("1.14.0", "9.15.6755") is None
    True
    >>> solver_clash("1.15.1", "9.15.6755")[:37]
    'highspy 1.15.1 and ortools 9.15.6755 '
    """
    numbers = re.findall(r"\d+", re.split(r"[^\d.]", highspy or "")[0])  # the leading ones: 1.15.0 of 1.15.0rc1
    if highspy is None or ortools is None or tuple(map(int, numbers)) < HIGHSPY_CLASHES_FROM:
        return None
    return (
        f"highspy {highspy} and ortools {ortools} cannot be used in one process (each brings its own libhighs.so.1, and the "
        "second one loaded breaks): python -m pip install 'highspy>=1.14,<1.15'"
    )
