"""tests/bench/vision_accuracy.py with made-up programs: the verdict, what is kept between runs, what is missing."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# A job's accuracy is $ACCURACY. `export` makes the folder of weights.
OURS = """#!/bin/sh
echo "$*" >>"$CALLS"
[ "$1" != --version ] || { echo "fleet-worker 0"; exit; }
[ "$1" != export ] || { mkdir -p "$4"; : >"$4/model.safetensors"; exit; }
run=$(sed -n 's/.*"output": "\\(.*\\)".*/\\1/p' "$2")
mkdir -p "$run"
printf '{"event": "test", "acc1": %s, "loss": 1}\\n{"event": "summary"}\\n' "$ACCURACY" >"$run/metrics.jsonl"
"""
PEER = """#!/bin/sh
[ "$3" != check ] || { [ -z "$MISSING" ] || { echo "SKIP: no timm"; exit 77; }; echo "PyTorch 0"; exit; }
shift 5
for seed; do printf '{"seed": %s, "acc1": 0.%s, "loss": 1, "about": "PyTorch 0"}\\n' "$seed" "$((40 + seed))"; done
"""


class VisionAccuracy(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name, text in (("fleetrun", OURS), ("fleet-worker", OURS), ("python", PEER)):
            with open(self.path(name), "w") as file:
                file.write(text)
            os.chmod(self.path(name), 0o755)
        for split in ("train", "test"):
            for name in "abcdefghij":
                os.makedirs(self.path("data", split, name))
                open(self.path("data", split, name, "0.jpg"), "w").close()

    def path(self, *parts):
        return os.path.join(self.folder.name, *parts)

    def run_main(self, accuracy, *options, **more):
        open(self.path("calls"), "w").close()
        env = {**os.environ, "FLEET_BIN": self.folder.name, "FLEET_TORCH_PYTHON": self.path("python"), "ACCURACY": str(accuracy),
               "CALLS": self.path("calls"), **more}
        argv = [sys.executable, "-B", os.path.join(ROOT, "tests/bench/vision_accuracy.py"), "--data", self.path("data"), "--seeds", "3",
                "--output", self.path("out"), *options]
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)

    def calls(self):
        with open(self.path("calls")) as file:
            return [line for line in file if "--version" not in line]

    def test_means_within_the_peers_spread_pass_and_are_kept(self):
        ended = self.run_main(0.42)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn("2 of 2 networks", ended.stdout)
        self.assertEqual(len(self.calls()), 2 * (1 + 1 + 3 + 3))  # the first training, the export, each seed on 1 and 2 ranks
        self.assertEqual(self.run_main(0.1).returncode, 0)
        self.assertEqual(self.calls(), [])
        with open(self.path("fleet-worker"), "a") as program:
            program.write("# another build\n")
        self.assertEqual(self.run_main(0.1).returncode, 1)

    def test_means_outside_of_it_fail(self):
        for accuracy in (0.40, 0.44):
            ended = self.run_main(accuracy, "--networks", "convnext_atto", "--output", self.path(f"out{accuracy}"))
            self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
            self.assertIn("0 of 1 networks", ended.stdout)

    def test_missing_packages_skip_visibly(self):
        ended = self.run_main(0.42, MISSING="1")
        self.assertEqual((ended.returncode, ended.stdout), (77, "SKIP: vision_accuracy: no timm\n"))
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    unittest.main()
