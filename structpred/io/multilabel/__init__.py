"""Multi-label data: ARFF, CLUS, Mulan, LIBSVM and NumPy files."""

from structpred.io.multilabel.data import MultiLabelData, read_libsvm_multilabel, read_npz_multilabel, write_npz_multilabel

__all__ = ["MultiLabelData", "read_libsvm_multilabel", "read_npz_multilabel", "write_npz_multilabel"]
