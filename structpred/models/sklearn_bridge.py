"""scikit-learn's parents for our classes, taken on when they are used beside it: importing it takes longer than most commands.

Python lets a class change its parents. Estimators start below a small stand-in, `NotFittedError` below two built-in errors. Who
asks them for anything of scikit-learn's has imported `sklearn.base`, before or after this module. At the first such use (an
instance made, changed, copied, pickled, shown, asked for its class, tags or anything that it has not; a subclass defined; the
error raised) they become children of `BaseEstimator` and of scikit-learn's `NotFittedError`; subclasses and estimators made
earlier change with them. So isinstance, clone, tags, metadata routing, pickles and the HTML form are scikit-learn's own,
whichever was imported first.

One question is not heard: `issubclass(ChainLabeler, BaseEstimator)` is False where scikit-learn was imported after the class
and neither has been used since.
"""

import importlib
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from structpred.errors import DataError, StructpredError

_MODULE = "sklearn.base"
#: what a notebook asks for when nobody may have imported scikit-learn yet
_SHOWN = ("_repr_html_", "_repr_mimebundle_")
_joining = threading.RLock()


class Estimator:
    """The parent of our estimators of structures until scikit-learn is in use; then `sklearn.base.BaseEstimator` takes its place.

    The stand-in reads parameters by itself, which model files need. Anything else imports scikit-learn and asks its class.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super(_stand_in(cls), cls).__init_subclass__(**options)  # type: ignore[arg-type]
        _join(cls)

    def __reduce_ex__(self, protocol: Any) -> Any:
        _join(type(self))
        return object.__reduce_ex__(self, protocol)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """isinstance asks for it, having looked at the parents before, and looks again where it is not the type that it saw.

        So the one answer after which parents have changed is a passing subclass, whose instances are those of the type itself.
        """
        kind: Any = type(self)
        if not _join(kind):
            return kind
        return type(kind)(kind.__name__, (kind,), {"__module__": kind.__module__, "__new__": lambda _, *a, **k: kind(*a, **k)})

    if not TYPE_CHECKING:  # a checker would let any name pass

        def __setattr__(self, name: str, value: Any) -> None:  # not __new__: a type that had one once keeps its slot
            _join(type(self))
            object.__setattr__(self, name, value)

        def __getattr__(self, name: str) -> Any:
            if name in _SHOWN:
                importlib.import_module(_MODULE)
            _join(type(self))
            return object.__getattribute__(self, name)

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
        _base_estimator(type(self)).set_params(self, **params)
        return self

    def __repr__(self) -> str:
        return str(_base_estimator(type(self)).__repr__(self))

    def __sklearn_tags__(self) -> Any:
        return _base_estimator(type(self)).__sklearn_tags__(self)


class _NotFitted(ValueError, AttributeError):
    """What scikit-learn's NotFittedError is made of."""


class NotFittedError(StructpredError, _NotFitted):
    """The estimator has not been fitted yet; also scikit-learn's error of this name, where scikit-learn is imported."""

    def __init__(self, *said: object) -> None:
        if _NotFitted in NotFittedError.__bases__ and hasattr(sys.modules.get(_MODULE), "BaseEstimator"):
            NotFittedError.__bases__ = (StructpredError, importlib.import_module("sklearn.exceptions").NotFittedError)
        super().__init__(*said)


@contextmanager
def refusals(failure: type[StructpredError] = DataError) -> Iterator[None]:
    """What scikit-learn refuses, in its words, as an error of ours."""
    try:
        yield
    except ValueError as error:
        raise failure(str(error)) from error


def _stand_in(kind: type[Any]) -> type[Any] | None:
    """The stand-in above a class; None once scikit-learn's class has its place. By name: this module may be loaded again."""
    return next((one for one in kind.__mro__ if (one.__module__, one.__name__) == (__name__, "Estimator")), None)


def _base_estimator(kind: type[Any]) -> Any:
    """scikit-learn's class, by now the parent of ours."""
    base = importlib.import_module(_MODULE)
    _join(kind)
    return base.BaseEstimator


def _join(kind: type[Any]) -> bool:
    """Give our classes scikit-learn's parent where it has been imported; whether `kind` has it now."""
    parent = getattr(sys.modules.get(_MODULE), "BaseEstimator", None)
    if parent is None:
        return False
    with _joining:
        for child in ours.__subclasses__() if (ours := _stand_in(kind)) else ():
            child.__bases__ = tuple(parent if one is ours else one for one in child.__bases__)
            for each in _family(child):  # as where a child of BaseEstimator is defined: set_fit_request and the like
                super(each, each).__init_subclass__()
    return True


def _family(kind: type[Any]) -> Iterator[type[Any]]:
    """A class and all below it, parents first."""
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)
