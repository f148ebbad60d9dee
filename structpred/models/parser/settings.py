"""The settings of a parser, checked at once: what only a later stage would find wrong is refused before any work."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from structpred.data.arc_templates import ArcTemplate
from structpred.errors import ParameterError
from structpred.io.templates.arc_featurizer import ATTRIBUTES, ArcFeaturizer
from structpred.io.templates.arc_template_sets import default_templates
from structpred.models.base import checked_C


def checked_settings(parser: Any) -> list[ArcTemplate]:
    """The templates of a parser; ParameterError, naming the setting, for an invalid one."""
    checked_C(parser.label_C, "label_C")
    if not _whole(parser.max_bits) or not 1 <= parser.max_bits <= 28:
        raise ParameterError(f"max_bits: expected a whole number in 1..28, got {parser.max_bits!r}")
    if parser.prune is not None and (not _whole(parser.prune) or parser.prune < 1):
        raise ParameterError(f"prune: expected a number of heads per word >= 1, or None, got {parser.prune!r}")
    check_switches(projective=parser.projective)
    if parser.templates is None:
        return default_templates()
    found = [t if isinstance(t, ArcTemplate) else ArcTemplate.parse(t) for t in parser.templates]
    for template in found:
        if unknown := sorted(template.attributes - set(ATTRIBUTES)):
            raise ParameterError(f"arc template {str(template)!r}: the attributes are {ATTRIBUTES}, got {unknown[0]!r}")
    return found


def check_switches(**values: Any) -> None:
    """Raise ParameterError for anything but True, False or None."""
    for name, value in values.items():
        if value is not None and not isinstance(value, bool | np.bool_):
            raise ParameterError(f"{name}: expected True, False or None, got {value!r}")


def used_templates(featurizer: ArcFeaturizer, given: Sequence[ArcTemplate], stage: str) -> list[ArcTemplate]:
    """Those whose attributes the words have; ParameterError where there are none. stage: that of the parser."""
    if found := featurizer.usable(given):
        return found
    if stage == "pruning":
        raise ParameterError(f"prune needs tags or lemmas, and the treebank has only {featurizer.present}; leave it out")
    raise ParameterError(f"none of the templates can be used: the treebank has only {featurizer.present}")


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
