"""Readers and writers of data files, and feature templates; it knows nothing of learning."""

from structpred.io.clus import read_clus
from structpred.io.columns import ColumnCorpus, format_columns, read_columns
from structpred.io.crfsuite import AttributeCorpus, format_crfsuite, read_crfsuite
from structpred.io.featurizer import TemplateFeaturizer
from structpred.io.hashed_templates import HashedTemplateFeaturizer
from structpred.io.mulan import read_label_xml, read_mulan
from structpred.io.multilabel import MultiLabelData, read_libsvm_multilabel, read_npz_multilabel, write_npz_multilabel
from structpred.io.ocr import OcrWords, read_ocr
from structpred.io.templates import Atom, Template, built_in_templates, load_templates, read_template
from structpred.io.text import open_output, read_text, source_name
from structpred.io.treebank import Sentence, Tree, Treebank
from structpred.io.treebank_checks import validate_treebank
from structpred.io.treebank_formats import TREEBANK_FORMATS, TreebankFormat
from structpred.io.treebank_reader import read_treebank, stream_treebank
from structpred.io.treebank_rules import Problem
from structpred.io.treebank_writer import write_treebank
from structpred.io.uai import PairwiseProblem, UaiModel, format_uai, read_uai, read_uai_evidence

__all__ = [
    "TREEBANK_FORMATS",
    "Atom",
    "AttributeCorpus",
    "ColumnCorpus",
    "HashedTemplateFeaturizer",
    "MultiLabelData",
    "OcrWords",
    "PairwiseProblem",
    "Problem",
    "Sentence",
    "Template",
    "TemplateFeaturizer",
    "Tree",
    "Treebank",
    "TreebankFormat",
    "UaiModel",
    "built_in_templates",
    "format_columns",
    "format_crfsuite",
    "format_uai",
    "load_templates",
    "open_output",
    "read_clus",
    "read_columns",
    "read_crfsuite",
    "read_label_xml",
    "read_libsvm_multilabel",
    "read_mulan",
    "read_npz_multilabel",
    "read_ocr",
    "read_template",
    "read_text",
    "read_treebank",
    "read_uai",
    "read_uai_evidence",
    "source_name",
    "stream_treebank",
    "validate_treebank",
    "write_npz_multilabel",
    "write_treebank",
]
