"""All problems of a data file at once: bad rows, invalid tags, odd labels, repeated sentences, and leaks into held-out data."""

import unicodedata
from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.tag_schemes import each_violation, scheme_of
from structpred.io.text import PathLike
from structpred.io.validation.rows import MOST_LABELS, Lines
from structpred.io.validation.scan import Scan, ints, scan_file

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """One kind of problem. severity: "error" (the file cannot be read, or breaks its own tagging scheme) or "warning".

    count: how often. places: the first few, each with file and line.
    """

    kind: str
    severity: str
    summary: str
    count: int
    places: tuple[str, ...]


@dataclass(frozen=True)
class FileSummary:
    """The size of a file that was validated. labels: label -> tokens; None where there are more than 10,000 labels."""

    name: str
    n_sequences: int
    n_tokens: int
    n_columns: int | None
    longest: int
    labels: dict[str, int] | None


@dataclass(frozen=True)
class Validation:
    """What was found. scheme: the tagging scheme of the labels, None if they are not tags."""

    files: list[FileSummary]
    scheme: str | None
    findings: list[Finding]
    _scan: Scan
    _broken: frozenset[int]

    @property
    def n_errors(self) -> int:
        """How many single errors there are."""
        return sum(finding.count for finding in self.findings if finding.severity == ERROR)

    @property
    def ok(self) -> bool:
        """Whether there are no errors; there may be warnings."""
        return not self.n_errors

    @property
    def n_broken(self) -> int:
        """How many sequences of the first file have an error."""
        return len(self._broken)

    @property
    def n_kept(self) -> int:
        """How many sequences of the first file `clean` keeps."""
        return len(self._scan.tokens) - len(self._broken)

    def clean(self) -> bytes:
        """The first file without the sequences that have an error, one blank line between two."""
        tokens, text = self._scan.tokens, self._scan.text or Lines(b"")
        kept = [i for i in range(len(tokens)) if i not in self._broken]
        numbers = sorted([*(tokens.of(i) for i in kept), *([n] for n in self._scan.documents)])
        blocks = [b"".join(text[n] + b"\n" for n in dict.fromkeys(block)) for block in numbers]
        return (b"" if self._scan.format in ("jsonl", "ocr") else b"\n").join(blocks)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        files, findings = list(map(asdict, self.files)), list(map(asdict, self.findings))
        return {"ok": self.ok, "n_errors": self.n_errors, "scheme": self.scheme, "files": files, "findings": findings}

    def __str__(self) -> str:
        """What a person reads: the files, then each finding with its first places."""
        lines = []
        for file in self.files:
            columns = "" if file.n_columns is None else f", {file.n_columns} columns"
            longest = f", the longest of {file.longest} tokens" if file.longest else ""
            labels = f"more than {MOST_LABELS:,}" if file.labels is None else len(file.labels)
            size = f"{file.n_sequences} sequences{longest}, {file.n_tokens} tokens, {labels} labels"
            lines.append(f"{file.name}: {size}{columns}")
        lines.append(self._kind())
        for finding in self.findings:
            lines += ["", f"{finding.severity}: {finding.summary}: {finding.count}"]
            lines += [f"  {place}" for place in finding.places]
            lines += ["  ..."] if len(finding.places) < finding.count else []
        warnings = sum(finding.severity == WARNING for finding in self.findings)
        lines += ["", f"{self.n_errors} errors, {warnings} kinds of warning" if self.findings else "no problems found"]
        return "\n".join(lines)

    def _kind(self) -> str:
        return f"tagging scheme: {self.scheme or 'none, labels are plain'}"


def validate(
    path: PathLike, format: str, *, dev: PathLike | None = None, label_column: int = -1, rare: int = 5, max_length: int = 250,
    places: int = 5, encoding: str = "utf-8",
) -> Validation:  # fmt: skip
    """Look at a whole data file, and at the held-out data next to it.

    format: one of structpred.io.validation.scan.FORMATS. rare: labels with fewer tokens are reported. max_length: longer
    sequences are reported. places: how many of each kind are shown. Raises DataError only where a file cannot be opened.
    """
    scan = scan_file(path, format, label_column=label_column, encoding=encoding)
    scans = [scan]
    if dev is not None:
        label = label_column % scan.n_columns if scan.n_columns else label_column
        scans.append(scan_file(dev, format, label_column=label, n_columns=scan.n_columns, encoding=encoding))
    collect = Collector(places)
    counts = zip(scan.tokens.label_names, ints(scan.tokens.label_counts), strict=True)
    scheme = scheme_of(counts, scan.tokens.labels)
    against = list[set[int]]()
    for one in scans:
        _rows(one, collect)
        against.append(set() if scheme is None else _tags(one, scheme, collect))
    files, broken = warn(scans, rare, max_length, scheme, collect), np.flatnonzero(scan.tokens.broken).tolist()
    return Validation(files, scheme, collect.findings(), scan, frozenset(broken).union(against[0]))


