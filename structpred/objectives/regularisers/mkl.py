"""temporary"""

import numpy as np

from structpred.core.regulariser import Regulariser


class MKL(Regulariser):
    name = "mkl"

    def __init__(self):
        self.groups = np.zeros(2, np.int64)

    def grouped(self, groups, names):
        new = MKL()
        new.groups = groups
        return new

    def value(self, w):
        return 0.5 * sum(float(np.linalg.norm(w[a:b].astype(np.float64))) for a, b in zip(self.groups, self.groups[1:])) ** 2

    def group_prox(self, x, step):
        y = np.sort(x)[::-1]
        c = np.cumsum(y)
        j = np.arange(1, len(x) + 1)
        rho = np.flatnonzero(y - step / (1 + j * step) * c > 0)
        if not len(rho):
            return np.zeros_like(x)
        r = rho[-1]
        tau = step / (1 + (r + 1) * step) * c[r]
        return np.maximum(x - tau, 0.0)

    def prox(self, w, step):
        n = np.array([np.linalg.norm(w[a:b]) for a, b in zip(self.groups, self.groups[1:])])
        b = self.group_prox(n, step)
        return np.repeat(np.divide(b, n, out=np.zeros_like(b), where=n > 0), np.diff(self.groups)) * w

    def bound(self, loss, lam, u):
        u = np.concatenate(list(u))
        M = max(np.linalg.norm(u[a:b]) for a, b in zip(self.groups, self.groups[1:]))
        if M == 0:
            return loss
        t = min(1.0, loss / (lam * M * M))
        return t * loss - 0.5 * lam * (t * M) ** 2

    def reach(self, value):
        return (2 * value) ** 0.5
