"""Labels of sequences from an exported chain: the same as those of the model, to the last bit of every score.

The scores of labels are summed in float64 in the order of the features; then come start, stop and forbidden labels. Ties go to
the first label at every step. Sequences of about one length are decoded together, a position at a time.
"""

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.tag_schemes import written
from structpred.export.light.token_input import Input  # or that of row_input or number_input: a program has one of them
from structpred.export.light.weights import FORBIDDEN, LOWEST, Arrays, Floats, Ints, PredictorError, Rows, beside, row_sums, run
from structpred.io.text import read_text, source_name
from structpred.runtime.ranges import ends_of

#: tokens, and pairs of labels at one position of all sequences, that are worked on together
_TOKENS, _PAIRS = 1 << 14, 1 << 18


class ChainPredictor:
    """A chain: how tokens become features, the weights, and the labels that may follow each other.

    settings, arrays: as `structpred export` writes them.
    """

    def __init__(self, settings: dict[str, Any], arrays: Arrays) -> None:
        self.table = arrays["table"]
        self.labels = np.array(settings["labels"])
        self.coding = settings.get("coding")  # the scheme of these, and that of users
        n = len(self.labels)
        edges = self.table[-n:].astype(np.float64)
        self.edges = edges if "follow" not in arrays else edges + np.where(arrays["follow"], 0.0, FORBIDDEN)
        self.first, self.last = (arrays.get(name, np.ones(n, bool)) for name in ("first", "last"))
        self.bounded = "follow" in arrays
        self.input = Input(settings, arrays)

    def predict(self, X: Any, allowed: Any = None) -> list[npt.NDArray[Any]]:
        """One array of labels per sequence, of an empty sequence an empty one; X as the model takes it, arrays 2-d.

        allowed: nested like the labels; for each token None, or the labels that it may have.
        Raises PredictorError for data that cannot be read, and where no labels satisfy the constraints.
        """
        given = [x if hasattr(x, "shape") else list(x) for x in X]
        if allowed is not None and len(allowed) != len(given):
            raise PredictorError(f"allowed: expected {len(given)} entries, one per sample, got {len(allowed)}")
        lengths = np.array([x.shape[0] if hasattr(x, "shape") else len(x) for x in given], np.int64)
        if not lengths.any():
            return [self.labels[:0] for _ in given]
        # another sequence replaces an empty one: blocks are those of the model, and errors name samples by their numbers
        at = np.maximum.accumulate(np.where(lengths > 0, np.arange(len(given)), np.argmax(lengths > 0))).tolist()
        offsets = ends_of(lengths[at])
        rows = self.input.rows([given[i] for i in at], offsets)
        choices = None if allowed is None else self._choices([allowed[i] for i in at], offsets)
        found = self._labels(rows, offsets, choices)
        return [labels if length else labels[:0] for labels, length in zip(found, lengths.tolist(), strict=True)]

    def predict_file(self, path: str) -> str:
        """The text of a file with the labels, as `structpred predict` writes it."""
        return self.input.labelled(read_text(path), source_name(path), self._named)

    def _named(self, rows: Rows, offsets: Ints) -> list[str]:
        return [str(label) for labels in self._labels(rows, offsets, None) for label in labels.tolist()]

    def _labels(self, rows: Rows, offsets: Ints, choices: npt.NDArray[np.bool_] | None) -> list[npt.NDArray[Any]]:
        """The labels of each sequence, as users have them."""
        labels = self.labels[self._decode(rows, offsets, choices)]
        found = [labels[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        return found if self.coding is None else [np.array(written(row.tolist(), self.coding[1]), row.dtype) for row in found]

    def _choices(self, allowed: Sequence[Any], offsets: Ints) -> npt.NDArray[np.bool_]:
        """Which labels each token may have."""
        code = {label: k for k, label in enumerate(self.labels.tolist())}
        out = np.ones((int(offsets[-1]), len(code)), bool)
        for i, (start, own) in enumerate(zip(offsets[:-1].tolist(), allowed, strict=True)):
            if own is None:
                continue
            if len(own) != offsets[i + 1] - start:
                raise PredictorError(
                    f"allowed, sample {i}: expected {offsets[i + 1] - start} entries, one per token, got {len(own)}"
                )
            if self.coding is not None:
                own = written([x if x is None else (x,) if isinstance(x, str) else tuple(x) for x in own], *self.coding)
            for t, entry in enumerate(own):
                if entry is not None:
                    listed = (entry,) if isinstance(entry, str | int | np.integer) else tuple(entry)
                    out[start + t] = False
                    out[start + t, [code[label] for label in listed if label in code]] = True
                    if not out[start + t].any():
                        raise PredictorError(f"allowed, sample {i}, position {t}: no label that the model knows is left")
        return out

    def _decode(self, rows: Rows, offsets: Ints, choices: npt.NDArray[np.bool_] | None) -> Ints:
        """The best label codes of all tokens."""
        lengths, n = np.diff(offsets), len(self.labels)
        order = np.argsort(-lengths, kind="stable")
        codes, begin = np.empty(int(offsets[-1]), np.int64), 0
        while begin < len(order):
            most = max(min(_TOKENS // int(lengths[order[begin]]), _PAIRS // n**2), 1)
            some = order[begin : begin + most]
            self._decode_some(rows, offsets[some], lengths[some], choices, codes, some)
            begin += most
        return codes

    def _decode_some(
        self, rows: Rows, starts: Ints, lengths: Ints, choices: npt.NDArray[np.bool_] | None, codes: Ints, samples: Ints
    ) -> None:
        """Viterbi for sequences by falling length. Tokens are laid out position by position."""
        running = [int(np.searchsorted(-lengths, -t)) for t in range(int(lengths[0]))]  # sequences with a token t
        tokens = np.concatenate([starts[:m] + t for t, m in enumerate(running)])
        places = ends_of(np.array(running))
        best = self._emissions(rows, tokens, starts, starts + lengths - 1, choices)
        slices = [slice(a, b) for a, b in zip(places[:-1].tolist(), places[1:].tolist(), strict=True)]
        for t in range(1, len(slices)):
            before = best[slices[t - 1]][: running[t]]
            best[slices[t]] = (before[:, :, None] + self.edges).max(axis=1) + best[slices[t]]
        after, into = np.empty(0, np.int64), np.ascontiguousarray(self.edges.T)
        for own in reversed(slices):
            here = best[own]
            m = len(after)
            if (self.bounded or choices is not None) and (low := here[m:].max(axis=1, initial=-np.inf) <= LOWEST).any():
                raise PredictorError(f"sample {samples[m : len(here)][low].min()}: no label sequence satisfies the constraints")
            found = np.empty(len(here), np.int64)
            found[:m] = (here[:m] + into[after]).argmax(axis=1)  # the first of equal ones
            found[m:] = here[m:].argmax(axis=1)
            codes[tokens[own]] = after = found

    def _emissions(self, rows: Rows, tokens: Ints, firsts: Ints, lasts: Ints, choices: npt.NDArray[np.bool_] | None) -> Floats:
        """The scores of the labels at these tokens."""
        n = len(self.labels)
        ends = self.table[-n - 2 : -n]
        out = row_sums(self.table, rows, tokens)
        is_first, is_last = np.isin(tokens, firsts), np.isin(tokens, lasts)
        out[is_first] += ends[0]
        out[is_last] += ends[1]
        if self.bounded or choices is not None:
            may = np.ones(out.shape, bool) if choices is None else choices[tokens]
            may[is_first] &= self.first
            may[is_last] &= self.last
            out = np.where(may, out, out + FORBIDDEN)
        return out


@cache
def predictor() -> ChainPredictor:
    """The predictor of this program, its weights read when it is first used."""
    return ChainPredictor(*beside(__file__))


def predict(X: Any, allowed: Any = None) -> list[npt.NDArray[Any]]:
    """The labels of sequences: see ChainPredictor.predict."""
    return predictor().predict(X, allowed)


def predict_file(path: str) -> str:
    """The text of a file with its labels: see ChainPredictor.predict_file."""
    return predictor().predict_file(path)


if __name__ == "__main__":
    sys.exit(run(predict_file, "Label sequences."))