def warn(scans: list[Scan], rare: int, max_length: int, scheme: str | None, collect: "Collector") -> list[FileSummary]:
    """Collect the warnings on a file, and on the held-out data that may follow; returns their sizes."""
    files = []
    for one in scans:
        tokens = one.tokens
        names, counts = map(tokens.label_names.__getitem__, ints(tokens.by_name)), tokens.label_counts[tokens.by_name]
        longest = int(tokens.lengths.max(initial=0))
        labels = dict(zip(names, ints(counts), strict=True)) if tokens.excess is None else None
        files.append(FileSummary(one.name, len(tokens), len(tokens.lines), one.n_columns, longest, labels))
        _shape(one, max_length, collect)
        _repeats(one, collect)
        if one.tokens.excess is not None:
            summary = f"files with more than {MOST_LABELS:,} different labels, which are not looked at: is another column meant?"
            collect.add(WARNING, "labels", summary, f"{one.name}:{one.tokens.excess}: label number {MOST_LABELS + 1:,}")
    _label_warnings(scans[0], rare, scheme, collect)
    for dev in scans[1:]:
        _unseen(dev, files[0].labels, collect)
        _leaks(scans[0], dev, collect)
    return files


class Collector:
    """Counts the problems of each kind and keeps the first places."""

    def __init__(self, places: int) -> None:
        self.limit = places
        self.found: dict[tuple[str, str, str], tuple[list[int], list[str]]] = {}

    def add(self, severity: str, kind: str, summary: str, place: str) -> None:
        """One problem."""
        count, places = self.found.setdefault((severity, kind, summary), ([0], []))
        count[0] += 1
        if len(places) < self.limit:
            places.append(place)

    def findings(self) -> list[Finding]:
        """Errors first, else in the order in which they were found."""
        all_of = [Finding(kind, s, text, n[0], tuple(p)) for (s, kind, text), (n, p) in self.found.items()]
        return sorted(all_of, key=lambda finding: finding.severity != ERROR)


_ROW_SUMMARY = {
    "encoding": "lines that are not UTF-8 text",
    "columns": "rows with another number of columns",
    "row": "rows that cannot be read",
    "links": "rows whose links to their neighbours are inconsistent",
}


def _rows(scan: Scan, collect: Collector) -> None:
    for problem in scan.problems():
        collect.add(ERROR, problem.kind, _ROW_SUMMARY[problem.kind], f"{scan.name}:{problem.line}: {problem.text}")
    if not len(scan.tokens):
        got = "only blank lines" if scan.text else "an empty file"
        collect.add(ERROR, "empty", "files without a single sequence", f"{scan.name}: {got}")
    if scan.format == "crfsuite" and len(scan.tokens) and scan.bare:
        where = f"{scan.name}: no line has one; tabs separate label and attributes"
        collect.add(ERROR, "no-attributes", "files without attributes", where)


def _tags(scan: Scan, scheme: str, collect: Collector) -> set[int]:
    broken = set()
    tokens = scan.tokens
    for i, labels in enumerate(tokens.labels):
        if tokens.broken[i]:  # with a row missing, nobody knows what was next to it
            continue
        for t, text in each_violation(labels, scheme):
            line = tokens.lines[tokens.offsets[i] + t]
            collect.add(ERROR, "tags", f"labels that break the tagging scheme {scheme}", f"{scan.name}:{line}: {text}")
            broken.add(i)
    return broken


def _shape(scan: Scan, max_length: int, collect: Collector) -> None:
    """Warnings on long sequences, -DOCSTART- rows, blank lines and invisible characters."""
    lengths = scan.tokens.lengths
    for i in np.flatnonzero(lengths > max_length).tolist():
        where = f"{scan.name}:{_first(scan, i)}: {lengths[i]} tokens"
        collect.add(WARNING, "long", f"sequences of more than {max_length} tokens", where)
    read_as = "tokens" if scan.text is None else "boundaries of documents"
    for number in scan.documents:
        collect.add(WARNING, "docstart", f"-DOCSTART- rows, which are read as {read_as}", f"{scan.name}:{number}")
    for number in scan.blank:
        collect.add(WARNING, "blank", "empty sequences (blank lines in a row), which are skipped", f"{scan.name}:{number}")
    for character, lines in scan.characters.items():
        name = unicodedata.name(character, "control character")
        for number in lines:
            summary = "lines with invisible characters (controls, direction marks, odd spaces)"
            collect.add(WARNING, "unprinted", summary, f"{scan.name}:{number}: U+{ord(character):04X} {name}")


