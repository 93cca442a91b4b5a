"""The checks and benchmarks as they run on a GPU, with programs that answer as ours and PyTorch's would there: every branch that
a machine without a GPU never takes is taken once."""
import contextlib
import io
import json
import os
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "scripts", "gpu"))

import bench  # noqa: E402
import check  # noqa: E402
import machine  # noqa: E402
import parts  # noqa: E402


class FakeGpu:
    def __init__(self):
        self.used = 1000.0

    def used_mib(self):
        self.used += 1
        return self.used

    def describe(self):
        return {"gpu": "NVIDIA H200", "driver": "580"}

    def name(self):
        return "NVIDIA H200"

    def clock_mhz(self):
        return 1980


class OnAGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        fake = os.path.join(HERE, "fake_bin")
        environment = {"FLEET_BIN": fake, "FLEET_TORCH_PYTHON": os.path.join(fake, "python-with-torch")}
        for patch in (mock.patch.dict(os.environ, environment), mock.patch.object(machine, "Gpu", FakeGpu),
                      mock.patch.object(machine, "cuda_device_count", lambda: (1, ""))):
            patch.start()
            self.addCleanup(patch.stop)

    def run_main(self, module, *arguments):
        out = io.StringIO()
        with mock.patch.object(sys, "argv", ["x", "--output", self.folder.name, *arguments]), contextlib.redirect_stdout(out):
            code = module.main()
        return code, out.getvalue()

    def result(self, name, **files):
        for file, names in files.items():
            with tarfile.open(os.path.join(self.folder.name, file.replace("__", ".")), "w") as archive:
                for inner in names:
                    archive.addfile(tarfile.TarInfo(inner))
        code, text = self.run_main(bench, name, "--data", self.folder.name)
        self.assertEqual(code, 0, text)
        with open(os.path.join(self.folder.name, name + ".json")) as file:
            self.assertEqual(json.load(file)["notes"], [], text)
        return text.splitlines()[-1]

    # The fake's steps take 10 ms each.
    def test_resnet50_b256_amp(self):
        self.assertRegex(self.result("resnet50_b256_amp"),
                         r"^resnet50_b256_amp: ratio 8\.53 \(ours 25600 images/s, PyTorch eager float16 3000 images/s\)$")

    def test_resnet50_b32_amp(self):
        self.assertIn("ratio 1.07 (ours 3200 images/s", self.result("resnet50_b32_amp"))

    def test_resnet50_b128_fp32(self):
        self.assertIn("ratio 4.27 (ours 12800 images/s, PyTorch eager tf32", self.result("resnet50_b128_fp32"))

    def test_memory_b256_compares_mebibytes(self):
        self.assertRegex(self.result("memory_b256"), r"^memory_b256: (ratio|no ratio).* MiB")

    def test_resnet50_jpeg(self):
        self.assertIn("resnet50_jpeg: ratio 8.53", self.result("resnet50_jpeg", imagenet_200__tar=["a.JPEG", "b.JPEG"]))

    def test_cifar10_60_epochs(self):
        last = self.result("cifar10_60_epochs", **{"cifar10_jpeg__tar__xz": ["cifar/train/cat/1.jpg", "cifar/test/cat/1.jpg"]})
        self.assertEqual(last, "cifar10_60_epochs: ratio 1.00 (ours 0.9 acc1, PyTorch eager 0.9 acc1)")

    def test_steps(self):
        self.assertIn("steps: ratio 1.00 (ours 25600 images/s, b256 plain 25600 images/s)", self.result("steps"))

    def test_roofline(self):
        self.assertRegex(self.result("roofline"), r"^roofline: ratio 1\.\d+ \(ours 25600 images/s, bound patterns 1\d+ images/s\)$")

    # A network below its bar is shown first, with its slowest operations; results accumulate.
    def test_families(self):
        code, text = self.run_main(bench, "families", "resnet18", "mobilenet_v2")
        self.assertEqual(code, 0, text)
        self.assertIn("families: lowest ratio 0.51 of 2 networks", text)
        self.assertLess(text.index("mobilenet_v2  256"), text.index("resnet18      256"))
        self.assertEqual(text.count("mobilenet_v2: conv2d_"), 5)
        self.assertNotIn("resnet18: conv2d_", text)
        code, text = self.run_main(bench, "families", "resnet18", "vgg16", "--next")
        self.assertEqual(code, 0, text)
        self.assertLess(text.index("vgg16: 12800 images/s"), text.index("resnet18: 25600 images/s"))
        self.assertIn("of 3 networks", text)
        self.assertIn("mobilenet_v2  256", text)

    def test_families_refuses_a_network_without_figures(self):
        with self.assertRaises(SystemExit):
            self.run_main(bench, "families", "nosuch")

    def test_checks_pass_where_all_is_right(self):
        code, text = self.run_main(check, "training", "graph", "repeat", "loss_scaling", "memory", "lines")
        self.assertEqual(code, 0, text)
        self.assertIn("6 of 6 parts without failure", text)
        self.assertIn("GPU Compute Capability: 9.0", text)

    def test_check_that_fails_is_told_and_hides_no_other(self):
        with mock.patch.object(parts, "NETS", {"lenet": {}}), mock.patch.object(check, "check_graph", None):
            with mock.patch.dict(check.PARTS, {"graph": (mock.Mock(side_effect=ValueError("broken")), 10)}):
                code, text = self.run_main(check, "training", "graph", "repeat")
        self.assertEqual(code, 1)
        self.assertIn("FAILED: graph", text)
        self.assertIn("ValueError: broken", text)
        self.assertIn("2 of 3 parts without failure", text)


if __name__ == "__main__":
    unittest.main()
