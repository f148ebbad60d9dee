"""Reading a model file of any kind: the estimators are found by walking this package."""

import importlib
import os
from functools import cache
from typing import Any

from structpred.models.base import StructuredEstimator
from structpred.models.bundles import FORMAT_VERSION, read_model
from structpred.runtime.discovery import public_subclasses

__all__ = ["FORMAT_VERSION", "estimators", "load", "load_estimator"]


@cache
def estimators() -> dict[str, type[StructuredEstimator]]:
    """The estimators by name: a class in a file of this package is all that a new one needs."""
    found = public_subclasses("structpred.models", StructuredEstimator)  # type: ignore[type-abstract]
    return {kind.__name__: kind for kind in found}


def load(path: str | os.PathLike[str], *, oracle: Any = None) -> Any:
    """The estimator that a model file holds. A StructuredPredictor needs its oracle, which files do not contain.

    Raises ModelFileError for a file that is damaged, altered, of a newer version or no model at all; one that is also a
    FileNotFoundError where there is no file.
    """
    return load_estimator(path, oracle=oracle)


def load_estimator(path: str | os.PathLike[str], *expected: str, oracle: Any = None) -> Any:
    """As load; raises ModelFileError where the file holds another estimator than one of those `expected`, if any are named."""
    return read_model(path, _class_of, oracle, expected)


def _class_of(name: str) -> Any:
    """The estimator of that name; the public ones are found without loading the others."""
    if name in (package := importlib.import_module(__package__)).__all__:
        found = getattr(package, name)
        return found if hasattr(found, "_from_bundle") else None
    from structpred.models.kernel_machine import KernelMachine

    machines = public_subclasses("structpred.models", KernelMachine)  # type: ignore[type-abstract]
    return {**estimators(), **{kind.__name__: kind for kind in machines}}.get(name)
