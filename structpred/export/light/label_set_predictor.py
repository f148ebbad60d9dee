"""Sets of labels from an exported multi-label model: the same as those of the model, to the last bit of every score."""

import io
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from structpred.export.light.weights import LOWEST, Arrays, Floats, Ints, PredictorError, Rows, beside, from_dense, row_sums, run
from structpred.io.multilabel.arff import arff_format, parse_arff
from structpred.io.multilabel.data import LibsvmRows
from structpred.io.multilabel.mulan import feature_columns, features_of
from structpred.io.text import decoded, label_sets, read_bytes, source_name
from structpred.oracles.leaf_sets import best_with_leaf
from structpred.runtime.ranges import ends_of


class Examples(NamedTuple):
    """Feature rows, how many features there are, and their names; None where they are numbers."""

    rows: Rows
    n_features: int
    names: list[str] | None


def read_examples(path: str, labels: Sequence[str], n_features: int, zero_based: bool) -> Examples:
    """The features of a file, whose format its name and contents show. labels: attributes of ARFF files that are no features."""
    raw, name = read_bytes(path), source_name(path)
    if raw.startswith(b"PK\x03\x04"):
        return parse_npz(raw, name, n_features)
    text = decoded(raw, name)
    if (format := arff_format(path, text)) is not None:
        table = parse_arff(text, name, ("hierarchical",))
        rows, names = feature_columns(table, features_of(table, () if format == "clus" else labels))
        return Examples(Rows(*rows), len(names), names)
    found = LibsvmRows(name, zero_based, n_features)
    for _ in found.read(text):
        pass
    return Examples(Rows(*map(np.asarray, (found.indptr, found.indices, found.values))), n_features, None)


def parse_npz(raw: bytes, name: str, n_features: int) -> Examples:
    """X, or X_data, X_indices, X_indptr and X_shape of a CSR matrix; and feature_names."""
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as loaded:
            arrays = {key: loaded[key] for key in loaded.files if key.startswith(("X", "feature_names"))}
        names = [str(one) for one in arrays["feature_names"].ravel()] if "feature_names" in arrays else None
        if "X" in arrays:
            return Examples(from_dense(arrays["X"], n_features, name), n_features, names)
        indptr, columns = arrays["X_indptr"].astype(np.int64), arrays["X_indices"].astype(np.int64)
        counts, n = np.diff(indptr), int(arrays["X_shape"][1])
        at = np.repeat(np.arange(len(counts)), counts) * n + columns
    except (KeyError, ValueError, OSError) as error:
        raise PredictorError(f"{name}: expected an npz file with X or the parts of a CSR matrix: {error}") from None
    order = np.argsort(at, kind="stable")
    if (np.diff(at[order]) == 0).any():
        raise PredictorError(f"{name}: expected a matrix in which no entry comes twice")
    return Examples(Rows(indptr, columns[order], arrays["X_data"].astype(np.float64)[order]), n, names)


#: outputs of all examples that are looked at together
_OUTPUTS = 1 << 20
_EXAMPLES = 1 << 12


