"""Runs commands with a time limit and keeps all of their output."""
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass


@dataclass
class Outcome:
    code: int  # -n: killed by signal n
    seconds: float
    output: str
    timed_out: bool = False

    @property
    def ok(self):
        return self.code == 0 and not self.timed_out

    def why(self):
        """The outcome in a few words; "" for success."""
        if self.timed_out:
            return f"stopped after {self.seconds:.0f} s, the time limit"
        if self.code < 0:
            try:
                return f"killed by {signal.Signals(-self.code).name}"
            except ValueError:
                return f"killed by signal {-self.code}"
        return f"exit code {self.code}" if self.code else ""

    def last_line(self):
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1].strip() if lines else "no output"


def kill_group(process):
    """Kills the process and its process group. Processes that left the group end with their pipe or their parent."""
    for which, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 20)):
        try:
            os.killpg(process.pid, which)
        except ProcessLookupError:
            pass
        try:
            process.wait(patience)
            if which == signal.SIGTERM:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return
        except subprocess.TimeoutExpired:
            continue


def start(argv, env=None, cwd=None):
    """Starts a command in its own process group; env extends this process's environment (None removes a variable)."""
    merged = dict(os.environ)
    for key, value in (env or {}).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = str(value)
    return subprocess.Popen(
        argv, env=merged, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )


def run(argv, limit, env=None, cwd=None, on_line=None, idle_limit=None, sweep=False):
    """Runs a command to its end or to the limit (seconds; idle_limit: without output). on_line(line) may return "stop" to end it.
    sweep: kills processes that it left in its group.

    Passes on an incomplete last line too.
    """
    begun = time.monotonic()
    try:
        process = start(argv, env, cwd)
    except OSError as error:
        return Outcome(127, 0.0, f"{argv[0]}: {error.strerror}")
    lines, state = [], {"heard": begun, "stop": False}

    def read():
        for line in process.stdout:
            lines.append(line)
            state["heard"] = time.monotonic()
            if on_line and on_line(line.rstrip("\n")) == "stop":
                state["stop"] = True

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    timed_out = False
    while True:
        try:
            process.wait(0.1)
            break
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            idle = idle_limit is not None and now - state["heard"] > idle_limit
            timed_out = idle or now - begun > limit
            if timed_out or state["stop"]:
                kill_group(process)
                break
    if sweep:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    reader.join(5)  # with a timeout, because a stray grandchild may hold the pipe
    if not reader.is_alive():
        process.stdout.close()
    return Outcome(process.returncode if process.returncode is not None else -9, time.monotonic() - begun, "".join(lines), timed_out)
