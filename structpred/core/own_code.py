"""What code of a user's own raised, in a line that names the place in it."""

import os
import traceback

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def raised(error: BaseException) -> str:
    """The exception in one line, with file and line of the code where it came up; for whoever called that code.

    The place is the deepest line in the folder of the code that was called, not one in a library that it uses.

    >>> try:
    ...     [].index(7)
    ... except ValueError as error:
    ...     raised(error)
    'ValueError: 7 is not in list'
    """
    told = " ".join(f"{type(error).__name__}: {error}".split())
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)][1:]
    called = [place for place in places if not place[0].startswith(_OURS)] or places
    if not called:
        return told  # the call itself failed: its arguments do not fit, say
    folder = os.path.dirname(called[0][0])
    file, line = next(place for place in reversed(called) if place[0].startswith(folder))
    return f"{told} ({file}, line {line})"
