"""Model files: what an estimator writes, and how it comes back. The layout is described in docs/formats.md."""

import os
import platform
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structpred import __version__
from structpred.core.result import Certificate
from structpred.core.storage import Bundle, read_bundle, write_bundle
from structpred.core.weights import Vector
from structpred.errors import FileFormatError, ModelFileError, ParameterError
from structpred.models.constraints import ChainConstraints, resolve_constraints
from structpred.models.settings import settings_of, settings_restored

if TYPE_CHECKING:
    from structpred.models.chain import ChainLabeler
    from structpred.models.structured import StructuredPredictor

FORMAT_VERSION = 1
_PLAIN = (
    "C", "max_iter", "tol", "min_count", "n_bits", "check_every", "patience", "random_state", "n_jobs",
    "single_root", "max_bits", "prune", "labelled", "label_C",
)  # fmt: skip


def save_chain(model: "ChainLabeler", path: str | os.PathLike[str]) -> None:
    """Write a fitted ChainLabeler."""
    header, arrays, texts = model.input_.to_bundle()
    head = {**common_header(model), "input": {"kind": model.input_.kind, "header": header}, "classes": model.classes_.tolist()}
    rules = resolve_constraints(model.constraints)
    head["constraints"] = None if rules is None else rules.to_dict()
    packed = {f"input.{name}": array for name, array in arrays.items()} | pack_weights(model.coef_)
    write_bundle(
        path, Bundle(head, packed, {f"input.{k}": v for k, v in texts.items()}), kind="model", format_version=FORMAT_VERSION
    )


def save_structured(model: "StructuredPredictor", path: str | os.PathLike[str]) -> None:
    """Write a fitted StructuredPredictor; the oracle is named in it, never stored."""
    head = {**common_header(model), "oracle": type(model.oracle).__qualname__, "scoring": _name_of(model.scoring)}
    texts = {} if model.feature_names_ is None else {"feature_names": model.feature_names_}
    write_bundle(path, Bundle(head, pack_weights(model.coef_), texts), kind="model", format_version=FORMAT_VERSION)


def _name_of(scoring: Any) -> str | None:
    """A name as it is; a function as a text that no setting accepts."""
    if scoring is None or isinstance(scoring, str):
        return scoring
    return f"{getattr(scoring, '__name__', type(scoring).__name__)} (a function that model files do not hold; give it again)"


def load(path: str | os.PathLike[str], *, oracle: Any = None) -> Any:
    """The estimator that a model file holds. A StructuredPredictor needs its oracle, which no file can bring along.

    Raises ModelFileError for a file that is damaged, altered, of a newer version or no model at all.
    """
    return load_estimator(path, oracle=oracle)


def load_estimator(path: str | os.PathLike[str], *expected: str, oracle: Any = None) -> Any:
    """As load; raises ModelFileError where the file holds another estimator than one of those `expected`, if any are named."""
    from structpred.models.chain import ChainLabeler
    from structpred.models.parser import DependencyParser
    from structpred.models.parser_files import read_parser
    from structpred.models.structured import StructuredPredictor

    bundle = read_bundle(path, kind="model", format_version=FORMAT_VERSION)
    name = bundle.header.get("estimator")
    if expected and name not in expected:
        raise ModelFileError(f"{os.fspath(path)}: expected a {' or a '.join(expected)}, the file holds a {name}")
    try:
        if name == "ChainLabeler":
            return _read_chain(ChainLabeler(**plain_settings(bundle.header)), bundle)
        if name == "DependencyParser":
            return read_parser(DependencyParser(**plain_settings(bundle.header)), bundle.header, bundle.arrays)
        if name == "StructuredPredictor":
            return _read_structured(StructuredPredictor(oracle, **plain_settings(bundle.header)), bundle, path)
        if name in ("MultiLabelMRF", "HierarchicalMultiLabel", "GraphLabeler"):
            from structpred.models.field_files import read_field_model

            return read_field_model(name, bundle, oracle, path)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, FileFormatError) as error:
        if isinstance(error, ModelFileError | ParameterError):
            raise
        raise ModelFileError(f"{os.fspath(path)}: the contents do not fit together: {error!r}") from error
    raise ModelFileError(f"{os.fspath(path)}: unknown estimator {name!r}; was it written by a newer version?")


def common_header(model: Any) -> dict[str, Any]:
    """What the header of every model file says: settings, certificate, history, versions."""
    certificate: Certificate = model.certificate_
    return {
        "estimator": type(model).__name__,
        "settings": {name: _plain(getattr(model, name)) for name in _PLAIN if hasattr(model, name)},
        "trainer": settings_of(model.trainer),
        "loss": settings_of(model.loss),
        "surrogate": None if model.surrogate is None else settings_of(model.surrogate),
        "certificate": {"primal": certificate.primal, "dual": certificate.dual, "proven": certificate.proven},
        "probabilistic": bool(getattr(model, "probabilistic_", False)),
        "run": {"passes": model.n_iter_, "stop_reason": model.stop_reason_, "converged": model.converged_},
        "history": model.history_,
        "reader": getattr(model, "reader_", {}),
        "versions": {"structpred": __version__, "python": platform.python_version(), "numpy": np.__version__},
    }


