"""What a light program needs of a chain."""

from collections.abc import Sequence
from typing import Any

from structpred.data.vocabulary import FeatureDictionary
from structpred.export.parts import Parts
from structpred.features.sequences import weight_table
from structpred.io.templates.featurizer import TemplateFeaturizer
from structpred.io.templates.hashed_templates import HashedTemplateFeaturizer
from structpred.io.templates.templates import Template
from structpred.models import ChainLabeler
from structpred.models.chain.constraints import resolve_constraints
from structpred.models.chain.inputs import NumericInput, RowInput, TokenInput

#: the format of files, unless the model says another one, and where it does those that fit
_FORMATS = {"rows": "columns", "tokens": "crfsuite", "numeric": "ocr"}


def chain_parts(model: ChainLabeler) -> Parts:
    """Weights, labels, features and constraints."""
    labels = model.classes_.tolist()
    arrays = {"table": weight_table(model.coef_, len(labels))}
    if (rules := resolve_constraints(model.constraints)) is not None:
        arrays |= dict(zip(("follow", "first", "last"), rules.tables(labels), strict=True))
    parts = _input_parts(model.input_)
    settings = {"labels": labels, "input": model.input_.kind, **_file_settings(model), **parts.settings}
    return Parts(settings, arrays | parts.arrays, parts.texts)


def _input_parts(input_: Any) -> Parts:
    """How tokens become features."""
    if isinstance(input_, NumericInput):
        return Parts({"n_features": input_.n_columns, "intercept": bool(input_.intercept)}, {}, {})
    if isinstance(input_, TokenInput):
        known = input_.features
        if isinstance(known, FeatureDictionary):
            return Parts({"n_bits": None}, {}, {"names": known.names})
        return Parts({"n_bits": known.n_bits}, {}, {})
    assert isinstance(input_, RowInput)
    return _template_parts(input_.featurizer)


def _template_parts(featurizer: TemplateFeaturizer | HashedTemplateFeaturizer) -> Parts:
    settings = {
        "templates": [template.to_dict() for template in featurizer.templates], "n_columns": _n_columns(featurizer.templates),
    }  # fmt: skip
    if isinstance(featurizer, HashedTemplateFeaturizer):
        return Parts({**settings, "n_bits": featurizer.hasher.n_bits, "padding": None}, {}, {})
    part = featurizer.to_bundle()
    return Parts({**settings, "n_bits": None, "padding": featurizer._padding}, part.arrays, part.texts)


def _n_columns(templates: Sequence[Template]) -> int:
    """How many columns the templates look at."""
    return 1 + max((atom.column for template in templates for atom in template.atoms), default=0)


def _file_settings(model: ChainLabeler) -> dict[str, Any]:
    """The format of data files, and how many columns they may have: the labels may be missing where they are last."""
    known = getattr(model, "reader_", None) or {}
    format = known.get("format") or _FORMATS[model.input_.kind]
    column, width = known.get("label_column"), known.get("n_columns")
    if width is None:
        return {"format": format, "widths": [3] if format == "conll2000" else [], "label_column": -1}
    widths = [width, width - 1] if column == width - 1 else [width]
    return {"format": format, "widths": widths, "label_column": column}
