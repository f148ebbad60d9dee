"""Model files: what an estimator writes, and how it comes back. The layout is described in docs/formats.md."""

import os
import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred import __version__
from structpred.core.result import Certificate
from structpred.core.weights import Vector
from structpred.errors import DataError, ModelFileError, ParameterError
from structpred.models.chain.constraints import ChainConstraints, resolve_constraints
from structpred.models.settings import settings_of, settings_restored
from structpred.runtime.memory import SMALL, available_bytes
from structpred.runtime.threads import MOST_JOBS
from structpred.storage.bundles import Bundle, read_bundle, write_bundle
from structpred.storage.schema import (
    FLOATS,
    LARGEST,
    AnyOf,
    Array,
    Flag,
    ListOf,
    Number,
    OneOf,
    Optional,
    Plain,
    Raw,
    Record,
    Spec,
    TableOf,
    Text,
    Whole,
    array_of,
    as_file_error,
    maybe,
)

if TYPE_CHECKING:
    from structpred.models.chain.labeler import ChainLabeler
    from structpred.models.structured import StructuredPredictor

FORMAT_VERSION = 1
_OBJECT = AnyOf((Text(), Record({"class": Text(), "settings": TableOf(Plain())})))
_BOUND = maybe(Number())

#: settings that files hold; those that prediction uses are bounded, a second fit checks the others
SETTINGS: dict[str, Spec] = {
    **dict.fromkeys(
        ("C", "max_iter", "tol", "min_count", "n_bits", "check_every", "patience", "random_state", "single_root", "max_bits",
         "labelled", "label_C"),
        Optional(Plain()),
    ),
    "n_jobs": Optional(maybe(AnyOf((Whole(1, MOST_JOBS), Whole(-1, -1))))),
    "prune": Optional(maybe(Whole(1))),
}  # fmt: skip

#: what the header of every model file says
COMMON: dict[str, Spec] = {
    "estimator": Text(),
    "settings": Record(SETTINGS),
    "trainer": _OBJECT,
    "loss": _OBJECT,
    "surrogate": Optional(maybe(_OBJECT)),
    "certificate": Record({"primal": _BOUND, "dual": _BOUND, "proven": Flag()}),
    "probabilistic": Optional(Flag(), False),
    "run": Record({"passes": Whole(), "stop_reason": Text(), "converged": Flag()}),
    "history": ListOf(TableOf(Plain())),
    # how a program read the training data; a model fitted in Python has none of it
    "reader": Optional(TableOf(AnyOf((ListOf(Plain()), Plain()))), {}),
    "versions": Optional(TableOf(Text()), {}),
}

_LABEL = AnyOf((Text(), Flag(), Whole(-(2**2048), 2**2048)))
#: the labels of a model
CLASSES = ListOf(_LABEL, 1)
_RULES = Record(
    {
        "forbidden": ListOf(ListOf(_LABEL, 2, 2)),
        "required": ListOf(ListOf(AnyOf((_LABEL, ListOf(_LABEL))), 2, 2)),
        "not_first": ListOf(_LABEL),
        "not_last": ListOf(_LABEL),
        "scheme": maybe(Text()),
    }
)
_INPUT = Record({"kind": OneOf(("numeric", "tokens", "rows")), "header": Raw()})
CHAIN = Record({**COMMON, "input": _INPUT, "classes": CLASSES, "constraints": Optional(maybe(_RULES))})
STRUCTURED = Record({**COMMON, "oracle": Text(), "n_weights": Optional(Whole(0, 2**40)), "scoring": Optional(maybe(Text()))})

_VALUES = Array(FLOATS, ("n_weights",))
_SOME_VALUES = Array(FLOATS, (None,))
_INDICES = Array(("uint32",), ("n_values",), below="n_weights", ascending=True)
_LENGTH = Array(("int64",), (1,))


class ModelKind(NamedTuple):
    """How the files of one estimator are read: what the header must hold, and the reader of a header that holds it.

    read(head, bundle, oracle): raises ValueError (or a child) where the parts do not fit each other.
    """

    header: Record
    read: Callable[[dict[str, Any], Bundle, Any], Any]


def write_model(path: str | os.PathLike[str], header: Record, bundle: Bundle) -> None:
    """Write a model file, unless reading would refuse its header: then DataError says why."""
    try:
        header.read(bundle.header, "header")
    except ValueError as error:
        raise DataError(f"{os.fspath(path)}: this model cannot be saved: {error}") from None
    write_bundle(path, bundle, kind="model", format_version=FORMAT_VERSION)


