"""check_sequence_estimator: what scikit-learn's check_estimator asks of estimators, for sequences of unequal lengths."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from estimator_contract import input_checks, interface_checks
from estimator_contract.input_checks import DoesNotApplyError, numbers
from structpred.errors import ParameterError, StructpredWarning

_GROUPS = (interface_checks, input_checks)
Check = Callable[[Any, Any, Any], None]


@dataclass(frozen=True)
class CheckResult:
    """One check: its name, its promise in one sentence, "passed", "failed" or "skipped", and the reason for the last two."""

    name: str
    promise: str
    outcome: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.name}: {self.promise}" + (f" [{self.reason}]" if self.reason else "")


@dataclass(frozen=True)
class CheckReport:
    """All checks of one estimator. As text: one line each."""

    estimator: str
    results: tuple[CheckResult, ...]

    def named(self, outcome: str) -> list[CheckResult]:
        """The checks with that outcome."""
        return [result for result in self.results if result.outcome == outcome]

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.named("failed")

    def __str__(self) -> str:
        counts = ", ".join(f"{len(self.named(outcome))} {outcome}" for outcome in ("passed", "failed", "skipped"))
        return "\n".join([f"{self.estimator}: {counts}", *map(str, self.results)])


def checks() -> Iterator[tuple[str, Check]]:
    """(name, check) of all checks: each takes an estimator, which it clones, X and y, and raises AssertionError with a reason."""
    for group in _GROUPS:
        for name, check in vars(group).items():
            if name.startswith("check_") and callable(check) and check.__module__ == group.__name__:
                yield name, check


def check_sequence_estimator(estimator: Any, *, raise_errors: bool = True) -> CheckReport:
    """Try an estimator that takes lists of sequences on small data, some fifty promises, and report on each.

    estimator: an instance, not fitted, with settings that train in a moment; it is cloned, never changed. It must take lists
    of 2-d arrays and lists of lists of feature dicts. Promises about what it does not have (sample_weight, n_jobs,
    predict_marginals, save) are skipped, and the report says so.

    Raises AssertionError naming every check that failed; with raise_errors=False only the report names them.

    >>> from structpred.models import ChainLabeler
    >>> report = check_sequence_estimator(ChainLabeler(max_iter=2))
    >>> report.ok, len(report.named("passed")) >= 30
    (True, True)
    """
    if isinstance(estimator, type):
        raise ParameterError(f"expected an instance such as {estimator.__name__}(), got the class")
    report = CheckReport(repr(estimator), tuple(_run(name, check, estimator) for name, check in checks()))
    if raise_errors and not report.ok:
        lines = "\n".join(f"- {result.name}: {result.promise} {result.reason}" for result in report.named("failed"))
        raise AssertionError(f"{len(report.named('failed'))} of {len(report.results)} checks failed:\n{lines}")
    return report


def _run(name: str, check: Check, estimator: Any) -> CheckResult:
    promise = (check.__doc__ or "").strip().split("\n")[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StructpredWarning)
            check(estimator, *numbers())
    except DoesNotApplyError as reason:
        return CheckResult(name, promise, "skipped", str(reason))
    except Exception as error:  # whatever an estimator raises is a failed check, with its reason
        return CheckResult(name, promise, "failed", f"{type(error).__name__}: {error}")
    return CheckResult(name, promise, "passed")
