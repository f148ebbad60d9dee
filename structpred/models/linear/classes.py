"""What linear models of classes share besides: the classes, their weights, and both in the file."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight

from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError
from structpred.models.bundles import COMMON
from structpred.models.linear.estimator import HEADER
from structpred.models.sklearn_bridge import refusals
from structpred.storage.schema import AnyOf, Field, Flag, ListOf, Number, OneOf, Record, Text, Whole, maybe

_CLASS = AnyOf((Text(), Flag(), Whole(-(2**63), 2**63 - 1), Number()))
_GIVE_AGAIN = "a table (that model files do not hold; give it again)"


def classes_of(head: dict[str, Any]) -> npt.NDArray[Any]:
    """The classes of a header; ValueError unless they are different ones."""
    classes = np.array(head["classes"], dtype={"str": None}.get(head["class_kind"], head["class_kind"]))
    if classes.ndim != 1 or len(set(head["classes"])) != len(classes):
        raise ValueError("classes: expected different ones")
    return classes


@dataclass(eq=False, repr=False)
class OfClasses(ClassifierMixin):  # type: ignore[misc]
    """Beside LinearEstimator: `class_weight`, and the classes in a file."""

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None

    _HEADER: ClassVar[Record] = Record({
        **COMMON,
        "classes": ListOf(_CLASS, 2),
        "class_kind": OneOf(("bool", "int", "float", "str", "object")),
        "class_weight": Field(maybe(Text()), "class_weight"),
        **HEADER,
        "multi_label": Field(Flag(), default=False),
    })  # fmt: skip

    def _weights_of(self: Any, codes: Integers, classes: npt.NDArray[Any], sample_weight: Any, rows: Any) -> Floats:
        """sample_weight times class_weight, one number per row."""
        found: Floats = self._sample_weights(sample_weight, rows)
        if self.class_weight is None:
            return found
        with refusals(ParameterError):
            found *= compute_class_weight(self.class_weight, classes=classes, y=classes[codes])[codes]
        return found

    def _refuse_loss(self: Any) -> None:
        if self.loss != "hamming":
            raise ParameterError(f"loss: a choice of two has no other loss than 'hamming', got {self.loss!r}; use class_weight")

    def _contents(self: Any) -> Any:
        found = super()._contents()
        kind = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}.get(self.classes_.dtype.kind, "object")
        weight = _GIVE_AGAIN if isinstance(self.class_weight, dict) else self.class_weight
        several = {"multi_label": self.multi_label_} if hasattr(self, "multi_label_") else {}
        found.header |= {"classes": self.classes_.tolist(), "class_kind": kind, "class_weight": weight, **several}
        return found
