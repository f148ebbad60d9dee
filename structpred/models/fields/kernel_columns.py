"""Rows of features as a kernel sees them: the settings, and the columns that they are turned into."""

from dataclasses import replace
from typing import Any

import numpy as np

from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.models.bundles import OBJECT, plain_setting
from structpred.models.kernels.functions import Kernel, Precomputed, is_number, resolve_kernel, restored, saved
from structpred.storage.schema import Field, Number, Raw, Spec, maybe

#: what the header of a file holds: the settings, and what KernelInput.from_bundle reads
KERNEL: dict[str, Spec] = {
    "kernel": Field(maybe(OBJECT), "kernel", saved, lambda k: k if isinstance(k, str) else restored(k), None, sparse=True),
    "gamma": Field(maybe(Number()), "gamma", plain_setting, default=None),  # None: "scale"
    "n_components": Field(Number(), "n_components", plain_setting, default=0.99),
    "columns": Field(maybe(Raw()), default=None),
}


def kernel_and_scale(model: Any) -> tuple[Kernel | None, str | None]:
    """What the settings name: the kernel, None for none, and the scale; ParameterError where they do not go together."""
    if model.kernel is None:
        return None, model.scale
    kernel, gamma, m = resolve_kernel(model.kernel), model.gamma, model.n_components
    if model.signs is not None:
        raise ParameterError("signs: a kernel has functions in place of weights of features; leave signs out, or the kernel")
    if not (is_number(m) and (0 < m < 1 or (m >= 1 and m == int(m)))):
        raise ParameterError(f"n_components: expected a share of the trace below 1, or a whole number of columns, got {m!r}")
    named = isinstance(model.kernel, str) and "gamma" in vars(kernel)
    if gamma != "scale" and not (named and is_number(gamma) and gamma > 0):
        raise ParameterError(f"gamma: expected 'scale', or a number > 0 for a kernel given by name that has one, got {gamma!r}")
    scale = None if isinstance(kernel, Precomputed) and model.scale == "auto" else model.scale
    return replace(kernel, gamma=None if gamma == "scale" else float(gamma)) if named else kernel, scale  # type: ignore[type-var]


def each_alone(rows: Any) -> PackedSequences:
    """Rows (CSR) as sequences of one position."""
    return PackedSequences(rows.indptr, rows.indices, rows.data.astype(np.float32), np.arange(rows.shape[0] + 1), rows.shape[1])
