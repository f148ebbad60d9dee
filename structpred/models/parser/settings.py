"""The settings of a parser, checked at once: what only a later stage would find wrong is refused before any work."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from structpred.data.arc_templates import ArcTemplate
from structpred.errors import ParameterError
from structpred.io.templates.arc_featurizer import ATTRIBUTES, ArcFeaturizer
from structpred.io.templates.arc_template_sets import default_templates
from structpred.models.base import checked_C


def check_settings(label_C: Any, max_bits: Any, prune: Any, projective: Any) -> None:
    """Raise ParameterError, naming the setting, for an invalid one."""
    checked_C(label_C, "label_C")
    if not _whole(max_bits) or not 1 <= max_bits <= 28:
        raise ParameterError(f"max_bits: expected a whole number in 1..28, got {max_bits!r}")
    if prune is not None and (not _whole(prune) or prune < 1):
        raise ParameterError(f"prune: expected a number of heads per word >= 1, or None, got {prune!r}")
    check_switches(projective=projective)


def check_switches(**values: Any) -> None:
    """Raise ParameterError for anything but True, False or None."""
    for name, value in values.items():
        if value is not None and not isinstance(value, bool | np.bool_):
            raise ParameterError(f"{name}: expected True, False or None, got {value!r}")


def checked_templates(templates: Sequence[ArcTemplate | str] | None) -> list[ArcTemplate]:
    """The templates of the setting, the default ones for None; ParameterError for unknown attributes."""
    if templates is None:
        return default_templates()
    found = [t if isinstance(t, ArcTemplate) else ArcTemplate.parse(t) for t in templates]
    for template in found:
        if unknown := sorted(template.attributes - set(ATTRIBUTES)):
            raise ParameterError(f"arc template {str(template)!r}: the attributes are {ATTRIBUTES}, got {unknown[0]!r}")
    return found


def used_templates(featurizer: ArcFeaturizer, given: Sequence[ArcTemplate], stage: str) -> list[ArcTemplate]:
    """Those whose attributes the words have; ParameterError where there are none. stage: that of the parser."""
    if found := featurizer.usable(given):
        return found
    if stage == "pruning":
        raise ParameterError(f"prune needs tags or lemmas, and the treebank has only {featurizer.present}; leave it out")
    raise ParameterError(f"none of the templates can be used: the treebank has only {featurizer.present}")


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
