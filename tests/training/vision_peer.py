#!/usr/bin/env python3
"""Loads exported weights strictly with timm and torchvision, and compares logits with those of the ONNX file of the same checkpoint.

    vision_peer.py check                        # ends with 77 where a package is missing
    vision_peer.py compare MODEL SIDE ONNX TIMM_FOLDER|- TORCHVISION_FILE|-
    vision_peer.py save ARCHITECTURE FOLDER     # a folder of timm with random weights of 7 classes
    vision_peer.py photos FOLDER                # a few images of several sizes
    vision_peer.py views MODEL FILE FOLDER SIDE RESIZED ARRAY MAPS FEATURES  # ten crops, class activation maps, embeddings of them
    vision_peer.py timm_logits FOLDER SIDE ONNX # of such a folder against what fleetrun reads from it
"""
import json
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


def photos(folder):
    torch.manual_seed(3)
    for n, (height, width) in enumerate([(93, 120), (140, 85), (77, 77)]):
        small = torch.rand(1, 3, 9, 9)
        large = torch.nn.functional.interpolate(small, size=(height, width), mode="bicubic").clamp(0, 1)[0]
        torchvision.transforms.functional.to_pil_image(large).save(f"{folder}/{n}.png")


def views(name, file, folder, side, resized, array, maps, features):
    import pathlib

    from PIL import Image
    from torchvision.transforms import functional, v2

    model = torchvision.models.get_model(name, weights=None, num_classes=7)
    model.load_state_dict(torch.load(file, weights_only=True))
    model.eval()
    got, embeddings = numpy.load(array), numpy.load(features)
    resize = v2.Resize(resized, v2.InterpolationMode.BICUBIC)
    kept = {}
    model.layer4.register_forward_hook(lambda _, __, output: kept.update(map=output))
    for n, path in enumerate(sorted(pathlib.Path(folder).iterdir())):
        image = resize(Image.open(path).convert("RGB"))

        def tensor(crop):
            return functional.normalize(functional.to_tensor(crop), [0.5, 0.4, 0.3], [0.2, 0.3, 0.4])

        ten = torch.stack([tensor(crop) for crop in v2.TenCrop(side)(image)])
        wanted = logits(model, ten).softmax(1).mean(0)
        error = (torch.from_numpy(got[n]) - wanted).abs().max()
        if not error < 1e-5:
            sys.exit(f"ten crops of {path}: probabilities differ by {error:.1e}")
        out = model(tensor(functional.center_crop(image, [side, side]))[None])[0]
        wanted = kept["map"].mean((2, 3))[0].detach()
        error = (torch.from_numpy(embeddings[n]) - wanted).abs().max() / wanted.abs().max()
        if not error < 1e-5:
            sys.exit(f"the embedding of {path} differs by {error:.1e} of the largest")
        gradient, = torch.autograd.grad(out.max(), kept["map"])
        map_ = torch.relu((gradient.mean((2, 3), keepdim=True) * kept["map"]).sum(1, keepdim=True))
        map_ = torch.nn.functional.interpolate(map_, size=(side, side), mode="bilinear", align_corners=False)[0, 0]
        picture = numpy.asarray(Image.open(f"{maps}/{path.name}")).astype(float) / 255
        error = numpy.abs(picture - (map_ / map_.max().clamp_min(1e-30)).detach().numpy()).max()
        if not error < 0.6 / 255:
            sys.exit(f"the class activation map of {path} differs by {error * 255:.2f} of 255")
    print(f"{name}: ten crops, class activation maps and embeddings of {n + 1} images")


if sys.argv[1] == "photos":
    photos(sys.argv[2])
elif sys.argv[1] == "views":
    views(*sys.argv[2:5], int(sys.argv[5]), int(sys.argv[6]), *sys.argv[7:10])
elif sys.argv[1] == "compare":
    compare(sys.argv[2], int(sys.argv[3]), *sys.argv[4:7])
elif sys.argv[1] == "save":
    model = randomize(timm.create_model(sys.argv[2], num_classes=7))
    timm.models.save_for_hf(model, sys.argv[3], safe_serialization=True)
elif sys.argv[1] == "timm_logits":
    side = int(sys.argv[3])
    x = images(side)
    with open(f"{sys.argv[2]}/config.json") as file:
        own = json.load(file)["pretrained_cfg"]
    how = {"img_size": side} if own.get("fixed_input_size") and own["input_size"][1] != side else {}
    model = timm.create_model(f"local-dir:{sys.argv[2]}", pretrained=True, **how)
    expect_close(onnx_logits(sys.argv[4], x), logits(model, x), sys.argv[2])
