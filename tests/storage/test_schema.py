"""Declarations of what files hold: each accepts what it says and names the place of anything else."""

from typing import Any

import numpy as np
import pytest

from structpred.errors import FileFormatError, ModelFileError
from structpred.storage.schema import (
    LARGEST,
    AnyOf,
    Array,
    Field,
    Flag,
    ListOf,
    Number,
    OneOf,
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

ACCEPTED: list[tuple[Spec, list[Any], list[Any]]] = [
    (Whole(1, 5), [1, 5], [0, 6, 2.0, True, "2", None, [1]]),
    (Number(0.0, 2.0), [0, 1.5, 2], [-0.1, 2.1, 10**400, True, "1", None]),
    (Flag(), [True, False], [0, 1, None, "true"]),
    (Plain(), [None, True, "", 3, -1.5, 2**40], [[], {}, float("inf"), 10**400]),
    (Text(), ["", "a"], [None, 1, ["a"]]),
    (OneOf((None, "a")), [None, "a"], ["b", 0, [], {}]),
    (maybe(Whole()), [None, 3], [-1, "x", False]),
    (AnyOf((Text(), Flag())), ["x", True], [1, None]),
    (ListOf(Whole(), 1, 2), [[1], [1, 2]], [[], [1, 2, 3], ["a"], (1,), {"0": 1}, "1"]),
    (TableOf(Flag()), [{}, {"a": True}], [{"a": 1}, [True], None]),
    (
        Record({"a": Whole(), "b": Field(Text(), default=None)}),
        [{"a": 1, "b": "x"}],
        [{"b": "x"}, {"a": "x"}, {"a": 1, "b": 2}, [1], None],
    ),
]


@pytest.mark.parametrize(("spec", "good", "bad"), ACCEPTED, ids=lambda value: type(value).__name__)
def test_values_are_accepted_or_named(spec: Spec, good: list[Any], bad: list[Any]) -> None:
    """Accepted values come back as they are; others are a ValueError that begins with the place."""
    for value in good:
        assert spec.read(value, "here") == value
    for value in bad:
        with pytest.raises(ValueError, match=r"^here"):
            spec.read(value, "here")


def test_a_reader_sees_what_was_declared_and_nothing_else() -> None:
    """Fields that are not declared are left out, at every depth; those that may be missing get their default."""
    spec = Record({"inner": Record({"a": Whole()}), "old": Field(Whole(), default=7)})
    assert spec.read({"inner": {"a": 1, "size": 2**40}, "other": 5}, "here") == {"inner": {"a": 1}, "old": 7}
    with pytest.raises(ValueError, match=r"here\.inner\.a: expected a whole number"):
        spec.read({"inner": {"a": -1}}, "here")


ARRAYS: dict[str, tuple[Array, Any]] = {
    "type": (Array(("int64",), (None,)), np.zeros(2, np.int32)),
    "dimensions": (Array(("int64",), (None,)), np.zeros((2, 1), np.int64)),
    "size": (Array(("int64",), ("n",)), np.zeros(4, np.int64)),
    "columns": (Array(("int64",), (None, 2)), np.zeros((3, 3), np.int64)),
    "negative": (Array(("int64",), (None,), below=5), np.array([0, -1])),
    "too large": (Array(("int64",), (None,), below="n"), np.array([0, 3])),
    "twice": (Array(("int64",), (None,), ascending=True), np.array([1, 1])),
    "descending": (Array(("uint32",), (None,), ascending=True), np.array([2, 1], np.uint32)),
    "nan": (Array(("float64",), (None,)), np.array([1.0, np.nan])),
    "infinite": (Array(("float32",), (None,)), np.array([-np.inf], np.float32)),
    "huge": (Array(("float64",), (None,)), np.array([2.0 * LARGEST])),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_refused_by_type_shape_and_range(name: str) -> None:
    """Each rule of an array's declaration refuses what breaks it, and names the array."""
    spec, array = ARRAYS[name]
    with pytest.raises(ValueError, match="'it': expected"):
        array_of({"it": array}, "it", spec, n=3)


def test_arrays_that_fit_come_back() -> None:
    """Sizes may be named, numbers, or any; a missing array is named."""
    spec = Array(("int64", "int32"), ("n", None, 2), below="n", ascending=False)
    array = np.array([[[0, 1]], [[1, 0]]])
    assert array_of({"it": array}, "it", spec, n=2) is array
    assert array_of({"it": np.zeros(0)}, "it", Array(("float64",), (None,))).size == 0
    with pytest.raises(ValueError, match="'other' is missing"):
        array_of({"it": array}, "other", spec, n=2)


def test_failures_inside_become_errors_about_the_file() -> None:
    """A KeyError, a MemoryError or an error of ours becomes the failure asked for, with the message and the reason."""
    for error, reason in ((KeyError("w"), "'w' is missing"), (MemoryError(), "MemoryError"), (ValueError("why"), "why")):
        with pytest.raises(ModelFileError, match=f"^the file: {reason}$"), as_file_error("the file", ModelFileError):
            raise error
    with pytest.raises(FileFormatError, match="part"), as_file_error("part"):
        raise IndexError


class Owner:
    """An object with two attributes."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


def test_fields_are_written_and_come_back_as_attributes() -> None:
    """One declaration writes attributes, in its order, and reads them back; what is computed is written, and sets nothing."""
    numbers = Field(ListOf(Whole()), "a", list, tuple)
    spec = Record(
        {"n": Whole(), "in": Record({"a": numbers}), "b": Field(maybe(Text()), "b", sparse=True), "c": Field(Flag(), "c")}
    )
    written = spec.written(Owner((1, 2), None), n=3)
    assert list(written.items()) == [("n", 3), ("in", {"a": [1, 2]})]
    assert spec.written(Owner((), "x"), n=0)["b"] == "x"
    assert spec.attributes(written) == {"a": (1, 2)}
