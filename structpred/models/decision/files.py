"""The file of a decision model: header, weights, and what is not held."""

import json
from typing import Any

import numpy as np

from structpred.core.instances import checked_shape
from structpred.errors import DataError
from structpred.models.bundles import COMMON, OBJECT, settings_record, unpack_weights
from structpred.models.decision.adam import Adam
from structpred.models.settings import settings_of, settings_restored
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, Flag, Plain, Record, Text, Whole, maybe

_SHARED = ("estimator", "trainer", "loss", "certificate", "run", "history", "reader", "versions")
_SETTINGS = ("C", "max_iter", "tol", "check_every", "fit_intercept", "random_state", "check_components")


def _written(shape: Any) -> str | None:
    """A shape of numbers, texts and tuples as JSON; None for another one, which must be given again."""
    try:
        text = json.dumps(shape, allow_nan=False)
        return text if checked_shape(json.loads(text), 0) == checked_shape(shape, 0) else None
    except (TypeError, ValueError, DataError):
        return None


def _shape(text: str) -> Any:
    return checked_shape(json.loads(text), 0)


def _trainer(saved: Any) -> Any:
    if isinstance(saved, dict) and saved["class"] == Adam.__name__:
        return Adam(**saved["settings"])
    return settings_restored(saved)


HEADER = Record({
    **{name: COMMON[name] for name in _SHARED},
    "trainer": Field(OBJECT, "trainer", settings_of, _trainer),
    "oracle": Text(),
    "settings": settings_record(dict.fromkeys(_SETTINGS, Plain())),
    "shape": Field(maybe(Text()), "shape", _written, _shape),  # JSON
    "n_features": Field(Whole(1), "n_features_in_"),
    "n_outputs": Field(Whole(1), "n_outputs_"),
    "per_part": Field(Flag(), "per_part_"),
    "maximises": Field(Flag(), "maximises_"),
})  # fmt: skip


def read_weights(model: Any, bundle: Bundle) -> None:
    """The inverse of what `bundle_of` says of weights; ValueError where they do not fit the header."""
    outputs, features = model.n_outputs_, model.n_features_in_
    table = unpack_weights(bundle.arrays, outputs * (features + 1)).astype(np.float64).reshape(outputs, -1)
    model.coef_, model.intercept_ = table[:, :-1].copy(), table[:, -1].copy()
