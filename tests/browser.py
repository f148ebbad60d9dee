"""Pages measured and photographed in headless Chromium, at the width of a telephone or of a wide screen.

No package is needed, only the browser itself: it is steered over a pipe by the DevTools protocol. (A window of Chromium is at
least 500 px wide; an emulated device may be narrower.) `python tests/browser.py page.html 320 page.png` takes a picture and
prints what `overflowing` finds.
"""

import atexit
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
]
_PATIENCE = 120  # seconds without an answer after which the browser is given up
_HEIGHT = 900
_TALLEST = 8000  # of a picture, in px

# The browser reads commands from descriptor 3 and answers on 4; the shell cannot move descriptors with two digits.
_LAUNCH = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"


def program() -> str | None:
    """The path of the browser; None where it is not installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(program() is None, reason="Chromium is not installed (Debian: apt-get install chromium)")


def overflowing(page_path: str | os.PathLike[str], *widths: int, allowed: str = "") -> list[str]:
    """What is cut or sticks out where a page is shown `widths` px wide: a line for each offender, none for a page that fits.

    The page is loaded once, at the first width, and its window then changes.

    Offenders are: a page wider than the window; an element outside the window; an element or a text that is wider than its
    parent; a text that is cut off by its drawing. A box that scrolls (overflow-x: auto or scroll) may hold more than fits: inside
    it only what another box cuts off is an offence. Folded details are opened first.

    allowed: a CSS selector of elements that stick out of their parents on purpose, such as by negative margins, or whose text
    ends in an ellipsis on purpose.
    """
    code = f"({_OVERFLOWING})({json.dumps(allowed)})"
    found: list[str] = browser().evaluate(page_path, widths[0], code)
    for width in widths[1:]:
        found += browser().evaluate_at(width, code)
    return found


def silent_boxes(page_path: str | os.PathLike[str], width: int) -> list[str]:
    """The boxes that hide something to the right and do not show it, or which the keyboard cannot scroll; a line for each.

    A box shows it by a scroll bar that takes room, or by a shade in its background.
    """
    found: list[str] = browser().evaluate(page_path, width, f"({_SILENT})()")
    return found


def screenshot(page_path: str | os.PathLike[str], width: int, picture: str | os.PathLike[str]) -> None:
    """Write the whole page, down to 8000 px, as a PNG."""
    height = browser().evaluate(page_path, width, "document.documentElement.scrollHeight")
    area = {"x": 0, "y": 0, "width": width, "height": min(height, _TALLEST), "scale": 1}
    answer = browser().call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=area)
    Path(picture).write_bytes(base64.b64decode(answer["data"]))


@cache
def browser() -> "Browser":
    """The browser of this process, started when first asked for and ended with the process."""
    started = Browser()
    atexit.register(started.close)
    return started


class Browser:
    """One headless browser with one empty page."""

    def __init__(self) -> None:
        path = program()
        assert path is not None, "Chromium is not installed"
        self._profile = tempfile.mkdtemp(prefix="browser-")
        (their_in, self._out), (self._in, their_out) = os.pipe(), os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (their_in, their_out)]
        arguments = [path, *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        command = [sys.executable, "-c", _LAUNCH, *map(str, high), *arguments]
        quiet: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self._process = subprocess.Popen(command, pass_fds=high, **quiet)
        for end in (their_in, their_out, *high):
            os.close(end)
        self._read, self._number, self._session = b"", 0, ""
        self._events: list[str] = []  # that came while an answer was waited for
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def evaluate(self, page_path: str | os.PathLike[str], width: int, code: str) -> Any:
        """The value of an expression of JavaScript on a page, a file or an address, that is shown `width` px wide."""
        self._resize(width)
        self._events.clear()
        address = str(page_path) if "://" in str(page_path) else Path(page_path).resolve().as_uri()
        opened = self.call("Page.navigate", url=address)
        assert "errorText" not in opened, (page_path, opened["errorText"])
        while "Page.loadEventFired" not in self._events:
            self._events.append(self._next().get("method", ""))
        return self._value(code)

    def evaluate_at(self, width: int, code: str) -> Any:
        """The value of an expression on the page that is open, shown `width` px wide from now on."""
        self._resize(width)
        drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(innerWidth))))"
        assert self._value(drawn) == width
        return self._value(code)

    def _resize(self, width: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=_HEIGHT, deviceScaleFactor=1, mobile=False)

    def _value(self, code: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to one command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._events.append(answer.get("method", ""))
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        """End the browser and remove what it wrote."""
        os.close(self._out)  # it ends when nobody can command it any more
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _next(self) -> dict[str, Any]:
        """The next answer or event."""
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._in], [], [], _PATIENCE)
            more = os.read(self._in, 1 << 16) if ready else b""
            assert more, "the browser has ended or does not answer"
            self._read += more
        line, self._read = self._read.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        return message


_COMMON = """
  const slack = 1;
  const known = new Map();
  const scrolls = el => { if (!known.has(el)) known.set(el, ["auto", "scroll"].includes(getComputedStyle(el).overflowX));
    return known.get(el); };
  const cuts = el => ["hidden", "clip"].includes(getComputedStyle(el).overflowX);
  const within = el => { for (let a = el.parentElement; a; a = a.parentElement) if (scrolls(a)) return true; return false; };
  const step = el => el.localName + (el.id ? "#" + el.id : "") + [...el.classList].map(c => "." + c).join("");
  const place = el => { const steps = []; for (let a = el; a && a !== document.body && steps.length < 5; a = a.parentElement)
    steps.unshift(step(a)); return steps.join(" > "); };
  const shown = el => el.getClientRects().length > 0 && el.getBoundingClientRect().width > 1
    && getComputedStyle(el).visibility !== "hidden";
  document.querySelectorAll("details").forEach(folded => { folded.open = true; });
  const all = [...document.body.querySelectorAll("*")].filter(el => !el.parentElement.closest("svg, math") && shown(el));
