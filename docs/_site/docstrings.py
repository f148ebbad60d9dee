"""Docstrings as Markdown: they are written as plain text, in which `<w, phi>`, `x[i][j]` and `a * b` mean themselves."""

import re

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)
_FORMULA = re.compile(r"(?<=\n\n)( {2,}\S.*(?:\n {2,}\S.*)*)(?=\n\n|\Z)")
_SECTION = re.compile(r"\n[^\n]+\n---+\n.*", re.DOTALL)  # the first one and all after it, in which indented text is no formula
_CODE = re.compile(r"(`[^`\n]+`)")
_FENCE = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)
_SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?: {4}.*\n?)+)", re.MULTILINE)  # several parameters with one description, no type
_EMPTY = re.compile(r"\n\w+\n---+\n(?=\n|\Z)")
_TYPED = re.compile(r"^\S[^:]* : ")  # a parameter and its type: griffe reads the type as Python


def as_markdown(text: str) -> str:
    """Examples and formulas in fences, and what Markdown would take for markup escaped elsewhere.

    >>> as_markdown("max of <w, x[i][0]> * 2, see `a[0]`")
    'max of &lt;w, x\\\\[i]\\\\[0]> \\\\* 2, see `a[0]`'
    """
    text = _EXAMPLE.sub(lambda found: _fenced(found[0], found[1], "pycon"), text)
    sections = found[0] if (found := _SECTION.search(text)) else ""
    head = _FORMULA.sub(lambda found: _fenced(found[0], "", "text"), text.removesuffix(sections))
    text = "\n".join(_without_shared(head, sections))
    parts = _FENCE.split(text)
    parts[::2] = ["\n".join(map(_escaped, part.split("\n"))) for part in parts[::2]]
    return "".join(parts)


def _without_shared(head: str, sections: str) -> tuple[str, str]:
    """What is said of several parameters together, moved to the text above: griffe would give all the type of the first."""
    said = [
        f"{', '.join(f'`{name}`' for name in names.split(', '))}: {' '.join(what.split())}"
        for names, what in _SHARED.findall(sections)
    ]
    return "\n\n".join([head.rstrip("\n"), *said]), _EMPTY.sub("", _SHARED.sub("", sections))


def _fenced(block: str, indent: str, language: str) -> str:
    return f"{indent}```{language}\n{block}\n{indent}```"


def _escaped(line: str) -> str:
    if _TYPED.match(line):
        return line
    parts = _CODE.split(line)
    parts[::2] = [re.sub(r"([*\[])", r"\\\1", part.replace("<", "&lt;")) for part in parts[::2]]
    return "".join(parts)


class PlainDocstrings(Extension):
    """Turns each docstring into Markdown when griffe has read it."""

    def on_object(self, *, obj: Object, **_: object) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
