"""Feature templates as data: which columns at which offsets make a feature; built-in ones and CRF++ template files.

They may look at derived columns, made by transforms. A plain one is a function of a column's string, worked out once for each
distinct string, never for each token. It gives the derived string, or None where the feature does not exist (a word shorter than
the suffix). Others look at the whole document, or things up in a file: see `derived`.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from structpred.errors import DataError, FileFormatError, ParameterError
from structpred.io.templates.resources import FROM_FILE, Resource, read_resource
from structpred.io.text import PathLike, quoted, read_text, source_name, split_lines
from structpred.storage.atomic import write_atomic
from structpred.storage.schema import AnyOf, Field, Flag, ListOf, Record, Text, Whole, as_file_error, maybe
from structpred.storage.strict_json import load
from structpred.text.suggestions import did_you_mean

_MACRO = re.compile(r"%x\[(-?[0-9]{1,4}),([0-9]{1,4})\]")

#: a longer line is not a template, and a file of more lines no template file: each becomes many times its size
LONGEST_TEMPLATE, MOST_TEMPLATES = 2_000, 10_000
#: a transform that begins so stands for the vector of a string in a file (vectors.py), which no function here gives
VECTORS = "vec:"
Transform = Callable[[str], str | None]

#: the transforms that look at all sentences of a document
DOCUMENT_TRANSFORMS = ("doc_case", "doc_before", "doc_after")
_RUNS = re.compile(r"(.)\1+")
_AFFIX = re.compile(r"(lower_)?(prefix|suffix)([1-9][0-9]?)")


def shape(word: str) -> str:
    """Each character by its class: X upper case, x lower case, 0 digit, others stand for themselves.

    >>> shape("McDonald-7")
    'XxXxxxxx-0'
    """
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word)


def short_shape(word: str) -> str:
    """The shape with runs of one class cut to one character.

    >>> short_shape("McDonald-1998")
    'XxXx-0'
    """
    return _RUNS.sub(r"\1", shape(word))


def _when(test: Callable[[str], bool]) -> Transform:
    return lambda word: "yes" if test(word) else None


_NAMED: dict[str, Transform] = {
    "": lambda word: word,
    "lower": str.lower,
    "shape": shape,
    "short_shape": short_shape,
    "is_digit": _when(str.isdigit),
    "has_digit": _when(lambda word: any(c.isdigit() for c in word)),
    "is_title": _when(lambda word: word[:1].isupper() and not word[1:].isupper()),
    "is_upper": _when(str.isupper),
    "has_hyphen": _when(lambda word: "-" in word),
}


def transform(name: str) -> Transform:
    """A plain one by its name: lower, shape, short_shape, is_digit, has_digit, is_title, is_upper, has_hyphen, prefixK, suffixK.

    The empty name is the column itself; lower_prefixK and lower_suffixK are in small letters. Raises ParameterError for a name
    that is not known.

    >>> transform("suffix3")("walking"), transform("suffix3")("a"), transform("lower_suffix3")("WALKING")
    ('ing', None, 'ing')
    """
    if isinstance(name, str) and name in _NAMED:
        return _NAMED[name]
    affix = _AFFIX.fullmatch(name) if isinstance(name, str) else None
    if affix is None:
        known = ", ".join((*sorted(filter(None, _NAMED)), *DOCUMENT_TRANSFORMS, "in:FILE", "cluster:FILE", "clusterK:FILE"))
        raise ParameterError(f"expected a transform ({known}, [lower_]prefixK, [lower_]suffixK, K from 1 to 99), got {name!r}")
    size, written = int(affix[3]), str.lower if affix[1] else str
    cut = slice(size) if affix[2] == "prefix" else slice(-size, None)
    return lambda word: written(word)[cut] if len(word) >= size else None


class Atom(NamedTuple):
    """One part of a template: a column (counted from 0) of the token at an offset, perhaps through a transform or `vec:FILE`."""

    column: int
    offset: int
    transform: str = ""


@dataclass(frozen=True)
class Template:
    """One kind of feature: the values of its atoms, joined to one string.

    name: leads the feature's string, ``name=value|value``. atoms: of columns and offsets; a plain tuple
    ``(column, offset)`` will do. Without atoms the feature is the name alone, at every token. at: "any" token of the
    sentence, or only the "first" or the "last". pad: where an offset lies outside the sentence, False leaves the
    feature out, True puts ``_B-1``, ``_B+1`` ... there (as CRF++ does). literals: the strings before, between and after
    the atoms, where they are not those that the name gives. transition: the feature is one of the step from the label before
    to the token's own (a ``B`` line of CRF++): it has a weight for each pair of labels, not for each label. resources: what the
    files hold that its transforms name, once they are read, by name without folder.

    Raises ParameterError for an unknown transform, a negative column, or literals that do not fit the atoms.

    >>> Template("w[-1]|w[0]", ((0, -1), (0, 0))).render(["of", "the"])
    'w[-1]|w[0]=of|the'
    """

    name: str
    atoms: tuple[Atom, ...]
    at: str = "any"
    pad: bool = False
    literals: tuple[str, ...] | None = None
    transition: bool = False
    resources: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "atoms", tuple(_atom(self.name, atom) for atom in self.atoms))
        if not isinstance(self.name, str) or not isinstance(self.pad, bool):
            raise ParameterError(f"expected a name that is a string and pad True or False, got {self.name!r}, {self.pad!r}")
        if not isinstance(self.transition, bool):
            raise ParameterError(f"template {self.name!r}: transition must be True or False, got {self.transition!r}")
        if self.at not in ("any", "first", "last"):
            raise ParameterError(f"template {self.name!r}: at must be any, first or last, got {self.at!r}")
        if self.literals is not None:
            object.__setattr__(self, "literals", tuple(self.literals))
            expected = len(self.atoms) + 1
            if len(self.literals) != expected or not all(isinstance(piece, str) for piece in self.literals):
                raise ParameterError(f"template {self.name!r}: its atoms need {expected} literal strings, got {self.literals!r}")

    @property
    def pieces(self) -> tuple[str, ...]:
        """The strings before, between and after the atoms."""
        if self.literals is not None:
            return self.literals
        if not self.atoms:
            return (self.name,)
        return (f"{self.name}=", *("|" for _ in self.atoms[1:]), "")

    def render(self, values: Sequence[str]) -> str:
        """The feature's string, given the value of each atom."""
        first, *rest = self.pieces
        return first + "".join(value + piece for value, piece in zip(values, rest, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The template as plain data for JSON; `from_dict` takes it back."""
        atoms = [list(atom) for atom in self.atoms]
        literals = None if self.literals is None else list(self.literals)
        found = {"name": self.name, "atoms": atoms, "at": self.at, "pad": self.pad, "literals": literals}
        return {**found, "transition": True} if self.transition else found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Template":
        """A template from what `to_dict` gave."""
        literals = None if data["literals"] is None else tuple(data["literals"])
        atoms = tuple(Atom(*atom) for atom in data["atoms"])
        return cls(data["name"], atoms, data["at"], data["pad"], literals, data.get("transition", False))


def _atom(name: str, atom: Sequence[Any]) -> Atom:
    try:
        made = Atom(*atom)
    except TypeError:
        raise ParameterError(f"template {name!r}: expected atoms (column, offset[, transform]), got {atom!r}") from None
    if type(made.column) is not int or type(made.offset) is not int or made.column < 0 or abs(made.offset) > 9999:
        raise ParameterError(f"template {name!r}: columns count from 0 and offsets are whole numbers, got {atom!r}")
    how = str(made.transform)
    if how not in DOCUMENT_TRANSFORMS and not how.startswith(VECTORS) and not FROM_FILE.fullmatch(how):
        transform(made.transform)
    return made


def named_files(templates: Iterable[Template]) -> list[tuple[str, str]]:
    """The kind of transform and the file, where transforms name one, each pair once."""
    transforms = (atom.transform for template in templates for atom in template.atoms)
    return list(dict.fromkeys((match[1], match[2]) for name in transforms if (match := FROM_FILE.fullmatch(name))))


def with_resources(templates: Sequence[Template], folder: PathLike = "") -> list[Template]:
    """Templates that hold the files that their transforms name, read where they do not yet, and name them without folders.

    folder: that of relative paths. Raises DataError, naming file and line; ParameterError for files of one name, no templates.
    """
    read, held, made = dict[str, Resource](), dict[str, Any](), list[Template]()
    if not templates:
        raise ParameterError("expected at least one template, got none")
    for template in templates:
        name, atoms = template.name, {atom.transform: atom.transform for atom in template.atoms}
        for kind, file in named_files([template]):
            base, path = Path(file).name, os.path.join(folder, file)
            own = template.resources.get(file) or read.get(path) or read.setdefault(path, read_resource(path))
            if not (own.phrases if kind == "in" else own.classes):
                raise DataError(f"{own.path}: expected at least one line that is not blank, got none")
            if held.setdefault(base, own).lines != own.lines:
                raise ParameterError(f"templates: {held[base].path} and {own.path} have one name; rename one of these files")
            name, atoms[f"{kind}:{file}"] = name.replace(file, base), f"{kind}:{base}"
        for how in [how for how in atoms if how.startswith(VECTORS)]:
            if how in template.resources:
                held[how] = template.resources[how]
            else:
                atoms[how] = VECTORS + os.path.join(folder, how.removeprefix(VECTORS))
        renamed = tuple(atom._replace(transform=atoms[atom.transform]) for atom in template.atoms)
        made.append(replace(template, name=name, atoms=renamed, resources=held))
    return made


def from_file(entries: Iterable[dict[str, Any]], texts: Callable[[str], Sequence[str]]) -> list[Template]:
    """The templates of a model file, with the resources that it keeps. texts: gives a list by its name in `resource_texts`."""
    templates = [Template.from_dict(entry) for entry in entries]
    held = {name: Resource(name, texts(f"resource.{name}")) for _, name in named_files(templates)}
    return [replace(template, resources=held) for template in templates]


def resource_texts(templates: Sequence[Template]) -> dict[str, list[str]]:
    """What model files keep of the files that transforms name: their lines."""
    return {f"resource.{name}": list(one.resources[name].lines) for one in templates for _, name in named_files([one])}


def template_lines(path: PathLike) -> Iterator[tuple[str, str]]:
    """The lines of a template file, each behind its place for messages; DataError where they are too long or too many."""
    name = source_name(path)
    for number, line in enumerate(split_lines(read_text(path)), 1):
        where = f"{name}:{number}"
        if number > MOST_TEMPLATES:
            raise DataError(f"{where}: expected a template file of at most {MOST_TEMPLATES:,} lines, got more; is this data?")
        if len(line) > LONGEST_TEMPLATE:
            got = f"got {len(line):,}: {quoted(line)}"
            raise DataError(f"{where}: expected a template of at most {LONGEST_TEMPLATE:,} characters, {got}")
        yield where, line


#: templates as files hold them; Template checks the rest
TEMPLATES = ListOf(Record({
    "name": Text(), "atoms": ListOf(ListOf(AnyOf((Text(), Whole(-9999, 2**31 - 1))), 2, 3)), "at": Text(), "pad": Flag(),
    "literals": maybe(ListOf(Text())), "transition": Field(Flag(), default=False),
}), 1)  # fmt: skip


def _window(label: str, column: int, offsets: Iterable[int], transform: str = "") -> list[Template]:
    """One template for each offset: ``label[offset]=value``."""
    return [Template(f"{label}[{offset}]", (Atom(column, offset, transform),)) for offset in offsets]


def _ngram(label: str, column: int, *offsets: int, transform: str = "") -> Template:
    atoms = tuple(Atom(column, offset, transform) for offset in offsets)
    return Template("|".join(f"{label}[{offset}]" for offset in offsets), atoms)


def _bounds() -> list[Template]:
    return [Template("__BOS__", (), at="first"), Template("__EOS__", (), at="last")]


def _affixes(label: str, column: int, sizes: Iterable[int], case: str = "") -> list[Template]:
    kinds = [f"{kind}{size}" for size in sizes for kind in ("prefix", "suffix")]
    return [template for kind in kinds for template in _window(f"{label}.{kind}", column, (0,), case + kind)]


def _crfsuite() -> list[Template]:
    """The templates of CRFsuite's chunking example; columns: word, part of speech."""
    near = range(-2, 3)
    words = [*_window("w", 0, near), _ngram("w", 0, -1, 0), _ngram("w", 0, 0, 1)]
    pairs = [_ngram("pos", 1, k, k + 1) for k in range(-2, 2)]
    triples = [_ngram("pos", 1, k, k + 1, k + 2) for k in range(-2, 1)]
    return [*words, *_window("pos", 1, near), *pairs, *triples, *_bounds()]


def _chunking() -> list[Template]:
    """CRFsuite's, words with parts of speech, affixes of 2 to 4, shapes; chosen by folds of CoNLL-2000's training part."""
    pairs = [((0, 0), (1, 0)), ((0, -1), (1, 0)), ((0, 1), (1, 0)), ((0, 0), (1, 1)), ((0, 0), (1, -1))]
    mixed = [Template(f"w[{word[1]}]|pos[{tag[1]}]", (Atom(*word), Atom(*tag))) for word, tag in pairs]
    shapes = _window("shape", 0, (-1, 0, 1), "short_shape")
    return [*_crfsuite(), *mixed, *_affixes("w", 0, range(2, 5)), *_window("lower", 0, (0,), "lower"), *shapes]


def _ner() -> list[Template]:
    """Names: words up to 4 away, lower case, shapes, affixes, document; column: word. Chosen by folds of Nynorsk's training."""
    words = [*_window("w", 0, range(-4, 5)), _ngram("w", 0, -1, 0), _ngram("w", 0, 0, 1)]
    shapes = [*_window("shape", 0, range(-2, 3), "short_shape"), *_window("form", 0, (0,), "shape")]
    pair = Template("shape[-1]|shape[0]", (Atom(0, -1, "short_shape"), Atom(0, 0, "short_shape")))
    after = Template("shape[0]|shape[1]", (Atom(0, 0, "short_shape"), Atom(0, 1, "short_shape")))
    lower = _window("lower", 0, (-1, 0, 1), "lower")
    tests = [*_window("title", 0, (-1, 0, 1), "is_title"), *_window("upper", 0, (0,), "is_upper")]
    digits = [*_window("digit", 0, (0,), "has_digit"), *_window("hyphen", 0, (0,), "has_hyphen")]
    mixed = Template("doc_case[0]|shape[0]", (Atom(0, 0, "doc_case"), Atom(0, 0, "short_shape")))
    beside = [*_window("doc_before", 0, (0,), "doc_before"), *_window("doc_after", 0, (0,), "doc_after")]
    documents = [*_window("doc_case", 0, (-1, 0, 1), "doc_case"), mixed, *beside]
    return [*words, *lower, *shapes, pair, after, *tests, *digits, *_affixes("w", 0, range(1, 7)), *documents, *_bounds()]


def _pos() -> list[Template]:
    """Parts of speech: words and affixes up to 7 in lower case, shapes; column: word. Chosen by folds of EWT's training part."""
    pairs = [((-1, 0), "lower"), ((0, 1), "lower"), ((-1, 0), "short_shape"), ((0, 1), "short_shape")]
    joined = [_ngram(how.removeprefix("short_"), 0, *offsets, transform=how) for offsets, how in pairs]
    words = [*_window("w", 0, (0,)), *_window("lower", 0, range(-2, 3), "lower"), *joined]
    ends = _window("suffix3", 0, (-1, 1), "suffix3")
    tests = [*_window("digit", 0, (0,), "has_digit"), *_window("hyphen", 0, (0,), "has_hyphen")]
    shapes = [*_window("title", 0, (0,), "is_title"), *_window("shape", 0, (0,), "short_shape")]
    return [*words, *_affixes("lower", 0, range(1, 8), "lower_"), *ends, *tests, *shapes, *_bounds()]


_BUILT_IN = {"chunking": _chunking, "crfsuite": _crfsuite, "ner": _ner, "pos": _pos}


def built_in_templates() -> tuple[str, ...]:
    """The names that `load_templates` knows.

    >>> built_in_templates()
    ('chunking', 'crfsuite', 'ner', 'pos')
    """
    return tuple(_BUILT_IN)


def load_templates(template: PathLike | Sequence[Template]) -> list[Template]:
    """The templates of a built-in name (chunking, crfsuite, ner, pos), of a file, or of a list of them.

    A file is a CRF++ template file, or, where its name ends in .json, what `write_templates` wrote; there paths of resources are
    relative to its folder. Raises ParameterError for a name that is neither, and for an empty list; DataError for resources.

    >>> [t.name for t in load_templates("chunking")][:3]
    ['w[-2]', 'w[-1]', 'w[0]']
    """
    if isinstance(template, str) and template in _BUILT_IN:
        return _BUILT_IN[template]()
    if isinstance(template, str | os.PathLike):
        if not Path(template).exists() and str(template) != "-":
            known, hint = ", ".join(_BUILT_IN), did_you_mean(str(template), _BUILT_IN)
            raise ParameterError(f"expected a built-in template ({known}) or a CRF++ template file, got {str(template)!r}{hint}")
        if not str(template).endswith(".json"):
            return read_template(template)
        with as_file_error(f"{source_name(template)}: expected a JSON list of templates", FileFormatError):
            entries = TEMPLATES.read(load("\n".join(line for _, line in template_lines(template)).encode()), "templates")
            templates = [Template.from_dict(entry) for entry in entries]
        return with_resources(templates, Path(template).parent)
    templates = list(template)
    if not templates or not all(isinstance(entry, Template) for entry in templates):
        raise ParameterError(f"expected a list of at least one Template, got {quoted(repr(template))}")
    return with_resources(templates)


def read_template(path: PathLike) -> list[Template]:
    """Read a CRF++ template file: ``U01:%x[-1,0]/%x[0,0]``, comments with ``#``, and ``B`` lines.

    A ``B`` line asks for transition features. A chain has those always, so a plain one adds nothing; with macros
    (``B01:%x[0,0]``) each string has a weight of its own for each pair of labels. Two lines without an
    identifier of their own (``U:%x[-1,0]`` and ``U:%x[0,0]``) share their features, as in CRF++. Raises DataError with
    file and line: another kind of line, a macro that is not ``%x[row,column]``, no U line at all, a line of
    more than 2,000 characters, more than 10,000 lines.
    """
    templates = []
    for where, line in template_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(("U", "B")):
            raise DataError(f"{where}: expected a line that begins with U, B or #, got {quoted(line)}")
        if line.startswith("U") or "%" in line:
            pieces = _MACRO.split(line)
            literals = tuple(pieces[0::3])
            if any("%" in literal for literal in literals):
                raise DataError(f"{where}: expected macros of the form %x[row,column], got {quoted(line)}")
            atoms = [Atom(int(column), int(row)) for row, column in zip(pieces[1::3], pieces[2::3], strict=True)]
            templates.append(Template(line, tuple(atoms), pad=True, literals=literals, transition=line.startswith("B")))
    if all(template.transition for template in templates):
        raise DataError(f"{source_name(path)}: expected at least one U line, got none")
    return templates


def write_templates(templates: Sequence[Template], path: PathLike) -> None:
    """Write templates of any kind as a JSON list, one a line; `load_templates` reads it."""
    lines = ",\n".join(json.dumps(template.to_dict()) for template in templates)
    write_atomic(path, f"[\n{lines}\n]\n".encode())
