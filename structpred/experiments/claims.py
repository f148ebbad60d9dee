"""What papers claim, what was found, and what of a paper stands beside our own figures."""

from dataclasses import dataclass

#: in the text of an experiment: from here to the end of the line is what the paper printed
PRINTED = "\x1f"


@dataclass(frozen=True)
class Claim:
    """A claim of a paper. printed, ours: the figures behind it, in a few words. met: None where it was not tried."""

    paper: str
    claim: str
    printed: str
    ours: str
    met: bool | None

    @property
    def verdict(self) -> str:
        """As a word: "met", "NOT MET" or "not tried"."""
        return "not tried" if self.met is None else "met" if self.met else "NOT MET"


def without_printed(text: str) -> str:
    """The text without what papers printed; a line that holds nothing else goes."""
    pairs = ((line, *line.split(PRINTED)) for line in text.splitlines())
    return "\n".join(kept.rstrip() for line, kept, *_ in pairs if kept.strip() or PRINTED not in line)
