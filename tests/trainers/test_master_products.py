"""Inner products of cutting planes."""

import numpy as np

from structpred.core.sparse import SparseVector
from structpred.trainers.planes import master_qp
from structpred.trainers.planes.master_qp import Master


def test_few_and_many_planes_have_the_same_products():
    """Planes that are added one by one and all at once have the same Gram matrix, to the last bit: that of dense rows."""
    rng = np.random.default_rng(0)
    dim, n = 40, 3 * master_qp.FEW
    planes = []
    for k in range(n):
        at = np.sort(rng.choice(dim, size=rng.integers(0, 12), replace=False)).astype(np.int64)
        planes.append((k % 5, SparseVector(at, rng.normal(size=len(at))), 1.0))
    together, single = Master.empty(5).add(planes, dim), Master.empty(5)
    for plane in planes:
        single = single.add([plane], dim)
    assert together.gram.tobytes() == single.gram.tobytes()
    dense = np.zeros((n, dim))
    for row, (_, plane, _) in zip(dense, planes, strict=True):
        row[plane.indices] = plane.values
    np.testing.assert_allclose(together.gram, dense @ dense.T, rtol=1e-12, atol=1e-12)
