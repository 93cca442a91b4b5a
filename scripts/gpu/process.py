"""Commands under a time limit, with all of their output kept."""
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
        """How it ended, in a few words; "" where it ended well."""
        if self.timed_out:
            return f"stopped after {self.seconds:.0f} s, its limit"
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
    """The process and what it has started in its group; what has left the group ends with its pipe or its parent."""
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
    """Started in a process group of its own; env is added to this process's environment (None removes)."""
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
    """Runs to the end or to the limit (seconds; idle_limit: without a line). on_line(line) may return "stop" to end it.
    sweep: what it has left running in its group is killed.

    A line that breaks off where the process died is handed on too.
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
    reader.join(5)  # not for ever: a stray grandchild may hold the pipe
    if not reader.is_alive():
        process.stdout.close()
    return Outcome(process.returncode if process.returncode is not None else -9, time.monotonic() - begun, "".join(lines), timed_out)
