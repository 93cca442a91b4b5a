"""scripts/gpu: what a crash, a hang or a broken GPU in one test leaves of the others, and how results are read."""
import array
import json
import os
import struct
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "scripts", "gpu"))

import gtest  # noqa: E402
import job  # noqa: E402
import machine  # noqa: E402
import process  # noqa: E402
import report  # noqa: E402


class GtestRunner(unittest.TestCase):
    def test_crash_hang_and_broken_gpu_hide_no_other_test(self):
        run = gtest.Run(os.path.join(HERE, "fake_gtest.py"), {}, limit=60, test_limit=1.5)
        results = {name: status for name, (status, _) in run.results.items()}
        self.assertEqual(results, {
            "Good.One": "ok", "Bad.Fails": "failed", "Bad.Crashes": "crashed", "Good.Two": "ok", "Bad.Hangs": "hung",
            "Bad.BreaksTheGpu": "failed", "Good.Three": "ok", "Types/0.Good": "ok", "Good.Skips": "skipped"})
        self.assertFalse(run.ok)
        self.assertIn("SIGABRT", run.results["Bad.Crashes"][1])
        self.assertIn("illegal memory access", run.results["Bad.BreaksTheGpu"][1])
        self.assertIn("no such card", run.results["Good.Skips"][1])
        self.assertTrue(run.summary().startswith("4 of 9 ok, 2 failed, 1 crashed, 1 hung, 1 skipped"))

    def test_program_that_cannot_start_is_a_failure_with_its_reason(self):
        run = gtest.Run("/nonexistent/tests", {}, limit=10)
        self.assertFalse(run.ok)
        self.assertIn("No such file", run.summary())

    def test_no_time_left_is_not_run(self):
        run = gtest.Run(os.path.join(HERE, "fake_gtest.py"), {}, limit=0)
        self.assertEqual(run.count("not run"), 9)
        self.assertFalse(run.ok)


class Process(unittest.TestCase):
    def test_limit_ends_the_process_and_what_it_started(self):
        outcome = process.run(["sh", "-c", "echo begun; sleep 100 & sleep 100"], 0.5)
        self.assertTrue(outcome.timed_out)
        self.assertEqual(outcome.output, "begun\n")
        self.assertIn("the time limit", outcome.why())

    def test_sweep_kills_what_was_left_running(self):
        outcome = process.run(["sh", "-c", "sleep 100 & echo $!"], 10, sweep=True)
        self.assertTrue(outcome.ok)
        self.assertTrue(self.ends(int(outcome.output)))

    @staticmethod
    def ends(pid):
        for _ in range(200):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":  # until somebody reaps it
                        return True
            except OSError:
                return True
            time.sleep(0.05)
        return False

    def test_signal_is_named(self):
        self.assertEqual(process.run(["sh", "-c", "kill -SEGV $$"], 10).why(), "killed by SIGSEGV")


class Limits(unittest.TestCase):
    def test_a_part_cannot_take_more_than_its_own(self):
        context = object.__new__(job.Context)
        context.patience, context.end = 1, time.monotonic() + 20
        self.assertEqual(context.allow(5), 5)
        self.assertLessEqual(context.allow(90), 20)


class Results(unittest.TestCase):
    def test_weights_are_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            header = json.dumps({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}).encode()
            with open(path, "wb") as file:
                file.write(struct.pack("<Q", len(header)) + header + array.array("f", [1, -4, 2]).tobytes())
            weights = job.read_safetensors(path)
        self.assertEqual(job.distance(weights, weights), 0)
        self.assertEqual(job.distance(weights, {"w": array.array("f", [1, -4, 3])}), 0.25)
        self.assertEqual(job.distance(weights, {"w": array.array("f", [1, -4, float("nan")])}), float("inf"))
        self.assertEqual(job.distance({}, {}), float("inf"))
        self.assertEqual(job.distance(weights, {"v": array.array("f", [1, -4, 2])}), float("inf"))

    def test_speed_is_of_the_steps_after_the_first(self):
        run = object.__new__(job.Job)
        times = {0: 0, 10: 5, 20: 6, 30: 7, 40: 9}
        run.events = [{"event": "train", "step": step, "time": time, "loss": 1} for step, time in times.items()]
        self.assertEqual(run.speed(32, skip=10), 320)

    def test_needed_libraries_are_read_from_a_module(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"\0libcudnn.so.9\0libcublasLt.so.13\0libc.so.6\0libnccl.so.2\0")
            file.flush()
            self.assertEqual(machine.needed_libraries([file.name]), ["libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2"])

    def test_table_has_a_column_each(self):
        self.assertEqual(report.table(["a", "b"], [["long", 1]]), "a     b\n----  -\nlong  1")


if __name__ == "__main__":
    unittest.main()
