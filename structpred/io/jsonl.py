"""JSON lines: an object for each sequence, of tokens and tags, or of a text and its entities as spans of characters."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from structpred.errors import DataError
from structpred.io.columns import ColumnCorpus, Row
from structpred.io.text import PathLike, quoted, read_text, source_name, split_lines

#: what a text is cut into
WORD = re.compile(r"\w+|[^\w\s]")
_TOKENS, _TAGS, _ENTITIES = ("tokens", "words"), ("tags", "labels", "ner_tags"), ("entities", "spans", "label", "labels")


def read_jsonl(path: PathLike, *, encoding: str = "utf-8") -> ColumnCorpus:
    """Read JSON lines: the words of all objects as column 0, their labels, if there are any, as column 1; of entities in IOB2.

    An object has "tokens" and "tags", or a "text" and its "entities", lists [start, end, kind] of characters. Raises DataError
    with file and line: no JSON, neither tokens nor a text, a tag too many or too few, entities that overlap or end inside a word,
    labels in some objects only; and what `read_text` raises.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.jsonl"
    ...     _ = path.write_text('{"tokens": ["Oslo", "grows"], "tags": ["B-LOC", "O"]}')
    ...     read_jsonl(path).labels()
    [['B-LOC', 'O']]
    """
    return parse_jsonl(read_text(path, encoding), source_name(path))


def parse_jsonl(text: str, name: str) -> ColumnCorpus:
    """As `read_jsonl`, for text that was read already; name: for messages.

    >>> parse_jsonl('{"text": "Oslo is big.", "entities": [[0, 4, "LOC"]]}', "a.jsonl").sentences()
    [[('Oslo', 'B-LOC'), ('is', 'O'), ('big', 'O'), ('.', 'O')]]
    """
    found, widths = dict[int, list[Row]](), dict[int, int]()
    for number, rows in each_object(split_lines(text)):
        if isinstance(rows, DataError):
            raise DataError(f"{name}:{number}: {rows}")
        found[number] = rows
        if widths.setdefault(len(rows[0]), number) == number and len(widths) > 1:
            raise DataError(f"{name}:{number}: expected labels in all objects or in none; line {min(widths.values())} differs")
    corpus = ColumnCorpus.from_rows(found.values(), name)
    return replace(corpus, lines=np.repeat(list(found), corpus.lengths))


def each_object(lines: Iterable[str]) -> Iterator[tuple[int, list[Row] | DataError]]:
    """The number of each line that is not blank, and the rows of its object, or an error, which does not say where it is."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, _rows(line)
            except DataError as error:
                yield number, error


def _rows(line: str) -> list[Row]:
    """The words of an object, each with its label, if there are any."""
    try:
        given = json.loads(line)
        json.dumps(given, ensure_ascii=False).encode()  # escapes may stand for halves of characters, which no file can hold
    except (ValueError, RecursionError) as error:
        raise DataError(f"expected a JSON object, got {quoted(line)} ({error})") from None
    found = given if isinstance(given, dict) else {}
    tokens, tags, entities = (next((found[k] for k in keys if k in found), None) for keys in (_TOKENS, _TAGS, _ENTITIES))
    if tokens is None and isinstance(found.get("text"), str):
        tokens, tags = WORD.findall(found["text"]), None if entities is None else _tags(found["text"], entities)
    for entries in (tokens, [] if tags is None else tags):
        if not isinstance(entries, list) or not all(isinstance(entry, str) and entry for entry in entries):
            raise DataError(f"expected tokens and tags as lists of strings, or a text and its entities, got {quoted(line)}")
    if not tokens or (tags is not None and len(tags) != len(tokens)):
        raise DataError(f"expected at least one token and a tag for each, got {len(tokens or ())} tokens, {len(tags or ())} tags")
    return [(token,) for token in tokens] if tags is None else list(zip(tokens, tags, strict=True))


def _tags(text: str, entities: Any) -> list[str]:
    """The labels of the words of a text. entities: lists [start, end, kind], or objects with these."""
    words = [match.span() for match in WORD.finditer(text)]
    tags = ["O"] * len(words)
    for entity in entities if isinstance(entities, list) else [entities]:
        match entity:
            case [int(start), int(end), str(kind)] | {"start": int(start), "end": int(end), "label": str(kind)}:
                inside = [k for k, (first, last) in enumerate(words) if first < end and last > start]
            case _:
                raise DataError(f"expected entities [start, end, kind], or objects with start, end, label, got {entity!r}")
        if not (inside and 0 <= start < end <= len(text)) or words[inside[0]][0] < start or words[inside[-1]][1] > end:
            raise DataError(f"the entity {start}-{end}, {quoted(text[start:end])}, is not of whole words of {quoted(text)}")
        if {tags[k] for k in inside} != {"O"}:
            raise DataError(f"the entity {start}-{end}, {quoted(text[start:end])}, overlaps another one; a word has one label")
        tags[inside[0] : inside[-1] + 1] = [f"B-{kind}", *[f"I-{kind}"] * (len(inside) - 1)]
    return tags
