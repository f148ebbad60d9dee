"""Multi-label data written as an npz file, with the keys that docs/formats.md lists."""

from pathlib import Path

import numpy as np

from structpred.io import MultiLabelData


def write_npz(data: MultiLabelData, path: Path) -> None:
    """The features as the parts of a CSR matrix; the hierarchy's edges where there is one."""
    X = data.X.tocsr()
    arrays = {} if data.hierarchy is None else {"hierarchy": data.hierarchy.edges}
    arrays |= {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": np.array(X.shape), "Y": data.Y}
    np.savez_compressed(path, label_names=data.label_names, feature_names=data.feature_names, **arrays)
