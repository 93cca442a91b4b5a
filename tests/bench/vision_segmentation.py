#!/usr/bin/env python3
"""Training input of segmentation on one core: JPEG and PNG mask to a resized, mirrored and cropped pair, against torchvision.

    FLEET_PYTHON=PYTHON scripts/bench.sh vision_segmentation [FOLDER]   # a Python with torch, torchvision and Pillow

In turns: fleetrun (bench_vision_segmentation) and torchvision's recipe on tensors of 8 bits (decode_image(), transforms.v2 with
tv_tensors): shorter side 260 to 1040, flip, crop 480 filled with 0 and 255, normalised. FOLDER holds JPEG files; left out, imagenet_200.tar
of FLEET_SHARED_DATA (../shared/data). Masks are made here: 21 classes by brightness and place, with borders of 255. The median of the
ratios is printed.
"""
# Builds: bench_vision_segmentation
import os
import re
import statistics
import subprocess
import sys
import tarfile
import time

ROUNDS, CLASSES, SIDE = 3, 21, 480
here = os.path.dirname(os.path.abspath(__file__))
build = os.path.join(here, "../../build/release")
program = os.path.join(build, "bin/bench_vision_segmentation")
given = sys.argv[1] if len(sys.argv) > 1 else ""
try:
    import numpy
    import torch
    import torchvision
    from PIL import Image, ImageFilter
    from torchvision import tv_tensors
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2
except ImportError as error:
    print(f"vision_segmentation: skipped: {error.name} is not installed here")
    sys.exit(0)


def mask_of(image):
    """A few areas a picture, as annotators draw them."""
    grey = numpy.asarray(image.convert("L").filter(ImageFilter.GaussianBlur(12)), dtype=numpy.int64)
    labels = (grey // 32 + numpy.arange(grey.shape[0])[:, None] // 160 * 5) % CLASSES
    border = numpy.zeros(labels.shape, bool)
    border[1:] |= labels[1:] != labels[:-1]
    border[:, 1:] |= labels[:, 1:] != labels[:, :-1]
    return Image.fromarray(numpy.where(border, 255, labels).astype(numpy.uint8))


def make_pairs(photographs):
    folder = os.path.join(build, "segmentation_pairs")
    for part in ("images", "masks"):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    for path in photographs:
        stem = os.path.splitext(os.path.basename(path))[0]
        with open(path, "rb") as file, open(os.path.join(folder, "images", stem + ".jpg"), "wb") as to:
            to.write(file.read())
        target = os.path.join(folder, "masks", stem + ".png")
        if not os.path.exists(target):
            mask_of(Image.open(path)).save(target)
    return folder


def photographs():
    folder = given
    if not folder:
        shared = os.environ.get("FLEET_SHARED_DATA", os.path.join(here, "../../../shared/data"))
        archive = os.path.join(shared, "imagenet_200.tar")
        if not os.path.exists(archive):
            print("vision_segmentation: skipped: ../shared/data/imagenet_200.tar is not here; give a folder")
            sys.exit(0)
        folder = os.path.join(build, "segmentation_photographs")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    found = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]
    return sorted(path for path in found if path.lower().endswith((".jpg", ".jpeg")))


os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
torch.set_num_threads(1)
folder = make_pairs(photographs())
pairs = []
for name in sorted(os.listdir(os.path.join(folder, "images"))):
    with open(os.path.join(folder, "images", name), "rb") as image, open(
            os.path.join(folder, "masks", os.path.splitext(name)[0] + ".png"), "rb") as mask:
        pairs.append((image.read(), mask.read()))

fill = {tv_tensors.Image: 0, tv_tensors.Mask: 255}
chain = v2.Compose([
    v2.RandomHorizontalFlip(),
    v2.RandomCrop(SIDE, pad_if_needed=True, fill=fill),
    v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])


def theirs(image, mask):
    image = tv_tensors.Image(decode_image(torch.frombuffer(bytearray(image), dtype=torch.uint8), ImageReadMode.RGB))
    mask = tv_tensors.Mask(decode_image(torch.frombuffer(bytearray(mask), dtype=torch.uint8), ImageReadMode.UNCHANGED)[0])
    side = int(torch.randint(260, 1041, ()))
    return chain(*v2.Resize(side, antialias=True)(image, mask))


def rate():
    start = time.perf_counter()
    for pair in pairs:
        theirs(*pair)
    return len(pairs) / (time.perf_counter() - start)


def ours():
    output = subprocess.run([program, folder, "1"], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"([\d.]+) images/s", output).group(1))


rates = [(ours(), rate()) for _ in range(ROUNDS)]
ratio = statistics.median(a / b for a, b in rates)
print(f"vision_segmentation: ratio {ratio:.2f} (ours {statistics.median(a for a, _ in rates):.0f} images/s, torchvision "
      f"{torchvision.__version__} on tensors {statistics.median(b for _, b in rates):.0f} images/s; {len(pairs)} pairs)")
