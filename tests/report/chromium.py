"""Debian's chromium without a window, driven over a pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

__all__ = ["Chromium", "chromium_path"]

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--enable-unsafe-swiftshader",
    "--remote-debugging-pipe",
)


def chromium_path() -> str | None:
    """The program; ``None`` where it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """One page of a browser.

    Attributes:
        problems: errors of the page, and what it wrote to the console as such.
        requests: addresses that the page asked for.
    """

    def __init__(self, profile: Path, width: int = 1400, height: int = 1000) -> None:
        program = chromium_path()
        assert program is not None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def hand_over() -> None:
            # The browser reads commands from 3 and answers on 4. Each may be taken: copy first.
            one, two = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(one, 3)
            os.dup2(two, 4)

        self._process = subprocess.Popen(
            [program, *_ARGUMENTS, f"--user-data-dir={profile}", f"--window-size={width},{height}"],
            preexec_fn=hand_over,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._send(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, address: str, seconds: float = 60.0) -> None:
        """Opens a page and waits until its script has run."""
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'", seconds)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        found = self.call(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 30.0) -> None:
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.1)

    def click(self, selector: str) -> None:
        """Clicks the middle of an element with the mouse."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """A picture of what is seen, or of the whole page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """Ends the browser."""
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._out, data) :]

    def _read(self, seconds: float = 120.0) -> dict[str, Any]:
        """The next message; what it says of errors and requests is kept."""
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], seconds)[0]:
                raise TimeoutError("the browser does not answer")
            read = os.read(self._in, 1 << 20)
            if not read:
                raise RuntimeError("the browser has ended")
            self._buffer += read
        one, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(str(parameters["exceptionDetails"]))
            case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                self.problems.append(str(parameters["entry"]["text"]))
            case "Network.requestWillBeSent":
                self.requests.append(str(parameters["request"]["url"]))
        return message
