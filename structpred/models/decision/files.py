"""The file of a decision model: header, weights, and what is not held."""

import json
import platform
from dataclasses import asdict
from typing import Any

import numpy as np

from structpred import __version__
from structpred.core.instances import checked_shape
from structpred.core.result import Certificate, History
from structpred.errors import DataError
from structpred.models.bundles import COMMON, pack_weights, unpack_weights
from structpred.models.decision.adam import Adam
from structpred.models.settings import settings_of, settings_restored
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Flag, Optional, Plain, Record, Spec, Text, Whole, maybe

_SETTINGS = ("C", "max_iter", "tol", "check_every", "fit_intercept", "random_state", "check_components")
_SHARED = ("estimator", "trainer", "loss", "certificate", "run", "history", "reader", "versions")
_FIELDS: dict[str, Spec] = {
    **{name: COMMON[name] for name in _SHARED},
    "oracle": Text(),
    "settings": Record({name: Optional(Plain()) for name in _SETTINGS}),
    "shape": maybe(Text()),  # JSON
    "n_features": Whole(1),
    "n_outputs": Whole(1),
    "per_part": Flag(),
    "maximises": Flag(),
}
HEADER = Record(_FIELDS)


def bundle_of(model: Any) -> Bundle:
    """What a file holds. Raises DataError for a model with a regressor."""
    if hasattr(model, "regressor_"):
        raise DataError("a model with a regressor cannot be saved: model files hold linear maps alone; save the regressor itself")
    settings = {name: getattr(model, name) for name in _SETTINGS}
    head = {
        "estimator": type(model).__name__, "trainer": settings_of(model.trainer), "loss": settings_of(model.loss),
        "certificate": asdict(model.certificate_),
        "run": {"passes": model.n_iter_, "stop_reason": model.stop_reason_, "converged": model.converged_},
        "history": list(model.history_), "reader": model.reader_,
        "versions": {"structpred": __version__, "python": platform.python_version(), "numpy": np.__version__},
        "oracle": type(model.oracle).__qualname__,
        "settings": {name: value if isinstance(value, bool | int | float) else None for name, value in settings.items()},
        "shape": _written(model.shape), "n_features": model.n_features_in_, "n_outputs": model.n_outputs_,
        "per_part": model.per_part_, "maximises": model.maximises_,
    }  # fmt: skip
    return Bundle(head, pack_weights(np.column_stack((model.coef_, model.intercept_)).ravel()), {})


def restore(kind: type[Any], head: dict[str, Any], bundle: Bundle, oracle: Any) -> Any:
    """The fitted model of a header that was checked; ValueError where the parts do not fit."""
    settings = {name: value for name, value in head["settings"].items() if value is not None}
    shape = None if head["shape"] is None else checked_shape(json.loads(head["shape"]), 0)
    model = kind(oracle, shape=shape, trainer=_trainer(head["trainer"]), loss=settings_restored(head["loss"]), **settings)
    outputs, features = head["n_outputs"], head["n_features"]
    table = unpack_weights(bundle.arrays, outputs * (features + 1)).astype(np.float64).reshape(outputs, -1)
    model.coef_, model.intercept_ = table[:, :-1].copy(), table[:, -1].copy()
    model.n_features_in_, model.n_outputs_ = features, outputs
    model.per_part_, model.maximises_ = head["per_part"], head["maximises"]
    model.certificate_, model.history_ = Certificate(**head["certificate"]), History(head["history"])
    model.reader_, run = head["reader"], head["run"]
    model.n_iter_, model.stop_reason_, model.converged_ = run["passes"], run["stop_reason"], run["converged"]
    return model


def _written(shape: Any) -> str | None:
    """A shape of numbers, texts and tuples as JSON; None for another one, which must be given again."""
    try:
        text = json.dumps(shape, allow_nan=False)
        return text if shape is not None and checked_shape(json.loads(text), 0) == checked_shape(shape, 0) else None
    except (TypeError, ValueError, DataError):
        return None


def _trainer(saved: Any) -> Any:
    if isinstance(saved, dict) and saved["class"] == Adam.__name__:
        return Adam(**saved["settings"])
    return settings_restored(saved)
