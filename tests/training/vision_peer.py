#!/usr/bin/env python3
"""Loads exported weights strictly with timm and torchvision, and compares logits with those of the ONNX file of the same checkpoint.

    vision_peer.py check                        # ends with 77 where a package is missing
    vision_peer.py compare MODEL SIDE ONNX TIMM_FOLDER|- TORCHVISION_FILE|-
    vision_peer.py save ARCHITECTURE FOLDER     # a folder of timm with random weights of 7 classes
    vision_peer.py timm_logits FOLDER SIDE ONNX # of such a folder against what fleetrun reads from it
"""
import sys

try:
    import numpy
    import onnxruntime
    import timm
    import torch
    import torchvision
except ImportError as error:
    print(f"SKIP: {error}; FLEET_TORCH_PYTHON names a python that has torch, timm, torchvision and onnxruntime")
    sys.exit(77)


def images(side):
    torch.manual_seed(1)
    return torch.randn(2, 3, side, side)


def expect_close(got, wanted, what):
    error = (got - wanted).abs().max() / wanted.abs().max()
    if not error < 1e-4:
        sys.exit(f"{what}: logits differ by {error:.2e} of the largest")
    print(f"{what}: {error:.1e}")


def onnx_logits(path, x):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(["logits"], {"image": x.numpy().astype(numpy.float32)})[0])


def logits(model, x):
    with torch.no_grad():
        return model.eval()(x)


def compare(name, side, onnx, folder, file):
    x = images(side)
    wanted = onnx_logits(onnx, x)
    if folder != "-":
        model = timm.create_model(f"local-dir:{folder}", pretrained=True)
        expect_close(logits(model, x), wanted, f"timm {name}")
        config = timm.data.resolve_model_data_config(model)
        if [round(value, 3) for value in config["mean"]] != [0.5, 0.4, 0.3] or config["interpolation"] != "bicubic":
            sys.exit(f"timm resolves {config}")
    if file != "-":
        if file.endswith(".safetensors"):
            from safetensors.torch import load_file
            state = load_file(file)
        else:
            state = torch.load(file, weights_only=True)
        model = torchvision.models.get_model(name, weights=None, num_classes=wanted.shape[1])
        model.load_state_dict(state)
        expect_close(logits(model, x), wanted, f"torchvision {name}")


def randomize(model):
    torch.manual_seed(2)
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(torch.rand_like(value) * 0.5 + 0.5 if key.endswith("running_var") else torch.randn_like(value) * 0.05)
    return model


if sys.argv[1] == "compare":
    compare(sys.argv[2], int(sys.argv[3]), *sys.argv[4:7])
elif sys.argv[1] == "save":
    model = randomize(timm.create_model(sys.argv[2], num_classes=7))
    timm.models.save_for_hf(model, sys.argv[3], safe_serialization=True)
elif sys.argv[1] == "timm_logits":
    x = images(int(sys.argv[3]))
    model = timm.create_model(f"local-dir:{sys.argv[2]}", pretrained=True)
    expect_close(onnx_logits(sys.argv[4], x), logits(model, x), sys.argv[2])
