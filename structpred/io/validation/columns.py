"""All problems of a data file at once: bad rows, invalid tags, odd labels, repeated sentences, and leaks into held-out data."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from structpred.data.tag_schemes import detect_scheme, violations
from structpred.io.text import PathLike
from structpred.io.validation.scan import Scan, Sentence, scan_file

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
    """The size of a file that was validated. labels: label -> tokens."""

    name: str
    n_sequences: int
    n_tokens: int
    n_columns: int | None
    longest: int
    labels: dict[str, int]


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
        return len(self._scan.sentences) - len(self._broken)

    def clean(self) -> bytes:
        """The first file without the sequences that have an error, one blank line between two."""
        kept = [s for i, s in enumerate(self._scan.sentences) if i not in self._broken]
        blocks = [b"".join(self._scan.rows[n - 1] + b"\n" for n in sentence.lines) for sentence in kept]
        return (b"" if self._scan.format == "ocr" else b"\n").join(blocks)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "ok": self.ok,
            "n_errors": self.n_errors,
            "scheme": self.scheme,
            "files": [asdict(file) for file in self.files],
            "findings": [asdict(finding) for finding in self.findings],
        }

    def __str__(self) -> str:
        """What a person reads: the files, then each finding with its first places."""
        lines = []
        for file in self.files:
            columns = "" if file.n_columns is None else f", {file.n_columns} columns"
            longest = f", the longest of {file.longest} tokens" if file.longest else ""
            size = f"{file.n_sequences} sequences{longest}, {file.n_tokens} tokens, {len(file.labels)} labels"
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
    path: PathLike,
    format: str,
    *,
    dev: PathLike | None = None,
    label_column: int = -1,
    rare: int = 5,
    max_length: int = 250,
    places: int = 5,
    encoding: str = "utf-8",
) -> Validation:
    """Look at a whole data file, and at the held-out data next to it.

    format: "columns", "conll2000", "crfsuite" or "ocr". rare: labels with fewer tokens are reported. max_length: longer
    sequences are reported. places: how many of each kind are shown. Raises DataError only where a file cannot be opened.
    """
    scan = scan_file(path, format, label_column=label_column, encoding=encoding)
    scans = [scan]
    if dev is not None:
        label = label_column % scan.n_columns if scan.n_columns else label_column
        scans.append(scan_file(dev, format, label_column=label, n_columns=scan.n_columns, encoding=encoding))
    collect = Collector(places)
    counts = [Counter(label for s in one.sentences for label in s.labels) for one in scans]
    scheme = detect_scheme(s.labels for s in scan.sentences)
    broken = [{i for i, s in enumerate(one.sentences) if s.broken} for one in scans]
    for k, one in enumerate(scans):
        _rows(one, collect)
        if scheme is not None:
            broken[k] |= _tags(one, scheme, collect)
        shape(one, max_length, collect)
        repeats(one, collect)
    label_warnings(scan, counts[0], rare, scheme, collect)
    if len(scans) > 1:
        unseen(scans[1], counts[0], collect)
        leaks(scan, scans[1], collect)
    files = [summary_of(one, c) for one, c in zip(scans, counts, strict=True)]
    return Validation(files, scheme, collect.findings(), scan, frozenset(broken[0]))


def summary_of(scan: Scan, counts: Counter[str]) -> FileSummary:
    """The size of a file. counts: label -> tokens."""
    longest = max((len(sentence.lines) for sentence in scan.sentences), default=0)
    return FileSummary(scan.name, len(scan.sentences), scan.n_tokens, scan.n_columns, longest, dict(sorted(counts.items())))


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
    for problem in scan.problems:
        collect.add(ERROR, problem.kind, _ROW_SUMMARY[problem.kind], f"{scan.name}:{problem.line}: {problem.text}")
    if not scan.sentences:
        collect.add(
            ERROR,
            "empty",
            "files without a single sequence",
            f"{scan.name}: {'only blank lines' if scan.rows else 'an empty file'}",
        )
    if scan.format == "crfsuite" and scan.sentences and not any(any(s.content) for s in scan.sentences):
        collect.add(
            ERROR,
            "no-attributes",
            "files without attributes",
            f"{scan.name}: no line has one; tabs separate label and attributes",
        )


def _tags(scan: Scan, scheme: str, collect: Collector) -> set[int]:
    broken = set()
    for i, sentence in enumerate(scan.sentences):
        if sentence.broken:  # with a row missing, nobody knows what was next to it
            continue
        for t, text in violations(sentence.labels, scheme):
            collect.add(
                ERROR, "tags", f"labels that break the tagging scheme {scheme}", f"{scan.name}:{sentence.lines[t]}: {text}"
            )
            broken.add(i)
    return broken


def shape(scan: Scan, max_length: int, collect: Collector) -> None:
    """Warnings on long sequences, -DOCSTART- rows, blank lines and invisible characters."""
    for sentence in scan.sentences:
        if len(sentence.lines) > max_length:
            where = f"{scan.name}:{sentence.lines[0]}: {len(sentence.lines)} tokens"
            collect.add(WARNING, "long", f"sequences of more than {max_length} tokens", where)
        if scan.n_columns is not None and any(token.startswith("-DOCSTART-") for token in sentence.content):
            where = f"{scan.name}:{sentence.lines[0]}"
            collect.add(WARNING, "docstart", "-DOCSTART- rows, which are read as tokens", where)
    for number in scan.blank:
        collect.add(WARNING, "blank", "empty sequences (blank lines in a row), which are skipped", f"{scan.name}:{number}")
    for character, lines in scan.characters.items():
        name = unicodedata.name(character, "control character")
        for number in lines:
            summary = "lines with invisible characters (controls, direction marks, odd spaces)"
            collect.add(WARNING, "unprinted", summary, f"{scan.name}:{number}: U+{ord(character):04X} {name}")


def repeats(scan: Scan, collect: Collector) -> None:
    """Warnings on sequences that occur in the file twice, with the same labels or different ones."""
    first: dict[tuple[str, ...], Sentence] = {}
    for sentence in scan.sentences:
        if sentence.broken:
            continue
        seen = first.setdefault(sentence.content, sentence)
        if seen is sentence:
            continue
        where = f"{scan.name}:{sentence.lines[0]}: as line {seen.lines[0]} ({_size(sentence)})"
        collect.add(WARNING, "duplicate", "sequences that occur earlier in the same file", where)
        if seen.labels != sentence.labels:
            collect.add(WARNING, "contradiction", "sequences that occur earlier in the same file with different labels", where)


def label_warnings(scan: Scan, counts: Counter[str], rare: int, scheme: str | None, collect: Collector) -> None:
    """Warnings on rare labels, labels that differ by case only, and the scheme IOB1."""
    first = _first_lines(scan)
    for label, n in sorted(counts.items(), key=lambda item: (item[1], item[0])):
        if n < rare:
            collect.add(
                WARNING, "rare", f"labels with fewer than {rare} tokens", f"{scan.name}:{first[label]}: {label!r}, {n} of them"
            )
    alike = defaultdict(list)
    for label in sorted(counts):
        alike[label.casefold()].append(label)
    for labels in alike.values():
        if len(labels) > 1:
            where = ", ".join(f"{label!r} ({counts[label]}, first in line {first[label]})" for label in labels)
            collect.add(WARNING, "case", "labels that differ by case only", f"{scan.name}: {where}")
    if scheme == "IOB1":
        where = f"{scan.name}: constraints support only IOB2 and IOBES"
        collect.add(WARNING, "iob1", "files in the scheme IOB1, where B- occurs only between neighbours of one type", where)


def unseen(dev: Scan, known: Iterable[str], collect: Collector) -> None:
    """Warnings on labels of held-out data that the training data do not have."""
    seen = set(known)
    for sentence in dev.sentences:
        if sentence.broken:
            continue
        for t, label in enumerate(sentence.labels):
            if label not in seen:
                where = f"{dev.name}:{sentence.lines[t]}: {label!r}"
                collect.add(WARNING, "unseen", "held-out tokens whose label is not in the training data", where)


def leaks(train: Scan, dev: Scan, collect: Collector) -> None:
    """Warnings on held-out sequences that also occur in the training data."""
    lines = {s.content: s.lines[0] for s in reversed(train.sentences) if not s.broken}
    for sentence in dev.sentences:
        if not sentence.broken and sentence.content in lines:
            where = f"{dev.name}:{sentence.lines[0]}: as {train.name}:{lines[sentence.content]} ({_size(sentence)})"
            collect.add(WARNING, "leak", "held-out sequences that also occur in the training data", where)


def _size(sentence: Sentence) -> str:
    n = len(sentence.lines)
    return f"{n} token{'s' if n > 1 else ''}"


def _first_lines(scan: Scan) -> dict[str, int]:
    first: dict[str, int] = {}
    for sentence in scan.sentences:
        if not sentence.labels:
            continue
        lines = sentence.lines if not sentence.broken else [sentence.lines[0]] * len(sentence.labels)
        for label, line in zip(sentence.labels, lines, strict=True):
            first.setdefault(label, line)
    return first
