"""Readers and writers of data files, and feature templates; it knows nothing of learning."""

from structpred.io.columns import ColumnCorpus, format_columns, read_columns
from structpred.io.crfsuite import AttributeCorpus, format_crfsuite, read_crfsuite
from structpred.io.featurizer import TemplateFeaturizer
from structpred.io.hashed_templates import HashedTemplateFeaturizer
from structpred.io.ocr import OcrWords, read_ocr
from structpred.io.templates import Atom, Template, built_in_templates, load_templates, read_template
from structpred.io.text import open_output, read_text, source_name

__all__ = [
    "Atom",
    "AttributeCorpus",
    "ColumnCorpus",
    "HashedTemplateFeaturizer",
    "OcrWords",
    "Template",
    "TemplateFeaturizer",
    "built_in_templates",
    "format_columns",
    "format_crfsuite",
    "load_templates",
    "open_output",
    "read_columns",
    "read_crfsuite",
    "read_ocr",
    "read_template",
    "read_text",
    "source_name",
]
