"""scikit-learn's parents for our classes, taken on when scikit-learn is imported: that takes longer than most commands.

Python lets a class change its parents. Estimators start below a small stand-in, `NotFittedError` below two built-in errors. As
soon as anybody imports `sklearn.base`, before or after this module, they become children of `BaseEstimator` and of scikit-learn's
`NotFittedError`; subclasses and estimators made earlier change with them. So isinstance, clone, tags, metadata routing, pickles
and the HTML form are scikit-learn's own, whichever was imported first.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Self

from structpred.errors import StructpredError

_MODULE = "sklearn.base"


class Estimator:
    """The parent of our estimators of structures; once scikit-learn is imported, this name is `sklearn.base.BaseEstimator`.

    The stand-in reads parameters by itself, which model files need. Anything else imports scikit-learn and asks its class.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name; deep: also those of settings that have settings themselves, as outer__inner."""
        params: dict[str, Any] = {}
        for name in self._get_param_names():
            value = params[name] = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{inner}": setting for inner, setting in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change settings by name; outer__inner changes one of an inner estimator. ValueError for an unknown name."""
        _base_estimator().set_params(self, **params)
        return self

    def __repr__(self) -> str:
        return str(_base_estimator().__repr__(self))

    def __sklearn_tags__(self) -> Any:
        return _base_estimator().__sklearn_tags__(self)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return _base_estimator()._repr_mimebundle_(self, **options)

    @property
    def _repr_html_(self) -> Callable[[], str]:
        show: Callable[[], str] = _base_estimator()._repr_html_.__get__(self)
        return show


class _NotFitted(ValueError, AttributeError):
    """What scikit-learn's NotFittedError is made of."""


class NotFittedError(StructpredError, _NotFitted):
    """The estimator has not been fitted yet; also scikit-learn's error of this name, where scikit-learn is imported."""


_StandIn = Estimator


def _base_estimator() -> Any:
    """scikit-learn's class, by now the parent of ours."""
    base = importlib.import_module(_MODULE)
    _join()
    return base.BaseEstimator


def _join() -> None:
    """Give our classes scikit-learn's parents; sklearn.base must be complete."""
    global Estimator
    if Estimator is not _StandIn:
        return
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError

    if _watcher in sys.meta_path:
        sys.meta_path.remove(_watcher)
    Estimator = BaseEstimator  # type: ignore[misc]
    NotFittedError.__bases__ = (StructpredError, SklearnNotFittedError)
    for kind in _StandIn.__subclasses__():
        kind.__bases__ = tuple(BaseEstimator if parent is _StandIn else parent for parent in kind.__bases__)
        for each in _family(kind):  # as where a child of BaseEstimator is defined: set_fit_request and the like
            BaseEstimator.__init_subclass__.__func__(each)


def _family(kind: type[Any]) -> Iterator[type[Any]]:
    """A class and all below it, parents first."""
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)


class _Watcher:
    """A finder in front of Python's own, which lets them find `sklearn.base` and acts when it has been executed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((found for finder in others if (found := finder.find_spec(name, path, target)) is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _then_join(spec.loader.exec_module)  # type: ignore[assignment, method-assign]
        return spec


def _then_join(execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def executed(module: ModuleType) -> None:
        execute(module)
        _join()

    return executed


_watcher = _Watcher()
if _MODULE in sys.modules:
    _base_estimator()  # waits where another thread is importing it
else:
    sys.meta_path.insert(0, _watcher)
