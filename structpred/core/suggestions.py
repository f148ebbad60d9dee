"""What a user may have meant by a name that is not known."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A closing part for a message about an unknown name; nothing where no known name is near.

    >>> did_you_mean("trian", ["train", "predict"]), did_you_mean("x", ["train"])
    ("; did you mean 'train'?", '')
    """
    close = difflib.get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
