"""Models as files of the UAI format."""

import numpy as np

from structpred.core.oracle import Shape
from structpred.io.uai import UaiModel


def format_uai(model: UaiModel) -> str:
    """The text of a model's file; numbers are written so that reading gives the same ones."""
    lines = [model.kind, str(len(model.n_states)), " ".join(map(str, model.n_states)), str(len(model.scopes))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope in model.scopes]
    for table in model.tables:
        lines += ["", str(table.size), " ".join(map(repr, table.ravel().tolist()))]
    return "\n".join(lines) + "\n"


def model_of(shape: Shape, scores: np.ndarray) -> UaiModel:
    """The model of a pairwise problem: one factor per node, one per edge, exp(score); forbidden parts become zeros."""
    n, k = shape[:2]
    edges = [(shape[at], shape[at + 1]) for at in range(2, len(shape), 2)]
    values = np.exp(scores)
    nodes, pairs = values[: n * k].reshape(n, k), values[n * k :].reshape(len(edges), k, k)
    return UaiModel("MARKOV", (k,) * n, (*((i,) for i in range(n)), *edges), (*nodes, *pairs))
