"""tests/bench/cpu_families.py with made-up programs: pairs, ratios, what is kept between runs, what is refused."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OURS = """#!/bin/sh
[ "$1" != vgg16 ] || { echo no such network >&2; exit 1; }
echo ready; echo "oneDNN 0, 1 threads"
while read -r command; do
  case $command in
    step) if [ "$1" = resnet18 ]; then echo 2.0; else echo 1.0; fi ;;
    products) echo 0.5 ;;
    profile) for i in 1 2 3 4 5 6; do echo "conv2d_$i  1 calls  1.0 ms/run  10 %"; done; echo end ;;
  esac
done
"""
PEER = """#!/bin/sh
echo ready; echo "torch 0"
while read -r layout; do
  case $layout in contiguous) echo 3.0 ;; *) echo 1.5 ;; esac
done
"""


class CpuFamilies(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        for name, text in (("bench_image_step", OURS), ("python", PEER)):
            path = os.path.join(self.folder.name, name)
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o755)

    def tearDown(self):
        self.folder.cleanup()

    def run_main(self, *options):
        env = {**os.environ, "FLEET_BIN": self.folder.name, "FLEET_TORCH_PYTHON": os.path.join(self.folder.name, "python")}
        argv = [sys.executable, "-B", os.path.join(ROOT, "tests/bench/cpu_families.py"), "--rounds", "3", "--output",
                os.path.join(self.folder.name, "out"), *options]
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)

    def rows(self):
        folder = os.path.join(self.folder.name, "out")
        names = os.listdir(folder)
        self.assertEqual(len(names), 1)
        with open(os.path.join(folder, names[0])) as file:
            return json.load(file)

    def test_other_type_goes_to_both_programs_and_has_its_own_results(self):
        for name in ("bench_image_step", "python"):
            path = os.path.join(self.folder.name, name)
            with open(path) as file:
                text = file.read()
            with open(path, "w") as file:
                file.write(text.replace("echo ready", 'case "$*" in *" 4 bfloat16") ;; *) echo not narrow >&2; exit 1 ;; esac; echo ready'))
        self.assertEqual(self.run_main("resnet50", "--dtype", "bfloat16").returncode, 0)
        self.assertIn("bfloat16", os.listdir(os.path.join(self.folder.name, "out"))[0])
        self.assertEqual(self.run_main("resnet50").returncode, 1)

    def test_ratio_is_that_of_the_better_layout(self):
        self.assertEqual(self.run_main("resnet50", "resnet18").returncode, 0)
        rows = self.rows()
        self.assertEqual((rows["resnet50"]["ratio"], rows["resnet50"]["layout"], rows["resnet50"]["products"]),
                         (1.5, "channels_last", 0.5))
        self.assertNotIn("slowest", rows["resnet50"])
        self.assertEqual((rows["resnet18"]["ratio"], len(rows["resnet18"]["slowest"])), (0.75, 5))

    def test_next_begins_with_what_is_missing(self):
        self.run_main("resnet50")
        text = self.run_main("resnet50", "googlenet", "--next").stdout
        self.assertLess(text.index("googlenet: ratio"), text.index("resnet50: ratio"))
        self.assertEqual(set(self.rows()), {"resnet50", "googlenet"})

    def test_failure_of_one_network_leaves_the_others(self):
        ended = self.run_main("vgg16", "resnet50")
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(set(self.rows()), {"resnet50"})

    def test_unknown_network_is_refused(self):
        self.assertNotEqual(self.run_main("nosuch").returncode, 0)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "out")))


if __name__ == "__main__":
    unittest.main()
