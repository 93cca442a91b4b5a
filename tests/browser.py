"""Drives headless Chromium for tests, by the DevTools protocol over pipes: needs Python's own modules only."""
import json
import os
import subprocess


class Browser:
    def __init__(self, profile, any_certificate=False):
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()

        def pipes():  # DevTools reads descriptor 3 and writes 4
            os.dup2(to_read, 100)
            os.dup2(from_write, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        command = ["chromium", "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--no-sandbox",
                   "--disable-background-networking", "--disable-component-update", "--user-data-dir=" + profile, "about:blank"]
        if any_certificate:
            command.insert(1, "--ignore-certificate-errors")
        self.process = subprocess.Popen(command, close_fds=False, preexec_fn=pipes, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.from_read, 1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self.receive()
            if reply.get("id") == self.number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]
            self.events.append(reply)

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression)["result"].get("value")


def messages(events):
    for event in events:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.consoleAPICalled":
            yield " ".join(str(one.get("value", one.get("description"))) for one in parameters["args"])
        elif event.get("method") == "Runtime.exceptionThrown":
            yield str(parameters["exceptionDetails"].get("exception", {}).get("description"))
        elif event.get("method") == "Log.entryAdded":
            yield parameters["entry"]["text"] + " " + parameters["entry"].get("url", "")
