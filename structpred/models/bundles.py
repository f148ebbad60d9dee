"""What the files of all estimators share: the header, the run and the weights. The layout is described in docs/formats.md."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from structpred import __version__
from structpred.core.result import Certificate, History
from structpred.core.weights import Vector
from structpred.errors import DataError, ModelFileError, ParameterError
from structpred.models.settings import settings_of, settings_restored
from structpred.models.signs import check_report, saved_signs
from structpred.runtime.memory import SMALL, available_bytes
from structpred.runtime.threads import MOST_JOBS
from structpred.storage.bundles import Bundle, read_bundle, under, write_bundle
from structpred.storage.schema import (
    FLOATS,
    LARGEST,
    AnyOf,
    Array,
    Field,
    Flag,
    ListOf,
    Number,
    Plain,
    Record,
    Spec,
    TableOf,
    Text,
    Whole,
    array_of,
    as_file_error,
    maybe,
)

Kind = TypeVar("Kind")

FORMAT_VERSION = 1
#: a name, or the class of an object with its plain settings
OBJECT = AnyOf((Text(), Record({"class": Text(), "settings": TableOf(Plain())})))
_BOUND = maybe(Number())


def plain_setting(value: Any) -> Any:
    """Numbers as they are; a RandomState, which is not a plain setting, as None."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float) else None


def settings_record(specs: Mapping[str, Spec]) -> Record:
    """Settings that are numbers, of those that an estimator has."""
    return Record({name: Field(spec, name, plain_setting, default=None) for name, spec in specs.items()})


#: settings that files hold; those that prediction uses are bounded, a second fit checks the others
SETTINGS: dict[str, Spec] = {
    **dict.fromkeys(
        ("C", "max_iter", "tol", "min_count", "n_bits", "check_every", "patience", "random_state", "single_root", "max_bits",
         "labelled", "label_C"),
        Plain(),
    ),
    "n_jobs": maybe(AnyOf((Whole(1, MOST_JOBS), Whole(-1, -1)))),
    **dict.fromkeys(("prune", "max_length"), maybe(Whole(1))),
    "order": maybe(Whole(1, 2)),
    "check_components": Flag(),
}  # fmt: skip

#: what the header of every model file says
COMMON: dict[str, Spec] = {
    "estimator": Text(),
    "settings": settings_record(SETTINGS),
    "trainer": Field(OBJECT, "trainer", back=settings_restored),
    "loss": Field(OBJECT, "loss", settings_of, settings_restored),
    "surrogate": Field(maybe(OBJECT), "surrogate", settings_of, settings_restored, None),
    # written only where there is one in place of 1/2 |w|^2
    "regulariser": Field(maybe(OBJECT), "regulariser", settings_of, settings_restored, None, sparse=True),
    "signs": Field(maybe(AnyOf((TableOf(Whole(-1, 1)), Text()))), "signs", saved_signs, default=None, sparse=True),
    "certificate": Field(
        Record({
            "primal": _BOUND, "dual": _BOUND, "proven": Flag(), "local": Flag(), "checked": Field(maybe(Flag()), default=None),
        }),
        "certificate_", asdict, lambda saved: Certificate(**saved),
    ),
    "probabilistic": Field(Flag(), "probabilistic_"),
    "run": Record({
        "passes": Field(Whole(), "n_iter_"),
        "stop_reason": Field(Text(), "stop_reason_"),
        "converged": Field(Flag(), "converged_"),
    }),
    "history": Field(ListOf(TableOf(Plain())), "history_", list, History),
    "groups": Field(ListOf(Text()), "group_names_", list),
    # how a program read the training data; a model fitted in Python has none of it
    "reader": Field(TableOf(AnyOf((ListOf(Plain()), Plain()))), "reader_"),
    "versions": TableOf(Text()),
}  # fmt: skip

#: one label of a model
LABEL = AnyOf((Text(), Flag(), Whole(-(2**2048), 2**2048)))
#: a class of a model whose rows have one each
CLASS = AnyOf((Text(), Flag(), Whole(-(2**63), 2**63 - 1), Number()))
#: the labels of a model
CLASSES = ListOf(LABEL, 1)

_VALUES = Array(FLOATS, ("n_weights",))
_SOME_VALUES = Array(FLOATS, (None,))
_INDICES = Array(("uint32",), ("n_values",), below="n_weights", ascending=True)
_LENGTH = Array(("int64",), (1,))
_ENDS = Array(("int64",), ("n_ends",), below=2**62)
_REPORT = "report."


def computed(model: Any) -> dict[str, Any]:
    """The fields of the header of every file that are no attributes."""
    versions = {"structpred": __version__, "python": platform.python_version(), "numpy": np.__version__}
    return {"estimator": type(model).__name__, "reader": getattr(model, "reader_", {}), "versions": versions}


def common(model: Any) -> dict[str, Any]:
    """As `computed`, of an estimator whose trainer may be the default one."""
    return {**computed(model), "trainer": settings_of(model._chosen_trainer())}


def to_bundle(model: Any) -> Bundle:
    """What a file holds of a fitted estimator."""
    found: Bundle = model._contents()
    found.header = model._HEADER.written(model, **found.header)
    return found


