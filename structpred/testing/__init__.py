"""Checks that users can run on estimators of their own."""

from structpred.testing.estimator_checks import CheckReport, CheckResult, check_sequence_estimator

__all__ = ["CheckReport", "CheckResult", "check_sequence_estimator"]
