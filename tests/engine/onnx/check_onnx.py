#!/usr/bin/env python3
"""Checks an ONNX file with onnx.checker and runs it with onnxruntime.

usage: check_onnx.py FILE IMAGES LOGITS TOLERANCE

IMAGES and LOGITS are float32 values, three samples each. Ends with 1, and says why, where the file is not valid or its
outputs differ from LOGITS by more than TOLERANCE of the largest, for three samples or for the first one alone.
"""
import sys

import numpy
import onnx
import onnxruntime

path, images, logits, tolerance = sys.argv[1:]
onnx.checker.check_model(path, full_check=True)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
(image,) = session.get_inputs()
assert image.name == "image" and image.shape[0] == "batch", (image.name, image.shape)
given = numpy.fromfile(images, "<f4").reshape([3] + image.shape[1:])
wanted = numpy.fromfile(logits, "<f4").reshape(3, -1)
for count in (3, 1):
    (got,) = session.run(["logits"], {"image": given[:count]})
    error = float(numpy.abs(got - wanted[:count]).max() / numpy.abs(wanted).max())
    print(f"{count} samples: largest difference {error:.2g} of the largest value")
    if not error <= float(tolerance):
        sys.exit(1)
