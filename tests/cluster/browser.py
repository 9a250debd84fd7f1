"""Opens pages in headless Chromium, over its debugging protocol on two pipes, so that no port is open.

    with browser.started() as chromium:
        page = chromium.open("file:///tmp/page.html", width=390, scheme="dark")
        page.evaluate("document.title")

What a page says on its console, what it throws and what it asks for are kept in `page.messages` and `page.requests`.
"""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

PROGRAM = "chromium"
REPLY_S = 30


class Page:
    def __init__(self, chromium, session):
        self.chromium, self.session = chromium, session
        self.messages, self.requests, self.is_loaded = [], [], False

    def call(self, method, **parameters):
        return self.chromium.call(method, self.session, **parameters)

    def note(self, method, parameters):
        """Keeps an event of the protocol."""
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self.is_loaded = True
        elif method == "Runtime.exceptionThrown":
            self.messages.append(parameters["exceptionDetails"].get("exception", {}).get("description", str(parameters)))
        elif method == "Log.entryAdded":
            self.messages.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(" ".join(str(word.get("value", word.get("description"))) for word in parameters["args"]))

    def evaluate(self, expression):
        """The value of an expression of JavaScript, as JSON has it; an exception fails."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise AssertionError(f"{expression}: {reply['exceptionDetails']['exception'].get('description')}")
        return reply["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def resize(self, width, scheme="light", height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def save_picture(self, path):
        """The whole page as a PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))


class Chromium:
    def __init__(self, to, replies):
        self.to, self.replies = to, replies
        self.number, self.pages, self.rest = 0, {}, b""

    def read(self, until_s):
        """One message of the browser."""
        while b"\0" not in self.rest:
            if time.monotonic() > until_s:
                raise AssertionError(f"{PROGRAM} has not answered within {REPLY_S} s")
            data = os.read(self.replies, 1 << 20)
            if not data:
                raise AssertionError(f"{PROGRAM} has ended")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def take(self, message):
        page = self.pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.note(message["method"], message["params"])

    def call(self, method, session=None, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.to, json.dumps(request).encode() + b"\0")
        until_s = time.monotonic() + REPLY_S
        while True:
            message = self.read(until_s)
            self.take(message)
            if message.get("id") == self.number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']['message']}")
                return message["result"]

    def open(self, url, width=1280, scheme="light", timer_rate=1):
        """timer_rate: how many times as fast the timers of the page run."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, scheme)
        page.call("Page.addScriptToEvaluateOnNewDocument",
                  source=f"{{ const real = setTimeout; window.setTimeout = (then, ms) => real(then, ms / {timer_rate}); }}")
        page.call("Page.navigate", url=url)
        until_s = time.monotonic() + REPLY_S
        while not page.is_loaded:
            self.take(self.read(until_s))
        return page


@contextlib.contextmanager
def started():
    """A browser without a profile, which is ended with what it wrote. As root it has no sandbox, which only a user may have."""
    folder = tempfile.mkdtemp(prefix="wlb-browser-")
    from_us, to_it = os.pipe()
    from_it, to_us = os.pipe()
    words = [PROGRAM, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    process = subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "sh", *words], pass_fds=(from_us, to_us),
                               env={**os.environ, "HOME": folder}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(from_us)
    os.close(to_us)
    try:
        yield Chromium(to_it, from_it)
    finally:
        os.close(to_it)
        os.close(from_it)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
