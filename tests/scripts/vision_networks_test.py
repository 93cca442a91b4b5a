"""tests/bench/peers/vision_networks.py with made-up torchvision and timm: whose network a name is, under which name and size."""
import importlib.util
import os
import sys
import types
import unittest
from unittest import mock

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "peers", "vision_networks.py")


class VisionNetworks(unittest.TestCase):
    def made(self, name, **keys):
        """(library, its name, keywords)."""
        models = types.SimpleNamespace(**{own: lambda own=own, **given: ("torchvision", own, given)
                                          for own in ("resnet18", "vit_b_16", "googlenet")})
        modules = {"torchvision": types.SimpleNamespace(models=models),
                   "timm": types.SimpleNamespace(create_model=lambda own, **given: ("timm", own, given))}
        with mock.patch.dict(sys.modules, modules):
            spec = importlib.util.spec_from_file_location("vision_networks", FILE)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module.make_network(name, **keys)

    def test_networks_of_torchvision(self):
        self.assertEqual(self.made("resnet18"), ("torchvision", "resnet18", {"num_classes": 1000}))
        self.assertEqual(self.made("vit_b_16", size=64)[2]["image_size"], 64)
        self.assertFalse(self.made("googlenet")[2]["aux_logits"])

    def test_others_are_timms_under_its_names(self):
        for ours, theirs in (("convnext_v2_atto", "convnextv2_atto"), ("mobilenet_v4_conv_small", "mobilenetv4_conv_small"),
                             ("efficientnet_lite0", "tf_efficientnet_lite0"), ("resnet50d", "resnet50d")):
            self.assertEqual(self.made(ours), ("timm", theirs, {"num_classes": 1000}))
        self.assertEqual(self.made("vit_small_patch14_dinov2", size=56)[2], {"num_classes": 1000, "img_size": 56})


if __name__ == "__main__":
    unittest.main()
