"""Rows of features as a kernel sees them: the settings, and the columns that they are turned into."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from structpred.core.types import Integers
from structpred.core.weights import Vector
from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.features.rows import FeatureRows, stack_rows
from structpred.models.bundles import OBJECT, plain_setting
from structpred.models.chain.inputs import NumericInput
from structpred.models.fields.feature_scale import SCALES, FeatureScale, Spread
from structpred.models.kernels.functions import Kernel, Precomputed, resolve_kernel, restored, saved
from structpred.models.kernels.gram import solved
from structpred.models.kernels.inputs import KernelInput, canonical
from structpred.runtime.settings import is_number
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, Number, OneOf, Raw, Spec, maybe

#: what the header of a file holds: the settings, and what `RowColumns.of_file` reads
KERNEL: dict[str, Spec] = {
    "scale": Field(OneOf((None, "auto", *SCALES)), "scale"),
    "kernel": Field(maybe(OBJECT), "kernel", saved, lambda k: k if isinstance(k, str) else restored(k), None, sparse=True),
    "gamma": Field(maybe(Number()), "gamma", plain_setting),  # None: "scale"
    "n_components": Field(Number(), "n_components", plain_setting),
    "columns": Field(maybe(Raw()), default=None),
}


def kernel_and_scale(model: Any) -> tuple[Kernel | None, str | None]:
    """What the settings name: the kernel, None for none, and the scale; ParameterError where they do not go together."""
    if model.kernel is None:
        return None, model.scale
    kernel, gamma, m = resolve_kernel(model.kernel), model.gamma, model.n_components
    if model.signs is not None:
        raise ParameterError("signs: a kernel has functions in place of weights of features; leave signs out, or the kernel")
    if not (is_number(m) and (0 < m < 1 or (m >= 1 and m % 1 == 0))):
        raise ParameterError(f"n_components: expected a share of the trace below 1, or a whole number of columns, got {m!r}")
    named = isinstance(model.kernel, str) and "gamma" in vars(kernel)
    if gamma != "scale" and not (named and is_number(gamma) and gamma > 0):
        raise ParameterError(f"gamma: expected 'scale', or a number > 0 for a kernel given by name that has one, got {gamma!r}")
    scale = None if isinstance(kernel, Precomputed) and model.scale == "auto" else model.scale
    return replace(kernel, gamma=None if gamma == "scale" else float(gamma)) if named else kernel, scale  # type: ignore[type-var]


def measured(model: Any, rows: Any, offsets: Integers) -> tuple[Spread, KernelInput | None]:
    """How rows (CSR) spread, and what a kernel makes of them; sample i has the rows offsets[i]:offsets[i + 1]."""
    kernel, asked = kernel_and_scale(model)
    spread, columns = Spread.of(asked, rows), None
    if kernel is not None:
        scale, columns = FeatureScale.merged(asked, [spread], "standard"), KernelInput(NumericInput(), kernel, model.n_components)
        columns.fit_transform(_packed(rows if scale is None else scale.applied(rows), offsets))
    return spread, columns


def agreed(model: Any, scans: Sequence[Any]) -> dict[str, Any]:
    """Scale and columns of a field, of scans whose `rows` are what `measured` says."""
    kernel, asked = kernel_and_scale(model)
    scale = FeatureScale.merged(asked, [scan.rows[0] for scan in scans], model._DENSE if kernel is None else "standard")
    return {"scale": scale, "columns": scans[0].rows[1]}


def _packed(rows: Any, offsets: Integers) -> PackedSequences:
    return PackedSequences(rows.indptr, rows.indices, rows.data.astype(np.float32), offsets, rows.shape[1])


@dataclass(frozen=True, eq=False)
class RowColumns:
    """The parent of fields with `n_features` and `bias`: rows are scaled and go through a kernel; None for neither."""

    _: KW_ONLY
    scale: FeatureScale | None = None
    columns: KernelInput | None = None

    def attributes(self: Any) -> dict[str, Any]:
        """What an estimator says of them."""
        scale, support = self.scale and SCALES[self.scale.shift is None], self.columns and self.columns.support
        return {"n_features_in_": self.n_features, "scale_": scale, "support_": support}

    @property
    def n_columns(self: Any) -> int:
        """The number of features with weights: of the rows, or of a kernel."""
        return int(self.n_features if self.columns is None else self.columns.n_features)

    def columns_of(self: Any, rows: Any, offsets: Integers) -> FeatureRows:
        """The features with weights of rows (CSR), and the constant one; sample i has the rows offsets[i]:offsets[i + 1]."""
        from scipy import sparse

        rows = rows if self.scale is None else self.scale.applied(rows)
        rows = rows if self.columns is None else canonical(self.columns.transform(_packed(rows, offsets)))
        constant: Any = np.full((rows.shape[0], 1), self.bias)
        return stack_rows(sparse.hstack((rows, constant), format="csr") if self.bias else rows)._replace(offsets=offsets)

    def expanded(self: Any, w: Vector) -> tuple[Any, Vector]:
        """The same scores as a sum over support rows: a field whose features are kernel values with them, and its weights."""
        if self.columns is None:
            return self, w
        columns, names, k, width = copy(self.columns), self.part_names(), self.n_columns, self.n_columns + (self.bias != 0)
        size = len(names.nodes or [""]), width, len(names.states)
        table = w[: math.prod(size)].astype(np.float64).reshape(size)
        table[:, :k] = [solved(columns.triangle, own, transposed=True) for own in table[:, :k]]
        columns._triangle = np.eye(k)
        return replace(self, columns=columns), np.concatenate((table.ravel(), w[table.size :]))

    def of_file(self: Any, head: dict[str, Any], bundle: Bundle) -> Any:
        """The field with those of a file."""
        scale, own = FeatureScale.from_arrays(head["scale"], bundle.arrays, self.n_features), head["columns"]
        return replace(self, scale=scale, columns=own and KernelInput.from_bundle(bundle.part("kernel", own)))