class LabelSetPredictor:
    """Weights of each label off and on, tables of pairs, and how the best set is found.

    settings, arrays: as `structpred export` writes them.
    """

    def __init__(self, settings: dict[str, Any], arrays: Arrays) -> None:
        self.settings, self.arrays, self.table = settings, arrays, arrays["table"]
        self.names: list[str] = settings["labels"]
        self.decode = {"enumeration": self._enumerated, "tree": self._of_tree, "path": self._of_path, "leaf": self._with_leaf}[
            settings["inference"]
        ]

    def predict(self, X: Any) -> Ints:
        """(n, n_labels), 0 and 1, for an array (n, n_features). PredictorError for anything else."""
        return self._predicted(from_dense(X, self.settings["n_features"], "X"))

    def predict_file(self, path: str) -> str:
        """A line per example with its labels, separated by tabs, as `structpred predict` writes it."""
        settings, name = self.settings, source_name(path)
        known = settings["feature_names"]
        read = read_examples(path, self.names, settings["n_features"], settings["zero_based"])
        if read.n_features != settings["n_features"]:
            raise PredictorError(f"{name}: expected the {settings['n_features']} features of training, got {read.n_features}")
        if known is not None and read.names is not None and read.names != known and not all(map(str.isdecimal, read.names)):
            k = next(k for k, (one, other) in enumerate(zip(known, read.names, strict=True)) if one != other)
            raise PredictorError(f"{name}: feature {k} is {read.names[k]!r}, but {known[k]!r} in the training data")
        return label_sets(self._predicted(read.rows).tolist(), self.names)

    def _predicted(self, rows: Rows) -> Ints:
        # with the scale of training and the constant feature
        ids, values = rows.ids, np.ones(len(rows.ids)) if rows.values is None else rows.values
        if "shift" in self.arrays:
            dense = np.zeros((len(rows.indptr) - 1, self.settings["n_features"]))
            dense[np.repeat(np.arange(len(dense)), np.diff(rows.indptr)), ids] = values
            rows = from_dense((dense - self.arrays["shift"]) * self.arrays["factor"], dense.shape[1], "X")
            ids, values = rows.ids, np.zeros(0) if rows.values is None else rows.values
        elif "factor" in self.arrays:
            values = values * self.arrays["factor"][ids]
        counts, ends = np.diff(rows.indptr), rows.indptr[1:]
        if bias := self.settings["bias"]:
            counts, ids, values = counts + 1, np.insert(ids, ends, self.settings["n_features"]), np.insert(values, ends, bias)
        rows = Rows(ends_of(counts), ids, values)
        n = len(rows.indptr) - 1
        size = min(_EXAMPLES, max(_OUTPUTS >> len(self.names), 1)) if self.settings["inference"] == "enumeration" else _EXAMPLES
        out = np.zeros((n, len(self.names)), np.int64)
        for k in range(0, n, size):
            chosen = np.arange(k, min(k + size, n))
            out[chosen] = self.decode(row_sums(self.table, rows, chosen).reshape(len(chosen), -1, 2))
        return out

    def _of_tree(self, scores: Floats) -> Ints:
        """Max-product on a forest: children before parents; ties go to the state off."""
        plan, pairs = self.arrays["plan"].tolist(), self.arrays["pairs"].ravel()
        best, back = scores.copy(), np.zeros(scores.shape, np.int64)
        for node, parent, table, own, above in plan[:-1]:
            value = best[:, node, :, None]
            if table >= 0:
                value = value + pairs[table + own * np.arange(2)[:, None] + above * np.arange(2)]
            back[:, node] = value.argmax(axis=1)
            best[:, parent] += value.max(axis=1)
        out, root = np.zeros(scores.shape[:2], np.int64), plan[-1][0]
        out[:, root] = best[:, root].argmax(axis=1)
        _refuse_forbidden(best[:, root].max(axis=1))
        each = np.arange(len(out))
        for node, parent, *_ in reversed(plan[:-1]):
            out[:, node] = back[each, node, out[:, parent]]
        return out

    def _enumerated(self, scores: Floats) -> Ints:
        """All sets, by tables of partial sums: what the first half of the labels say, the others, and both to each other."""
        n = scores.shape[1]
        half, middle = n // 2, n // 2 + (n - n // 2) // 3
        high, low = self._grown(scores, 0, half), self._grown(scores, half, n)
        cross = np.zeros((1, 2 ** (middle - half) + 2 ** (n - middle)))
        for node in range(half):
            rows = [
                np.concatenate((self._between(node, state, half, middle), self._between(node, state, middle, n)))
                for state in (0, 1)
            ]
            cross = (cross[:, None, :] + np.array(rows)).reshape(-1, cross.shape[1])
        size = 2 ** (middle - half)
        base = high[:, :, None] + cross[:, :size]
        total = low.reshape(len(scores), 1, size, -1) + (base[:, :, :, None] + cross[:, None, size:])
        flat = total.reshape(len(scores), -1)
        code = flat.argmax(axis=1)  # the first of equal ones
        _refuse_forbidden(flat[np.arange(len(flat)), code])
        return (code[:, None] >> np.arange(n - 1, -1, -1)) & 1

    def _between(self, node: int, state: int, first: int, last: int) -> Floats:
        """The scores between a label in a state and the labels first..last-1, in all their states."""
        out = np.zeros(1)
        for other in range(last - 1, first - 1, -1):
            k = int(self.arrays["edge_of"][node, other])
            row = np.zeros(2) if k < 0 else self.arrays["pairs"][k, state]
            out = np.concatenate((out + row[0], out + row[1]))
        return out

    def _grown(self, scores: Floats, first: int, last: int) -> Floats:
        """The scores of the labels first..last-1 and between them, in all their states."""
        out = np.zeros((len(scores), 1))
        for node in range(last - 1, first - 1, -1):
            added = [scores[:, node, state, None] + self._between(node, state, node + 1, last) for state in (0, 1)]
            out = np.concatenate((out + added[0], out + added[1]), axis=1)
        return out

    def _of_path(self, scores: Floats) -> Ints:
        """Of each run of ends the best path from a root, the first of equal ones; sums go from the end up."""
        gains = np.concatenate((scores[:, :, 1] - scores[:, :, 0], np.zeros((len(scores), 1))), axis=1)
        sums = np.zeros((len(scores), len(self.arrays["paths"])))
        for step in self.arrays["ladders"]:
            sums += gains[:, step]
        out, paths = np.zeros(scores.shape[:2], np.int64), self.arrays["paths"]
        for first, last in self.arrays["runs"].tolist():
            out += paths[first + sums[:, first:last].argmax(axis=1)]
        return out

    def _with_leaf(self, scores: Floats) -> Ints:
        """The best set that is closed under parents and has a leaf on."""
        gains, arrays, none = scores[:, :, 1] - scores[:, :, 0], self.arrays, np.zeros(scores.shape[:2], bool)
        parents, order = arrays["parents"].tolist(), arrays["order"].tolist()
        return best_with_leaf(gains, none, parents, order, arrays["ladders"], arrays["paths"])[0]


def _refuse_forbidden(best: Floats) -> None:
    if len(best) and best.min() <= LOWEST:
        raise PredictorError(f"example {int(best.argmin())}: no set of labels satisfies the constraints")


@cache
def predictor() -> LabelSetPredictor:
    """The predictor of this program, its weights read when it is first used."""
    return LabelSetPredictor(*beside(__file__))


def predict(X: Any) -> Ints:
    """The labels of examples: see LabelSetPredictor.predict."""
    return predictor().predict(X)


def predict_file(path: str) -> str:
    """A line of labels per example of a file: see LabelSetPredictor.predict_file."""
    return predictor().predict_file(path)


if __name__ == "__main__":
    sys.exit(run(predict_file, "Predict sets of labels."))