def save_chain(model: "ChainLabeler", path: str | os.PathLike[str]) -> None:
    """Write a fitted ChainLabeler."""
    header, arrays, texts = model.input_.to_bundle()
    head = {**common_header(model), "input": {"kind": model.input_.kind, "header": header}, "classes": model.classes_.tolist()}
    rules = resolve_constraints(model.constraints)
    head["constraints"] = None if rules is None else rules.to_dict()
    packed = {f"input.{name}": array for name, array in arrays.items()} | pack_weights(model.coef_)
    write_model(path, CHAIN, Bundle(head, packed, {f"input.{k}": v for k, v in texts.items()}))


def save_structured(model: "StructuredPredictor", path: str | os.PathLike[str]) -> None:
    """Write a fitted StructuredPredictor; the oracle is named in it, never stored."""
    head = {
        **common_header(model),
        "oracle": type(model.oracle).__qualname__,
        "n_weights": len(model.coef_),
        "scoring": _name_of(model.scoring),
    }
    texts = {} if model.feature_names_ is None else {"feature_names": model.feature_names_}
    write_model(path, STRUCTURED, Bundle(head, pack_weights(model.coef_), texts))


def _name_of(scoring: Any) -> str | None:
    """A name as it is; a function as a text that no setting accepts."""
    if scoring is None or isinstance(scoring, str):
        return scoring
    return f"{getattr(scoring, '__name__', type(scoring).__name__)} (a function that model files do not hold; give it again)"


def load(path: str | os.PathLike[str], *, oracle: Any = None) -> Any:
    """The estimator that a model file holds. A StructuredPredictor needs its oracle, which no file can bring along.

    Raises ModelFileError for a file that is damaged, altered, of a newer version or no model at all; one that is also a
    FileNotFoundError where there is no file.
    """
    return load_estimator(path, oracle=oracle)


def load_estimator(path: str | os.PathLike[str], *expected: str, oracle: Any = None) -> Any:
    """As load; raises ModelFileError where the file holds another estimator than one of those `expected`, if any are named."""
    bundle = read_bundle(path, kind="model", format_version=FORMAT_VERSION)
    name = bundle.header.get("estimator")
    if expected and name not in expected:
        raise ModelFileError(f"{os.fspath(path)}: expected a {' or a '.join(expected)}, the file holds a {name}")
    kind = _kind(name)
    if kind is None:
        raise ModelFileError(f"{os.fspath(path)}: unknown estimator {name!r}; was it written by a newer version?")
    unfit = f"{os.fspath(path)}: the contents do not fit together"
    with as_file_error(unfit, ModelFileError):
        head = kind.header.read(bundle.header, "header")
    if "oracle" in head:
        oracle = _named_oracle(head["oracle"], oracle, path)
    with as_file_error(unfit, ModelFileError):
        return kind.read(head, bundle, oracle)


def _kind(name: Any) -> ModelKind | None:
    """The kind of that name; None where there is none. Its module is imported now, for it imports this one."""
    if name == "ChainLabeler":
        return ModelKind(CHAIN, _read_chain)
    if name == "StructuredPredictor":
        return ModelKind(STRUCTURED, _read_structured)
    if name == "DependencyParser":
        from structpred.models.parser.files import KIND as PARSER

        return PARSER
    if name == "GraphLabeler":
        from structpred.models.fields.graph_files import KIND as GRAPH

        return GRAPH
    if name in ("MultiLabelMRF", "HierarchicalMultiLabel"):
        from structpred.models.fields.files import KINDS

        return KINDS[name]
    return None


def _named_oracle(saved: str | dict[str, Any], given: Any, path: str | os.PathLike[str]) -> Any:
    """The oracle to use: None to choose one again; raises ParameterError where one is needed and not the right one is given."""
    name, needed = (saved, True) if isinstance(saved, str) else (saved["class"], saved["given"])
    if given is None and not needed:
        return None
    if type(given).__qualname__ != name:
        raise ParameterError(
            f"{os.fspath(path)}: this model was trained with the oracle {name}; give load(path, oracle={name}())"
        )
    return given


