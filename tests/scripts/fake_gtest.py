#!/usr/bin/env python3
"""Speaks as a gtest program does. Its tests do what their names say."""
import os
import sys
import time

TESTS = ["Good.One", "Bad.Fails", "Bad.Crashes", "Good.Two", "Bad.Hangs", "Bad.BreaksTheGpu", "Good.Three", "Types/0.Good",
         "Good.Skips"]
flags = dict(word.split("=", 1) if "=" in word else (word, "") for word in sys.argv[1:])
if "--gtest_list_tests" in flags:
    print("Running main() from fake_gtest.py")
    suite = None
    for test in TESTS:
        head, name = test.split(".")
        if head != suite:
            print(head + "." + ("  # TypeParam = float" if "/" in head else ""))
        suite = head
        print("  " + name)
    sys.exit(0)
with open(flags["--gtest_flagfile"]) as file:
    chosen = dict(line.strip().split("=", 1) for line in file)["--gtest_filter"].split(":")
broken = failed = False
for test in chosen:
    print(f"[ RUN      ] {test}", flush=True)
    if test == "Bad.Crashes":
        os.abort()
    if test == "Bad.Hangs":
        time.sleep(600)
    if test == "Bad.BreaksTheGpu":
        broken = True
        print("device.cc:12: an illegal memory access was encountered", flush=True)
    if test == "Good.Skips":
        print("no such card\n[  SKIPPED ] Good.Skips (0 ms)", flush=True)
    elif test == "Bad.Fails" or broken:
        failed = True
        print(f"x.cc:1: Failure\n[  FAILED  ] {test}, where TypeParam = float (0 ms)", flush=True)
        time.sleep(600 if broken else 0)  # until it is stopped
    else:
        print(f"[       OK ] {test} (0 ms)", flush=True)
print(f"[  FAILED  ] {chosen[0]}" if failed else "[  PASSED  ]")
sys.exit(1 if failed else 0)
