"""A headless Chromium, driven by its own protocol over two pipes: nothing to install but it."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0  # seconds for any one answer: a bound against hanging, not a measurement


def find_browser() -> str | None:
    """Path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A Chromium with one page open.

    Attributes
    ----------
    events : list
        Everything the page has reported: requests, log entries, exceptions.
    """

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4, where others may be in the way here:
        # a process of its own puts the pipes there and then becomes Chromium.
        high = [fcntl.fcntl(each, fcntl.F_DUPFD, 20) for each in (theirs_in, theirs_out)]
        begin = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
            "os.execv(sys.argv[3], sys.argv[3:])"
        )
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", begin, *map(str, high)),
                *(program, *FLAGS, f"--user-data-dir={self._profile.name}"),
            ],
            pass_fds=high,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for each in (theirs_in, theirs_out, *high):
            os.close(each)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._out)  # Chromium ends when nobody talks to it any more
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._profile.cleanup()

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        return self._wait(lambda answer: answer.get("id") == self._number)["result"]

    def _wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        ends = time.monotonic() + PATIENCE
        while True:
            while b"\0" not in self._buffer:
                ready, _, _ = select.select([self._in], [], [], max(0.0, ends - time.monotonic()))
                chunk = os.read(self._in, 1 << 20) if ready else b""
                if not chunk:
                    raise TimeoutError("Chromium does not answer")
                self._buffer += chunk
            text, _, self._buffer = self._buffer.partition(b"\0")
            message = json.loads(text)
            if "error" in message:
                raise RuntimeError(message["error"])
            if "method" in message:
                self.events.append(message)
            if wanted(message):
                return message

    def open(self, path: Path) -> None:
        """Show a file and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        if not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._wait(lambda event: event.get("method") == "Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of a piece of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def size(self, width: int, height: int, mobile: bool = False) -> None:
        """Set the size of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    def press(self, key: str, code: int) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def requests(self) -> list[str]:
        """Addresses of all requests since the page was opened, data inside the page left out."""
        found = (
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        )
        return [url for url in found if not url.startswith("data:")]

    def complaints(self) -> list[Any]:
        """Log entries, console messages and exceptions."""
        methods = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [event["params"] for event in self.events if event["method"] in methods]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for all tests of a module, or a skip that says what to install."""
    program = find_browser()
    if program is None:
        pytest.skip(
            "no Chromium here, so the report is not tried in a browser; "
            "on Debian: apt-get install chromium"
        )
    with Browser(program) as opened:
        yield opened