def restored(kind: type[Kind], head: dict[str, Any], **given: Any) -> Kind:
    """An estimator with the settings and attributes that the header alone holds, and with the settings given.

    A setting that is None in the file is that of the class. Files hold settings of other kinds, too.
    """
    known, found = kind._get_param_names(), kind._HEADER.attributes(head)  # type: ignore[attr-defined]
    model = kind(**{**{name: value for name, value in found.items() if name in known and value is not None}, **given})
    for name, value in found.items():
        if name.endswith("_"):
            setattr(model, name, value)
    return model


def save(self: Any, path: str | os.PathLike[str]) -> None:
    """Write the model as one file, atomically, without pickle: see docs/formats.md. An oracle is named in it, not held.

    DataError, which says why, where reading would refuse its header.
    """
    self._check_fitted()
    bundle = to_bundle(self)
    try:
        self._HEADER.read(bundle.header, "header")
    except ValueError as error:
        raise DataError(f"{os.fspath(path)}: this model cannot be saved: {error}") from None
    write_bundle(path, bundle, kind="model", format_version=FORMAT_VERSION)


def read_own(path: str | os.PathLike[str], kind: type[Kind], oracle: Any = None) -> Kind:
    """The estimator of that class in a file."""
    model = read_model(path, lambda name: kind, oracle, [kind.__name__])
    assert isinstance(model, kind)
    return model


def read_model(
    path: str | os.PathLike[str], class_of: Callable[[str], Any], oracle: Any = None, expected: Sequence[str] = ()
) -> Any:
    """The estimator in a file. class_of: the class of a name, or None. expected: the names that it may have; empty: any."""
    bundle = read_bundle(path, kind="model", format_version=FORMAT_VERSION)
    name = bundle.header.get("estimator")
    if expected and name not in expected:
        raise ModelFileError(f"{os.fspath(path)}: expected a {' or a '.join(expected)}, the file holds a {name}")
    kind = class_of(name) if isinstance(name, str) else None
    if kind is None:
        raise ModelFileError(f"{os.fspath(path)}: unknown estimator {name!r}; was it written by a newer version?")
    unfit = f"{os.fspath(path)}: the contents are inconsistent"
    with as_file_error(unfit, ModelFileError):
        head = kind._HEADER.read(bundle.header, "header")
    if "oracle" in head:
        oracle = _named_oracle(head["oracle"], oracle, path)
    with as_file_error(unfit, ModelFileError):
        return kind._from_bundle(head, bundle, oracle)


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


def restore_weights(model: Any, arrays: dict[str, npt.NDArray[Any]], n_weights: int) -> None:
    """Set what arrays hold of fitted estimators: the weights, n_weights of them, their groups, and reports."""
    model.coef_, reports = unpack_weights(arrays, n_weights), under(_REPORT, arrays)
    model.groups_, model.group_names_ = _groups(model.group_names_, arrays, len(model.coef_))
    model.report_ = {name: array_of(reports, name, Array(("float64",), (None,) * array.ndim)) for name, array in reports.items()}
    check_report(model.report_, len(model.coef_))


def _groups(names: list[str], arrays: Mapping[str, npt.NDArray[Any]], n_weights: int) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The groups of the weights; one that holds them all where the file, of a linear model, names none."""
    if not names:
        return np.array([0, n_weights]), ["all"]
    ends = array_of(arrays, "groups", _ENDS, n_ends=len(names) + 1)
    if ends[0] != 0 or ends[-1] != n_weights or (np.diff(ends) < 0).any():
        raise ValueError(f"groups: expected ascending numbers from 0 to {n_weights}")
    return ends.copy(), names


def pack_run(model: Any) -> dict[str, npt.NDArray[Any]]:
    """The arrays that files of all estimators hold: the weights, their groups, and what the trainer reported."""
    return pack_weights(model.coef_) | {"groups": np.asarray(model.groups_, np.int64)} | pack_reports(model)


def pack_reports(model: Any) -> dict[str, npt.NDArray[Any]]:
    """What the trainer reported, and what is known of signs."""
    return {f"{_REPORT}{name}": array for name, array in model.report_.items()}


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


def unpack_weights(arrays: dict[str, npt.NDArray[Any]], n_weights: int) -> Vector:
    """The inverse of pack_weights; raises ValueError for anything else, and for another number of weights than n_weights."""
    if "weights" in arrays:
        return array_of(arrays, "weights", _VALUES, n_weights=n_weights).copy()
    n = int(array_of(arrays, "weights.length", _LENGTH)[0])
    if n != n_weights:
        raise ValueError(f"expected {n_weights} weights, the file says {n}")
    values = array_of(arrays, "weights.values", _SOME_VALUES)
    indices = array_of(arrays, "weights.indices", _INDICES, n_values=len(values), n_weights=n)
    free = available_bytes() if n * values.itemsize > SMALL else None
    if free is not None and n * values.itemsize > free:
        raise ValueError(f"its {n:,} weights need {n * values.itemsize >> 20:,} MB of memory, {free >> 20:,} MB are available")
    w: Vector = np.zeros(n, values.dtype)
    w[indices] = values
    return w
