"""Two stages: a labeler that sees what a first one says of a token, of its neighbours and of the same word in the document."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from structpred.core.types import Integers
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.io.columns import ColumnCorpus
from structpred.io.templates.featurizer import TemplateFeaturizer, checked_corpus
from structpred.io.templates.templates import Atom, Template
from structpred.models.bundles import to_bundle
from structpred.models.chain.constraints import fixed_scores, rules_inside
from structpred.models.chain.decoding import chain_marginals, decode_chains
from structpred.models.chain.inputs import RowInput
from structpred.models.chain.sharding import ChainSharding, Sequences, labels_of
from structpred.models.chain.token_arrays import TokenArrays
from structpred.models.stages import forget_stages, stage_of
from structpred.runtime.threads import checked_jobs
from structpred.storage.bundles import Bundle

#: parts of the documents: the labels of each come from a labeler of the others
FOLDS = 2
#: what checkpoints, progress and messages call what is fitted first
FIRST = "first stage"
#: what the second stage sees beside the user's columns. said: the first one's label; sure: how probable it is; same: the label
#: that the same word has most often elsewhere in the document; type: the same of types, without O
SEEN = (
    "said[-2]", "said[-1]", "said[0]", "said[1]", "said[2]", "said[-1]|said[0]", "said[0]|said[1]", "said[-1]|said[0]|said[1]",
    "same[-1]", "same[0]", "same[1]", "type[-1]", "type[0]", "type[1]", "type[-1]|type[0]",
    "said[0]|same[0]", "said[0]|type[0]", "type[0]|word[0]", "said[0]|word[0]", "said[0]|shape[0]",
)  # fmt: skip
SURE = "said[-1]|sure[-1]", "said[0]|sure[0]", "said[1]|sure[1]"
_ATOM = re.compile(r"(\w+)\[(-?\d)\]")
#: probabilities between which the columns differ
_BINS = (0.5, 0.8, 0.95, 0.99)


class StagedInput(RowInput):
    """Rows, and behind their columns what a labeler, the first stage, says of them."""

    kind = "staged"

    def __init__(self, features: Any, first: Any, arrays: TokenArrays | None = None) -> None:
        super().__init__(features, arrays)
        self.first = first

    @property
    def templates(self) -> list[Template]:
        """Those of the user."""
        return list(self.first.input_.templates)

    def transform(self, sequences: Any) -> PackedSequences:
        """Pack, with the features known and the labels of the first stage. What this input has packed stays."""
        if isinstance(sequences, PackedSequences):
            return super().transform(sequences)
        corpus = checked_corpus(sequences, self.templates)
        found = said(self.first, self.first.input_.transform(corpus))
        return super().transform(with_said(corpus, _width(self.templates), *found))

    def to_bundle(self) -> Bundle:
        """What reads the rows, and the first stage."""
        found, first = super().to_bundle(), to_bundle(self.first)
        found.header["first"] = first.header
        found.add("first", first)
        return found

    @classmethod
    def of_bundle(cls, part: Bundle, labeler: Any) -> "StagedInput":
        """The inverse of to_bundle. labeler: the class of the first stage."""
        head = labeler._HEADER.read(part.header.get("first"), "input.header.first")
        if head["input"]["kind"] != RowInput.kind:
            raise ValueError(f"the first stage must read rows, got {head['input']['kind']}")
        rows = RowInput.from_bundle(part)
        return cls(rows.features, labeler._from_bundle(head, part.part("first", head), None), rows.arrays)


def said(labeler: Any, data: PackedSequences) -> tuple[list[str], Integers, Integers]:
    """The labels of a fitted labeler in its own coding; the code that it gives each token, and the bin of its probability."""
    classes, w = labeler.classes_.tolist(), labeler.coef_
    rules = fixed_scores(classes, data.offsets, rules_inside(labeler.constraints, labeler.coding_))
    codes = decode_chains(data, len(classes), w, rules, checked_jobs(labeler.n_jobs))
    sure = np.zeros(len(codes), np.int64)
    if labeler.probabilistic_:
        sure = np.searchsorted(_BINS, np.concatenate(chain_marginals(data, len(classes), w, rules))[np.arange(len(codes)), codes])
    return list(map(str, classes)), codes, sure


def with_said(corpus: ColumnCorpus, width: int, names: list[str], codes: Integers, sure: Integers) -> ColumnCorpus:
    """The first columns, and behind them those of `SEEN`. Words are those of column 0, in small letters."""
    small: dict[str, int] = {}
    words = np.array([small.setdefault(word.lower(), len(small)) for word in corpus.vocabularies[0]])
    place = np.repeat(corpus.document_of, corpus.lengths) * len(small) + words[corpus.codes[:, 0]]
    types = sorted({name.partition("-")[2] or name for name in names} - {"O"})
    type_of = np.array([types.index(name.partition("-")[2] or name) if name != "O" else -1 for name in names])
    same, kind = _elsewhere(place, codes, len(names)), _elsewhere(place, type_of[codes], len(types))
    kind = np.where((kind < 0) & (same >= 0), len(types), kind)
    texts = [names, [*names, "none"], [*types, "O", "none"], [*map(str, range(len(_BINS) + 1))]]
    coded = [np.where(own < 0, len(text) - 1, own) for text, own in zip(texts, (codes, same, kind, sure), strict=True)]
    table = np.column_stack([corpus.codes[:, :width], *coded]).astype(np.int32)
    return replace(corpus, vocabularies=[*corpus.vocabularies[:width], *texts], codes=table, text=None)


def _width(templates: Sequence[Template]) -> int:
    """The number of columns up to the last one that the templates read."""
    return 1 + max((atom.column for template in templates for atom in template.atoms), default=0)


def _elsewhere(place: Integers, codes: Integers, n: int) -> Integers:
    """For each token the code below n, the smallest of equals, that most others at its place have, -1 for none; -1 is no code."""
    pairs, counts = np.unique((place * n + codes)[codes >= 0], return_counts=True)
    owner, code = np.divmod(pairs, max(n, 1))
    order = np.lexsort((-counts, owner))
    owner, code, counts = (np.append(column[order], (-1, -1)) for column in (owner, code, counts))
    best = np.searchsorted(owner[:-2], place)
    # how many others have the most frequent code, and the next one
    most = np.where(owner[best] == place, counts[best] - (code[best] == codes), 0)
    next_ = np.where(owner[best + 1] == place, counts[best + 1], 0)
    found = np.where((most > next_) | ((most == next_) & (code[best] < code[best + 1])), code[best], code[best + 1])
    return np.where(most + next_ > 0, found, -1)


def _templates(width: int, probabilistic: bool) -> list[Template]:
    """Those of the columns that `with_said` adds."""
    at = {"said": (width, ""), "same": (width + 1, ""), "type": (width + 2, ""), "sure": (width + 3, "")}
    at |= {"word": (0, ""), "shape": (0, "short_shape")}
    texts = (*SEEN, *SURE) if probabilistic else SEEN
    atoms = ([(at[name], int(offset)) for name, offset in _ATOM.findall(text)] for text in texts)
    return [Template(text, tuple(Atom(c, k, how) for (c, how), k in own)) for text, own in zip(texts, atoms, strict=True)]


def prepared(model: Any, X: Any, y: Any, dev: Any, given: dict[str, Any]) -> Sequences:
    """Fit the first stage; what the second one learns from. given: what `fit` takes with an entry for each sequence."""
    if model.stages != 2 or model.template is None or model.n_bits is not None or model.warm_start or hasattr(model, "kernel"):
        two = "2 for rows with a template, without n_bits (hashed features), warm_start and kernels"
        raise ParameterError(f"stages: expected 1, or {two}, got {model.stages!r}")
    corpus = X if isinstance(X, ColumnCorpus) else ColumnCorpus.from_rows(X)
    part_of = corpus.document_of % FOLDS
    if not part_of.any():
        name = "sequences" if corpus.documents is None else "documents"
        raise DataError(f"{corpus.name}: stages=2 learns from what labelers of other {name} say: expected {FOLDS} {name}, got 1")
    data: Any = ChainSharding().read(model, corpus, y, whole=True)
    forget_stages(model, FIRST, FOLDS)
    first = fitted(model, data, dev=dev, **given)
    names = {str(label): k for k, label in enumerate(first.classes_.tolist())}
    codes, sure = np.zeros((2, corpus.n_tokens), np.int64)
    for k in range(FOLDS):
        kept, held = np.flatnonzero(part_of != k), np.flatnonzero(part_of == k)
        lists, packed = [data.y.lists[i] for i in kept], data.packed.gather(kept)
        labels = labels_of(lists, packed.lengths, model.missing)._replace(coding=data.y.coding)
        own = {name: value if value is None else [*map(list(value).__getitem__, kept)] for name, value in given.items()}
        fold = fitted(model, data._replace(y=labels, packed=packed), k + 1, **own)
        others, found, bins = said(fold, data.packed.gather(held))
        at = np.repeat(part_of == k, corpus.lengths)
        codes[at], sure[at] = np.array([names.setdefault(name, len(names)) for name in others])[found], bins
    width = _width(data.input_.templates)
    templates = [*data.input_.features.templates, *_templates(width, first.probabilistic_)]
    second = StagedInput(TemplateFeaturizer(templates, model.min_count), first, data.input_.arrays)
    return Sequences(second, None, data.y, second.fit_transform(with_said(corpus, width, [*names], codes, sure)))


def fitted(model: Any, data: Sequences, part: int = 0, **given: Any) -> Any:
    """A labeler with the settings of the model, of all sequences or, in a fifth of the passes, of those without a part."""
    passes, bulk = model.max_iter or model._passes_with(None), model._trainer_and_surrogate()[0].bulk
    labeler = replace(model, stages=1, **({"max_iter": passes if bulk else -(-passes // 5), "patience": None} if part else {}))
    with stage_of(model, labeler, FIRST, 2 + (part > 0), part, FOLDS, first=not part):
        labeler.fit(data, None, **given)
    return labeler
