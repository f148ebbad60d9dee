"""What a text that is no column file may be, by its first lines: closing parts of messages."""

import itertools
import re
from collections.abc import Iterable

_LOOKED_AT = 50
_WORD_LINE = re.compile(r"[0-9]+(?:[-.][0-9]+)?\t(?:[^\t]*\t){8}")
_COMMENT = re.compile(r"# ?(?:sent_id|text|newdoc|newpar|global\.columns)\b")


def looks_like(lines: Iterable[str]) -> str:
    """A closing part for a message that names the likely format of a text by its first lines; nothing where none is likely.

    >>> looks_like(["The,DT,B-NP", "cat,NN,I-NP"])
    '; this looks like CSV: columns are separated by spaces or tabs here, not by commas'
    >>> looks_like(["Confidence NN B-NP"])
    ''
    """
    filled = list(itertools.islice((line[:1000] for line in lines if line.strip()), _LOOKED_AT))
    if not filled:
        return ""
    if looks_like_treebank(filled):
        return (
            "; this looks like a treebank (CoNLL-U or CoNLL-X), which parsers read (structpred train parser; io.read_treebank); "
            "sequence labellers need columns (docs/formats.md says how to make them)"
        )
    if all(line.startswith("{") for line in filled):
        return "; this looks like JSON lines, which sequence labellers read with --format jsonl"
    for sign, name in ((",", "commas"), (";", "semicolons")):
        counts = {line.count(sign) for line in filled}
        if len(counts) == 1 and counts != {0} and not any("\t" in line for line in filled):
            return f"; this looks like CSV: columns are separated by spaces or tabs here, not by {name}"
    if looks_like_running_text(filled):
        return (
            "; this looks like running text: one token per line is expected, and a blank line after each sentence; "
            "structpred predict --text has it tokenized"
        )
    return ""


def looks_like_treebank(lines: Iterable[str]) -> bool:
    """Whether a line is a word of CoNLL-U, CoNLL-X and the like, or one of their comments.

    >>> looks_like_treebank(["# text = Cats sleep."]), looks_like_treebank(["1 NN B-NP"])
    (True, False)
    """
    return any(_WORD_LINE.match(line) or _COMMENT.match(line) for line in lines)


def looks_like_running_text(lines: list[str]) -> bool:
    """Whether these lines are sentences as people write them: no tabs, more words than letters of one word explain.

    >>> looks_like_running_text(["The cat sat on the mat.", "A dog barked."])
    True
    """
    if any("\t" in line for line in lines):
        return False
    counts = [len(line.split(" ")) for line in lines]
    return len(set(counts)) > 1 and sum(counts) >= 3 * len(counts) and sum(n > 3 for n in counts) * 2 >= len(counts)
