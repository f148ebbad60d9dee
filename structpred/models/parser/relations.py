"""The second stage of labelled parsing: the relation of each word to its head, a chain of relations in the order of the words."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.types import Integers
from structpred.data.arc_templates import ArcTemplate, compile_templates
from structpred.data.sequences import AttributedSentences, PackedSequences
from structpred.features.arcs import ArcScratch
from structpred.models.chain.decoding import decode_chains
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.stages import stage_of
from structpred.runtime.threads import run_ranges, split_evenly
from structpred.storage.schema import Array, ListOf, Record, Text, Whole, array_of, as_file_error

_SLOT_BITS = 22


def fitted_labeler(parser: Any, fit: Callable[[ChainLabeler], object]) -> ChainLabeler:
    """The second stage with the settings of a parser, after `fit`; where it was interrupted, its stop_reason_ says so."""
    labeler = ChainLabeler(
        parser.trainer, parser.label_C, parser.max_iter, parser.tol, surrogate=parser.surrogate, check_every=parser.check_every,
        n_jobs=parser.n_jobs,
        random_state=parser.random_state, regulariser=parser.regulariser, missing="_", verbose=parser.verbose,
    )  # fmt: skip
    try:
        with stage_of(parser, labeler, "relations", 2):
            fit(labeler)
    except KeyboardInterrupt:
        if not hasattr(labeler, "coef_"):  # a second signal, in the midst of a step
            raise
    return labeler


class RelationFeatures:
    """Features of given arcs, hashed; those seen at least min_count times in training get a row of weights.

    slots: the hashes (22 bits) that have one, ascending; features that share a slot share the row.
    """

    HEADER = Record({"templates": ListOf(Text(), 1), "min_count": Whole(1)})
    SLOTS = Array(("int32",), (None,), below=1 << _SLOT_BITS, ascending=True)

    def __init__(self, templates: Sequence[ArcTemplate], slots: npt.NDArray[np.int32] | None = None, min_count: int = 2) -> None:
        self.templates, self.min_count = list(templates), min_count
        self.slots = np.empty(0, np.int32) if slots is None else slots

    @cached_property
    def _rows(self) -> npt.NDArray[np.int32]:
        """The row of each hash, -1 for none."""
        rows = np.full(1 << _SLOT_BITS, -1, np.int32)
        rows[self.slots] = np.arange(len(self.slots), dtype=np.int32)
        return rows

    def __getstate__(self) -> dict[str, Any]:
        """Without the rows of the slots, which follow from them and are much larger."""
        return {name: value for name, value in self.__dict__.items() if name != "_rows"}

    def counts(self, data: AttributedSentences, heads: Integers) -> Integers:
        """How often each hash occurs."""
        return np.bincount(self._hashed(data, heads).ravel(), minlength=1 << _SLOT_BITS)

    def transform(self, data: AttributedSentences, heads: Integers, n_jobs: int = 1) -> PackedSequences:
        """The features of the arcs (heads[t], t), one position per word; the same for any number of threads."""
        from structpred.features._arc_kernels import pack_known

        hashed = self._hashed(data, heads, n_jobs)
        indptr, indices = np.zeros(data.n_tokens + 1, np.int64), np.empty(hashed.size, np.int32)
        size = pack_known(hashed, self._rows, indptr, indices)
        return PackedSequences(indptr, indices[:size], np.ones(size, np.float32), data.offsets, max(len(self.slots), 1))

    def labels(self, labeler: ChainLabeler, data: AttributedSentences, heads: Integers, n_jobs: int = 1) -> list[str]:
        """The relations that a labeller of these features finds for the arcs (heads[t], t), flat."""
        classes: list[str] = labeler.classes_.tolist()
        codes = decode_chains(self.transform(data, heads, n_jobs), len(classes), labeler.coef_, None, n_jobs)
        return [classes[code] for code in codes.tolist()]

    def rows(self, data: AttributedSentences, heads: Integers) -> tuple[list[ArcTemplate], npt.NDArray[np.int32]]:
        """The templates, and the row of weights that each gives the arc to each word, (n_words, n_templates), -1 for none."""
        order = compile_templates(self.templates, data.names).order
        return [self.templates[k] for k in order.tolist()], self._rows[self._hashed(data, heads)]

    def _hashed(self, data: AttributedSentences, heads: Integers, n_jobs: int = 1) -> npt.NDArray[np.uint32]:
        from structpred.features._arc_kernels import hash_arcs

        c = compile_templates(self.templates, data.names)
        out = np.empty((data.n_tokens, len(self.templates)), np.uint32)

        def run(a: int, b: int) -> None:
            s = ArcScratch(int(data.lengths[a:b].max(initial=1)), len(self.templates), data.n_tags)
            hash_arcs(data.words, data.offsets[a : b + 1], heads, c.program, c.kinds, s.hashes, s.counts, s.tags, out)

        run_ranges(run, split_evenly(data.lengths, n_jobs), n_jobs)
        out >>= np.uint32(32 - _SLOT_BITS)
        return out

    def to_bundle(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The state for a model file: plain data, and the slots."""
        return {"templates": [str(t) for t in self.templates], "min_count": self.min_count}, {"slots": self.slots}

    @classmethod
    def from_bundle(cls, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> "RelationFeatures":
        """The inverse of to_bundle; FileFormatError where it does not fit."""
        with as_file_error("the features of relations of this file cannot be used"):
            head = cls.HEADER.read(header, "relations.features")
            slots = array_of(arrays, "slots", cls.SLOTS)
            return cls([ArcTemplate.parse(text) for text in head["templates"]], slots, head["min_count"])