def _plain(value: Any) -> Any:
    """Numbers as they are; a RandomState, which is no plain setting, as None."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float) else None


def plain_settings(header: dict[str, Any]) -> dict[str, Any]:
    """The settings as they were; where a trainer or loss object cannot be rebuilt, a name that fit refuses."""
    settings = {name: value for name, value in header["settings"].items() if name in _PLAIN}
    names = [name for name in ("trainer", "loss", "surrogate") if header.get(name) is not None]
    return settings | {name: settings_restored(header[name]) for name in names}


def restore_run(model: Any, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Set what all fitted estimators have: weights, certificate, history."""
    model.coef_ = unpack_weights(arrays)
    model.certificate_ = Certificate(**header["certificate"])
    model.history_ = header["history"]
    model.reader_ = header.get("reader", {})  # how a program read the training data; a model fitted in Python has none
    run = header["run"]
    model.n_iter_, model.stop_reason_, model.converged_ = run["passes"], run["stop_reason"], run["converged"]


def _read_chain(model: "ChainLabeler", bundle: Bundle) -> "ChainLabeler":
    from structpred.models.inputs import INPUTS, RowInput
    from structpred.models.targets import LabelEncoder

    kind, header = bundle.header["input"]["kind"], bundle.header["input"]["header"]
    arrays = {k.removeprefix("input."): v for k, v in bundle.arrays.items() if k.startswith("input.")}
    texts = {k.removeprefix("input."): v for k, v in bundle.texts.items() if k.startswith("input.")}
    model.input_ = INPUTS[kind].from_bundle(header, arrays, texts)
    if isinstance(model.input_, RowInput):
        model.template = list(model.input_.featurizer.templates)
    model.probabilistic_ = bool(bundle.header.get("probabilistic", False))
    if (rules := bundle.header.get("constraints")) is not None:
        model.constraints = ChainConstraints.from_dict(rules)
    model._encoder = LabelEncoder(bundle.header["classes"])
    model.classes_ = model._encoder.classes
    restore_run(model, bundle.header, bundle.arrays)
    n_labels = len(model.classes_)
    width = -(-n_labels // 8) * 8
    model.n_features_in_ = len(model.coef_) // width - 2 - n_labels
    expected = model.input_.n_features
    if len(model.coef_) != (model.n_features_in_ + 2 + n_labels) * width or model.n_features_in_ != expected:
        raise ValueError(f"{len(model.coef_)} weights do not fit {expected} features and {n_labels} labels")
    return model


def _read_structured(model: "StructuredPredictor", bundle: Bundle, path: Any) -> "StructuredPredictor":
    from structpred.models.part_inputs import PartInput

    named = bundle.header["oracle"]
    if type(model.oracle).__qualname__ != named:
        raise ParameterError(
            f"{os.fspath(path)}: this model was trained with the oracle {named}; give load(path, oracle={named}())"
        )
    restore_run(model, bundle.header, bundle.arrays)
    model.probabilistic_ = bool(bundle.header.get("probabilistic", False))
    if (scoring := bundle.header.get("scoring")) is not None:
        model.scoring = str(scoring)
    names = bundle.texts.get("feature_names")
    if names is not None and not len(set(names)) == len(names) == len(model.coef_):
        raise ValueError(f"{len(model.coef_)} weights do not fit {len(names)} feature names, {len(set(names))} of them different")
    model._keep_input(PartInput(names, len(model.coef_)))
    return model


def pack_weights(w: Vector) -> dict[str, npt.NDArray[Any]]:
    """The weights as one array, or as indices and values where that is smaller."""
    indices = np.flatnonzero(w)
    if len(indices) * (4 + w.itemsize) < w.nbytes and len(w) < 2**32:
        return {"weights.indices": indices.astype(np.uint32), "weights.values": w[indices], "weights.length": np.array([len(w)])}
    return {"weights": w}


def unpack_weights(arrays: dict[str, npt.NDArray[Any]]) -> Vector:
    """The inverse of pack_weights; raises ValueError for anything else."""
    if "weights" in arrays:
        w = arrays["weights"].copy()
    else:
        values, indices, length = arrays["weights.values"], arrays["weights.indices"], int(arrays["weights.length"][0])
        if not 0 <= length <= 2**33 or values.shape != indices.shape:
            raise ValueError("the weights are inconsistent")
        w = np.zeros(length, values.dtype)
        w[indices] = values
    if w.ndim != 1 or w.dtype not in (np.float32, np.float64) or not np.isfinite(w).all():
        raise ValueError("the weights must be a flat array of finite floats")
    return w
