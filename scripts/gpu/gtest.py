"""Runs a gtest program to its end even if tests crash, hang or leave the GPU in a broken state."""
import re
import tempfile
import time

import process

# After one of these errors the process cannot use the GPU any more, and every later test would fail.
BROKEN = re.compile(
    r"illegal memory access|misaligned address|unspecified launch failure|device-side assert|illegal instruction"
    r"|an illegal|hardware stack error|CUDNN_STATUS_EXECUTION_FAILED",
    re.IGNORECASE,
)
MARK = re.compile(r"^\[ +(RUN|OK|FAILED|SKIPPED) +\] ([^\s,(]+)")


def names(program, env, limit=120):
    """All tests of the program, and the outcome of listing them."""
    outcome = process.run([program, "--gtest_list_tests"], limit, env)
    found, suite = [], ""
    for line in outcome.output.splitlines() if outcome.ok else ():
        text = line.split("#")[0].rstrip()
        if line.startswith("  ") and suite:
            found.append(suite + text.strip())
        elif text.endswith(".") and " " not in text:
            suite = text
    return [name for name in found if "DISABLED_" not in name], outcome


class Run:
    """Results by test: (status, detail); status: ok, failed, crashed, hung, skipped, not run."""

    def __init__(self, program, env, limit, test_limit=90, log=lambda line: None):
        self.program, self.env, self.test_limit, self.log = program, env, test_limit, log
        self.results, self.problem, self._last = {}, "", ""
        self._end = time.monotonic() + limit
        all_names, outcome = names(program, env)
        if not all_names:
            self.problem = f"lists no tests: {outcome.why() or 'none'}: {outcome.last_line()}"
            return
        pending = all_names
        while pending and time.monotonic() < self._end:
            before = len(self.results)
            self._run_once(pending)
            pending = [name for name in pending if name not in self.results]
            if len(self.results) == before:  # it does not start, or runs none of the tests
                self.problem = self.problem or f"runs none of its tests: {self._last}"
                break
        for name in pending:
            self.results[name] = ("not run", self.problem or "no time left")
        self._again_alone()

    def _run_once(self, chosen, again=False):
        current, text, broken = None, [], False

        def on_line(line):
            nonlocal current, text, broken
            self.log(line)
            mark = MARK.match(line)
            if mark and mark[1] == "RUN":
                current, text = mark[2], []
            elif mark and current == mark[2]:
                status = {"OK": "ok", "FAILED": "failed", "SKIPPED": "skipped"}[mark[1]]
                self._note(current, status, text, again)
                current = None
                if status == "failed" and BROKEN.search("\n".join(text)):
                    broken = True
                    return "stop"
            elif current:
                text.append(line)
            return None

        with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
            flags.write("--gtest_filter=" + ":".join(chosen) + "\n--gtest_color=no\n")
            flags.flush()
            left = self._end - time.monotonic()
            outcome = process.run([self.program, f"--gtest_flagfile={flags.name}"], left, self.env,
                                  on_line=on_line, idle_limit=self.test_limit)
        self._last = outcome.last_line()
        if current:
            status = "hung" if outcome.timed_out else "crashed"
            self._note(current, status, text + [outcome.why()], again)
        elif not broken and outcome.code not in (0, 1):
            self.problem = f"{outcome.why()}: {outcome.last_line()}"
            self.log(f"{self.program}: {self.problem}")

    def _note(self, name, status, text, again):
        detail = "\n".join(line for line in text if line.strip())[-2000:] if status not in ("ok",) else ""
        if again and status == "ok":
            earlier = self.results[name]
            self.results[name] = (earlier[0], "passes when run alone\n" + earlier[1])
        elif not again:
            self.results[name] = (status, detail)

    def _again_alone(self):
        """Another test may have caused a failure: note which tests pass alone, but keep the failure."""
        for name in [name for name, (status, _) in self.results.items() if status == "failed"][:10]:
            if time.monotonic() > self._end - 20:
                return
            self._run_once([name], again=True)

    def count(self, *statuses):
        return sum(status in statuses for status, _ in self.results.values())

    @property
    def ok(self):
        return not self.problem and bool(self.results) and self.count("ok", "skipped") == len(self.results)

    def summary(self):
        if not self.results:
            return self.problem
        parts = [f"{self.count('ok')} of {len(self.results)} ok"]
        for status in ("failed", "crashed", "hung", "not run", "skipped"):
            if self.count(status):
                parts.append(f"{self.count(status)} {status}")
        bad = [name for name, (status, _) in self.results.items() if status in ("failed", "crashed", "hung")]
        if bad:
            parts.append("first: " + bad[0])
        if self.problem:
            parts.append(self.problem)
        return ", ".join(parts)
