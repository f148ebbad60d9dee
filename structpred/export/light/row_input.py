"""Rows of columns: their features by templates, and column files, read and written as `structpred predict` does."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from structpred.export.light.weights import Arrays, Decoder, Ints, PredictorError, Rows, behind_arrays, texts_of
from structpred.io.columns import BOUNDARY, ColumnCorpus, field_count, format_columns, parse_columns
from structpred.io.guesses import looks_like
from structpred.io.templates.coded import CodedTemplates, index_of
from structpred.io.templates.hashed_templates import hashed_features
from structpred.io.templates.templates import from_file
from structpred.io.templates.vectors import vectors_at
from structpred.io.text import split_lines


class Input:
    """Templates over columns, with a dictionary or hashed, and those of vectors."""

    def __init__(self, settings: dict[str, Any], arrays: Arrays) -> None:
        self.settings = settings
        texts = partial(texts_of, arrays)
        self.templates = CodedTemplates(from_file(settings["templates"], texts), settings["padding"])
        if settings["n_bits"] is None:
            self.templates.restore(texts, arrays)
        self.arrays, self.vectors = arrays, from_file(settings["arrays"].get("templates", ()), texts)
        names = dict.fromkeys(template.atoms[0].transform for template in self.vectors)
        self.files = {name: (index_of(texts(f"arrays.words.{k}")), arrays[f"arrays.table.{k}"]) for k, name in enumerate(names)}

    def rows(self, sequences: Sequence[Sequence[Any]], offsets: Ints) -> Rows:
        """The features of each token; PredictorError for anything but rows of as many strings each."""
        corpus, at_least = ColumnCorpus.from_rows(sequences), self.settings["n_columns"]
        if corpus.n_columns < at_least:
            raise PredictorError(f"sample 0: expected rows of at least {at_least} columns, got {corpus.n_columns}")
        return self._rows(corpus)

    def _rows(self, corpus: ColumnCorpus) -> Rows:
        if (n_bits := self.settings["n_bits"]) is not None:
            rows = Rows(*hashed_features(corpus, self.templates.templates, n_bits))
        else:
            rows = Rows(*self.templates.features(self.templates.reading(corpus)))
        return behind_arrays(rows, vectors_at(corpus, self.vectors, self.files), self.arrays)

    def labelled(self, text: str, name: str, decode: Decoder) -> str:
        """The text of a column file with one more column, the labels."""
        settings, widths = self.settings, self.settings["widths"]
        lines = list(split_lines(text[: 1 << 16]))
        filled = ((k, line) for k, line in enumerate(lines, 1) if field_count(line) and not line.startswith(BOUNDARY))
        number, line = next(filled, (1, ""))
        if line and widths and field_count(line) not in widths:
            expected = f"expected {' or '.join(map(str, widths))} columns, got {field_count(line)}"
            raise PredictorError(f"{name}:{number}: {expected}: {line[:60]!r}{looks_like(lines)}")
        corpus = parse_columns(text, name, field_count(line) or None)
        if corpus.n_columns < settings["n_columns"]:
            raise PredictorError(f"{name}: expected at least {settings['n_columns']} columns, got {corpus.n_columns}")
        if not widths or corpus.n_columns == widths[0]:
            labels = corpus.column(settings["label_column"])  # a placeholder there is not looked at
            found = set(labels)
            words = all(len(label) > 1 and any(map(str.isalnum, label)) for label in found)
            if words and found.isdisjoint(map(str, settings["labels"])) and (len(found) > 1 or len(labels) == 1):
                raise PredictorError(
                    f"{corpus.where(0)}: expected one token per line, got {min(found)!r} as a label, which the model does not "
                    "have: is this running text?"
                )
        return format_columns(corpus, corpus.nested(decode(self._rows(corpus), corpus.offsets)))
