#!/usr/bin/env python3
"""Checks an ONNX file of a text model with onnx.checker and runs it with onnxruntime.

usage: check_text_onnx.py FILE TOLERANCE CASE.json...

A case has "inputs" (names and nested lists of integers) and "outputs" (names and nested lists). Ends with 1, and says why, where the
file is not valid, where its inputs and outputs are others, or where an output differs by more than TOLERANCE of the largest value.
"""
import json
import sys

import numpy
import onnx
import onnxruntime

path, tolerance, cases = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
onnx.checker.check_model(path, full_check=True)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
for case in cases:
    with open(case, encoding="utf-8") as file:
        given = json.load(file)
    for port in session.get_inputs():
        assert port.shape[0] == "batch" and isinstance(port.shape[1], str), (port.name, port.shape)
    inputs = {name: numpy.array(values, "int64") for name, values in given["inputs"].items()}
    wanted = {name: numpy.array(values, "float32") for name, values in given["outputs"].items()}
    assert set(wanted) == {port.name for port in session.get_outputs()}, [port.name for port in session.get_outputs()]
    for name, got in zip(wanted, session.run(list(wanted), inputs)):
        assert got.shape == wanted[name].shape, (name, got.shape, wanted[name].shape)
        error = float(numpy.abs(got - wanted[name]).max() / numpy.abs(wanted[name]).max())
        print(f"{name} {got.shape}: largest difference {error:.2g} of the largest value")
        if not error <= tolerance:
            sys.exit(1)
