"""Readers and writers of data files, and feature templates; it knows nothing of learning. A name is loaded when it is used."""

from typing import TYPE_CHECKING

from structpred.runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from structpred.io.columns import ColumnCorpus, format_columns, read_columns
    from structpred.io.crfsuite import AttributeCorpus, read_crfsuite
    from structpred.io.jsonl import read_jsonl
    from structpred.io.multilabel.data import MultiLabelData, read_libsvm_multilabel, read_npz_multilabel
    from structpred.io.multilabel.mulan import read_clus, read_label_xml, read_mulan
    from structpred.io.ocr import OcrWords, read_ocr
    from structpred.io.templates.featurizer import TemplateFeaturizer
    from structpred.io.templates.hashed_templates import HashedTemplateFeaturizer
    from structpred.io.templates.templates import Atom, Template, built_in_templates, load_templates, read_template
    from structpred.io.text import read_text, source_name
    from structpred.io.treebanks.formats import TREEBANK_FORMATS, TreebankFormat
    from structpred.io.treebanks.reader import read_treebank, stream_treebank
    from structpred.io.treebanks.rules import Problem, validate_treebank
    from structpred.io.treebanks.treebank import Sentence, Tree, Treebank, write_treebank
    from structpred.io.uai import PairwiseProblem, UaiModel, read_uai, read_uai_evidence

__all__ = [
    "TREEBANK_FORMATS", "Atom", "AttributeCorpus", "ColumnCorpus", "HashedTemplateFeaturizer", "MultiLabelData",
    "OcrWords", "PairwiseProblem", "Problem", "Sentence", "Template", "TemplateFeaturizer", "Tree", "Treebank",
    "TreebankFormat", "UaiModel", "built_in_templates", "format_columns",
    "load_templates", "read_clus", "read_columns", "read_crfsuite", "read_jsonl", "read_label_xml",
    "read_libsvm_multilabel", "read_mulan", "read_npz_multilabel", "read_ocr", "read_template", "read_text",
    "read_treebank", "read_uai", "read_uai_evidence", "source_name", "stream_treebank", "validate_treebank",
    "write_treebank",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__)
