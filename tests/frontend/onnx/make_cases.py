#!/usr/bin/env python3
"""Writes the backend test cases of the package onnx: a folder a case, KIND/NAME, with the model, its data sets and the tolerances.

The node cases are made by the package's own generator; the other sets lie in the package.
"""

import argparse
import os
import shutil

import onnx
import onnx.backend.test
from onnx.backend.test import cmd_tools
from onnx.backend.test.case.node import collect_testcases as collect_node_cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    folder = parser.parse_args().folder
    stamp = os.path.join(folder, onnx.__version__)
    if os.path.exists(stamp):
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    all_cases = collect_node_cases()
    cmd_tools.model_test.collect_testcases = lambda: all_cases  # the generator's loop, over the cases of nodes
    cmd_tools.generate_data(argparse.Namespace(output=folder))
    for case in all_cases:
        with open(os.path.join(folder, case.kind, case.name, "tolerance"), "w") as f:
            f.write(f"{case.rtol} {case.atol}\n")
    data = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data")
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        shutil.copytree(os.path.join(data, kind), os.path.join(folder, kind), dirs_exist_ok=True)
    open(stamp, "w").close()


if __name__ == "__main__":
    main()