"""

_OVERFLOWING = (
    """allowed => {"""
    + _COMMON
    + """
  const found = [], page = document.scrollingElement, wide = document.documentElement.clientWidth;
  const say = (el, what) => found.push(`${place(el)}: ${what}: ${el.textContent.trim().slice(0, 40)}`);
  const beyond = (box, limit) => Math.round(Math.max(box.right - limit.right, limit.left - box.left));
  if (page.scrollWidth > innerWidth) found.push(`the page is ${page.scrollWidth} px wide in a window of ${innerWidth}`);
  for (const el of all) {
    const box = el.getBoundingClientRect(), parent = el.parentElement, inside = within(el);
    const free = ["absolute", "fixed", "sticky"].includes(getComputedStyle(el).position);
    const meant = allowed !== "" && el.matches(allowed), ends = meant && getComputedStyle(el).textOverflow === "ellipsis";
    if (!inside && !meant && beyond(box, {left: 0, right: wide}) > slack) say(el, "outside the window");
    const outside = beyond(box, parent.getBoundingClientRect());
    if (outside > slack && !free && !meant && shown(parent) && !scrolls(parent) && (!inside || cuts(parent)))
      say(el, `${outside} px wider than its parent`);
    for (const node of el.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || !node.data.trim() || scrolls(el) || ends || (inside && !cuts(el))) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const out = beyond(range.getBoundingClientRect(), box);
      if (out > slack) say(el, `a text ${out} px wider than its element`);
    }
    if (el.localName === "svg" && getComputedStyle(el).overflowX !== "visible")
      for (const words of el.querySelectorAll("text")) {
        const out = words.getBoundingClientRect();
        const low = Math.round(Math.max(out.bottom - box.bottom, box.top - out.top));
        if (words.textContent && Math.max(beyond(out, box), low) > slack + 1) say(words, "cut off by its drawing");
      }
  }
  return found;
}"""
)

_SILENT = (
    """() => {"""
    + _COMMON
    + """
  const found = [];
  for (const el of all.filter(el => scrolls(el) && el.scrollWidth > el.clientWidth + slack)) {
    const style = getComputedStyle(el), bar = el.offsetHeight - el.clientHeight;
    if (bar - parseFloat(style.borderTopWidth) - parseFloat(style.borderBottomWidth) < 1 && style.backgroundImage === "none")
      found.push(`${place(el)}: nothing shows that it scrolls`);
    if (el.tabIndex < 0) found.push(`${place(el)}: the keyboard cannot scroll it`);
  }
  return found;
}"""
)


if __name__ == "__main__":
    source, pixels, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    screenshot(source, pixels, target)
    print("\n".join([*overflowing(source, pixels), *silent_boxes(source, pixels)]))
