"""What a parser must know of words beside their forms, and whether the words that it is given have it."""

import warnings
from collections.abc import Sequence
from typing import Any

from structpred.data.arc_templates import ArcTemplate
from structpred.errors import StructpredWarning
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.io.treebanks.treebank import Treebank

_ATTRIBUTES = ("lemma", "upos", "xpos", "feats", "case")
_TAGS = ("upos", "xpos")


def attributes_read(parser: Any) -> list[str]:
    """What a fitted parser must know of words beside their forms.

    >>> from structpred.models import DependencyParser
    >>> attributes_read(DependencyParser().fit([[{"form": "cats"}, {"form": "sleep", "upos": "VERB"}]], [[2, 0]]))
    ['upos']
    """
    second = parser.relation_features_
    return _read_by(parser.featurizer_, [*parser.templates_, *([] if second is None else second.templates)])


def _read_by(featurizer: ArcFeaturizer, templates: Sequence[ArcTemplate]) -> list[str]:
    used = {name for template in templates for name in template.attributes}
    if any(tag != "_" for tag in featurizer.tags):
        used.add("xpos" if featurizer.fine else "upos")
    return [name for name in _ATTRIBUTES if name in used]


def warn_of_untagged(treebank: Treebank, featurizer: ArcFeaturizer, templates: Sequence[ArcTemplate]) -> None:
    """Warn where no word at all has a tag, and a parser with these templates learnt from tags."""
    missing = [name for name in _read_by(featurizer, templates) if name in _TAGS and set(getattr(treebank, name)) == {"_"}]
    if missing:
        where = treebank.path if treebank.n_words and treebank.line_numbers[0] > 0 else "X"
        warnings.warn(
            f"{where}: expected words with {' and '.join(missing)}, which the parser was trained with; got none, and trees are "
            f'much worse without; tag the words first (in Python: dicts with "form" and "{missing[0]}"), or train a parser on '
            "forms alone",
            StructpredWarning,
            stacklevel=4,
        )
