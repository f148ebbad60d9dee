"""Whether OR-Tools is there and can work; asked once per process."""

from functools import lru_cache

from structpred.runtime.dependencies import check_solver_versions, require_installed


@lru_cache(maxsize=64)
def check_ortools(needed_by: str) -> None:
    """Raise DependencyError, with the command that helps, where OR-Tools is missing or clashes with another library.

    Looking up versions takes longer than solving a small program, so that what was found once is not asked again.
    """
    require_installed("ortools", extra="solvers", needed_by=needed_by)
    check_solver_versions()