def common_header(model: Any) -> dict[str, Any]:
    """What the header of every model file says: settings, certificate, history, versions."""
    certificate: Certificate = model.certificate_
    return {
        "estimator": type(model).__name__,
        "settings": {name: _plain(getattr(model, name)) for name in SETTINGS if hasattr(model, name)},
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


def plain_settings(head: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The settings of an estimator of that kind; where a trainer or loss object cannot be rebuilt, a name that fit refuses."""
    known = kind._get_param_names()
    settings = {name: value for name, value in head["settings"].items() if name in known and value is not None}
    names = [name for name in ("trainer", "loss", "surrogate") if head[name] is not None]
    return settings | {name: settings_restored(head[name]) for name in names}


def restore_run(model: Any, head: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], n_weights: int | None) -> None:
    """Set what all fitted estimators have: weights (n_weights of them; None: as many as there are), certificate, history."""
    model.coef_ = unpack_weights(arrays, n_weights)
    model.certificate_ = Certificate(**head["certificate"])
    model.history_ = head["history"]
    model.reader_ = head["reader"]
    run = head["run"]
    model.n_iter_, model.stop_reason_, model.converged_ = run["passes"], run["stop_reason"], run["converged"]


def chain_size(n_features: int, n_labels: int) -> int:
    """The number of weights of a chain: rows for features, start, stop and transitions, each as wide as labels, rounded up."""
    return (n_features + 2 + n_labels) * (-(-n_labels // 8) * 8)


def _read_chain(head: dict[str, Any], bundle: Bundle, oracle: Any) -> "ChainLabeler":
    from structpred.models.chain.inputs import INPUTS, RowInput
    from structpred.models.chain.labeler import ChainLabeler
    from structpred.models.chain.targets import LabelEncoder

    model = ChainLabeler(**plain_settings(head, ChainLabeler))
    arrays = {k.removeprefix("input."): v for k, v in bundle.arrays.items() if k.startswith("input.")}
    texts = {k.removeprefix("input."): v for k, v in bundle.texts.items() if k.startswith("input.")}
    model.input_ = INPUTS[head["input"]["kind"]].from_bundle(head["input"]["header"], arrays, texts)
    if isinstance(model.input_, RowInput):
        model.template = list(model.input_.featurizer.templates)
    model.probabilistic_ = head["probabilistic"]
    model._encoder = LabelEncoder(head["classes"])
    model.classes_ = model._encoder.classes
    if (rules := head["constraints"]) is not None:
        model.constraints = ChainConstraints.from_dict(rules)
        model.constraints.tables(head["classes"])  # a scheme must know the labels
    model.n_features_in_ = model.input_.n_features or 0
    restore_run(model, head, bundle.arrays, chain_size(model.n_features_in_, len(model.classes_)))
    return model


def _read_structured(head: dict[str, Any], bundle: Bundle, oracle: Any) -> "StructuredPredictor":
    from structpred.models.part_inputs import PartInput
    from structpred.models.structured import StructuredPredictor

    model = StructuredPredictor(oracle, **plain_settings(head, StructuredPredictor), scoring=head["scoring"])
    restore_run(model, head, bundle.arrays, head["n_weights"])
    model.probabilistic_ = head["probabilistic"]
    names = bundle.texts.get("feature_names")
    if names is not None and not len(set(names)) == len(names) == len(model.coef_):
        raise ValueError(f"{len(model.coef_)} weights do not fit {len(names)} feature names, {len(set(names))} of them different")
    model._keep_input(PartInput(names, len(model.coef_)))
    return model


def pack_weights(w: Vector) -> dict[str, npt.NDArray[Any]]:
    """The weights as one array, or as indices and values where that is smaller; DataError for weights that are not finite."""
    if len(w) and not max(abs(float(w.min())), abs(float(w.max()))) <= LARGEST:
        raise DataError(
            f"the model cannot be saved: its weights are not finite, or larger than {LARGEST:.3g}; training diverged. "
            "Smaller C, or features scaled to about 1, keep weights small"
        )
    indices = np.flatnonzero(w)
    if len(indices) * (4 + w.itemsize) < w.nbytes and len(w) < 2**32:
        return {"weights.indices": indices.astype(np.uint32), "weights.values": w[indices], "weights.length": np.array([len(w)])}
    return {"weights": w}


def unpack_weights(arrays: dict[str, npt.NDArray[Any]], n_weights: int | None = None) -> Vector:
    """The inverse of pack_weights; raises ValueError for anything else, and for another number of weights than n_weights."""
    if "weights" in arrays:
        n = arrays["weights"].size if n_weights is None else n_weights
        return array_of(arrays, "weights", _VALUES, n_weights=n).copy()
    n = int(array_of(arrays, "weights.length", _LENGTH)[0])
    if n != (n if n_weights is None else n_weights) or n < 0:
        raise ValueError(f"expected {n_weights} weights, the file says {n}")
    values = array_of(arrays, "weights.values", _SOME_VALUES)
    indices = array_of(arrays, "weights.indices", _INDICES, n_values=len(values), n_weights=n)
    free = available_bytes() if n * values.itemsize > SMALL else None
    if free is not None and n * values.itemsize > free:
        raise ValueError(f"its {n:,} weights need {n * values.itemsize >> 20:,} MB of memory, {free >> 20:,} MB are available")
    w: Vector = np.zeros(n, values.dtype)
    w[indices] = values
    return w
