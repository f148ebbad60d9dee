"""Readers and writers of data files, and feature templates; it knows nothing of learning. A name is loaded when it is used."""

from typing import TYPE_CHECKING

from structpred.runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from structpred.io.columns import ColumnCorpus, format_columns, read_columns
    from structpred.io.crfsuite import AttributeCorpus, format_crfsuite, read_crfsuite
    from structpred.io.multilabel.clus import read_clus
    from structpred.io.multilabel.data import MultiLabelData, read_libsvm_multilabel, read_npz_multilabel, write_npz_multilabel
    from structpred.io.multilabel.mulan import read_label_xml, read_mulan
    from structpred.io.ocr import OcrWords, read_ocr
    from structpred.io.templates.featurizer import TemplateFeaturizer
    from structpred.io.templates.hashed_templates import HashedTemplateFeaturizer
    from structpred.io.templates.templates import Atom, Template, built_in_templates, load_templates, read_template
    from structpred.io.text import open_output, read_text, source_name
    from structpred.io.treebanks.checks import validate_treebank
    from structpred.io.treebanks.formats import TREEBANK_FORMATS, TreebankFormat
    from structpred.io.treebanks.reader import read_treebank, stream_treebank
    from structpred.io.treebanks.rules import Problem
    from structpred.io.treebanks.treebank import Sentence, Tree, Treebank
    from structpred.io.treebanks.writer import write_treebank
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

_PLACES = {
    "Atom": "structpred.io.templates.templates",
    "AttributeCorpus": "structpred.io.crfsuite",
    "built_in_templates": "structpred.io.templates.templates",
    "ColumnCorpus": "structpred.io.columns",
    "format_columns": "structpred.io.columns",
    "format_crfsuite": "structpred.io.crfsuite",
    "format_uai": "structpred.io.uai",
    "HashedTemplateFeaturizer": "structpred.io.templates.hashed_templates",
    "load_templates": "structpred.io.templates.templates",
    "MultiLabelData": "structpred.io.multilabel.data",
    "OcrWords": "structpred.io.ocr",
    "open_output": "structpred.io.text",
    "PairwiseProblem": "structpred.io.uai",
    "Problem": "structpred.io.treebanks.rules",
    "read_clus": "structpred.io.multilabel.clus",
    "read_columns": "structpred.io.columns",
    "read_crfsuite": "structpred.io.crfsuite",
    "read_label_xml": "structpred.io.multilabel.mulan",
    "read_libsvm_multilabel": "structpred.io.multilabel.data",
    "read_mulan": "structpred.io.multilabel.mulan",
    "read_npz_multilabel": "structpred.io.multilabel.data",
    "read_ocr": "structpred.io.ocr",
    "read_template": "structpred.io.templates.templates",
    "read_text": "structpred.io.text",
    "read_treebank": "structpred.io.treebanks.reader",
    "read_uai": "structpred.io.uai",
    "read_uai_evidence": "structpred.io.uai",
    "Sentence": "structpred.io.treebanks.treebank",
    "source_name": "structpred.io.text",
    "stream_treebank": "structpred.io.treebanks.reader",
    "Template": "structpred.io.templates.templates",
    "TemplateFeaturizer": "structpred.io.templates.featurizer",
    "Tree": "structpred.io.treebanks.treebank",
    "Treebank": "structpred.io.treebanks.treebank",
    "TREEBANK_FORMATS": "structpred.io.treebanks.formats",
    "TreebankFormat": "structpred.io.treebanks.formats",
    "UaiModel": "structpred.io.uai",
    "validate_treebank": "structpred.io.treebanks.checks",
    "write_npz_multilabel": "structpred.io.multilabel.data",
    "write_treebank": "structpred.io.treebanks.writer",
}
__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