def _repeats(scan: Scan, collect: Collector) -> None:
    """Warnings on sequences that occur in the file twice, with the same labels or different ones."""
    tokens = scan.tokens
    sound = np.flatnonzero(~tokens.broken)
    before = np.full(len(tokens), -1)
    for group in groups(tokens.hashes[sound]):
        first: dict[tuple[str, ...], int] = {}
        for i in ints(sound[group]):
            before[i] = first.setdefault(tokens.content(i), i)
    for i in ints(np.flatnonzero((before >= 0) & (before < np.arange(len(tokens))))):
        seen = int(before[i])
        where = f"{scan.name}:{_first(scan, i)}: as line {_first(scan, seen)} ({_size(scan, i)})"
        collect.add(WARNING, "duplicate", "sequences that occur earlier in the same file", where)
        if not tokens.same_labels(seen, i):
            collect.add(WARNING, "contradiction", "sequences that occur earlier in the same file with different labels", where)


def groups(keys: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.intp]]:
    """The places of each key that is there twice or more, in the order in which these keys come first.

    >>> [group.tolist() for group in groups(np.array([7, 5, 3, 5, 7, 7]))]
    [[0, 4, 5], [1, 3]]
    """
    order = np.argsort(keys, kind="stable")
    new = np.flatnonzero(np.diff(keys[order])) + 1
    bounds = np.concatenate(([0], new, [len(keys)]))
    large = np.flatnonzero(np.diff(bounds) > 1)
    large = large[np.argsort(order[bounds[large]])]
    for k in ints(large):
        yield order[bounds[k] : bounds[k + 1]]


def _label_warnings(scan: Scan, rare: int, scheme: str | None, collect: Collector) -> None:
    """Warnings on rare labels, labels that differ by case only, and the scheme IOB1."""
    tokens = scan.tokens
    names, counts = [tokens.label_names[k] for k in ints(tokens.by_name)], tokens.label_counts[tokens.by_name]
    first = np.zeros(len(tokens.label_names), np.intp)
    first[tokens.codes[::-1]] = np.arange(len(tokens.codes))[::-1]  # of those with the same label the last one stays
    lines = tokens.lines_of(first[tokens.by_name])
    for k in ints(np.argsort(counts, kind="stable")[: np.count_nonzero(counts < rare)]):
        where = f"{scan.name}:{lines[k]}: {names[k]!r}, {counts[k]} of them"
        collect.add(WARNING, "rare", f"labels with fewer than {rare} tokens", where)
    for group in groups(np.fromiter(map(hash, map(str.casefold, names)), np.int64, len(names))):
        alike = defaultdict(list)
        for k in ints(group):
            alike[names[k].casefold()].append(f"{names[k]!r} ({counts[k]}, first in line {lines[k]})")
        for labels in alike.values():
            if len(labels) > 1:
                collect.add(WARNING, "case", "labels that differ by case only", f"{scan.name}: {', '.join(labels)}")
    if scheme == "IOB1":
        where = f"{scan.name}: constraints support only IOB2 and IOBES"
        collect.add(WARNING, "iob1", "files in the scheme IOB1, where B- occurs only between neighbours of one type", where)


def _unseen(dev: Scan, known: Container[str] | None, collect: Collector) -> None:
    """Warnings on labels of held-out data that the training data do not have; none where these are not known."""
    if known is None:
        return
    tokens = dev.tokens
    new = np.fromiter((name not in known for name in tokens.label_names), np.bool_, len(tokens.label_names))
    sound = np.repeat(~tokens.broken, np.diff(tokens.label_offsets))
    found = np.flatnonzero(new[tokens.codes] & sound)
    for t, line in zip(ints(found), ints(tokens.lines_of(found)), strict=True):
        where = f"{dev.name}:{line}: {tokens.label_names[tokens.codes[t]]!r}"
        collect.add(WARNING, "unseen", "held-out tokens whose label is not in the training data", where)


def _leaks(train: Scan, dev: Scan, collect: Collector) -> None:
    """Warnings on held-out sequences that also occur in the training data."""
    sound = np.flatnonzero(~train.tokens.broken)
    hashes = train.tokens.hashes[sound]
    order = np.argsort(hashes, kind="stable")
    hashes, sound = hashes[order], sound[order]
    ends = [np.searchsorted(hashes, dev.tokens.hashes, side=side) for side in ("left", "right")]
    for i in ints(np.flatnonzero((ends[0] < ends[1]) & ~dev.tokens.broken)):
        content = dev.tokens.content(i)
        seen = next((k for k in ints(sound[ends[0][i] : ends[1][i]]) if train.tokens.content(k) == content), None)
        if seen is not None:
            where = f"{dev.name}:{_first(dev, i)}: as {train.name}:{_first(train, seen)} ({_size(dev, i)})"
            collect.add(WARNING, "leak", "held-out sequences that also occur in the training data", where)


def _first(scan: Scan, i: int) -> int:
    """The first line of a sequence."""
    return scan.tokens.lines.item(scan.tokens.offsets.item(i))


def _size(scan: Scan, i: int) -> str:
    n = scan.tokens.offsets.item(i + 1) - scan.tokens.offsets.item(i)
    return f"{n} token{'s' if n > 1 else ''}"
