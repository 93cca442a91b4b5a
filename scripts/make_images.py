#!/usr/bin/env python3
"""Generates tests/golden/images: small images in many formats, written by Pillow, each with Pillow's decoding of it:
NAME.rgb.png and NAME.grey.png. tests/engine/data/decode_formats_test.cc compares them.

    python3 scripts/make_images.py [FOLDER]
"""
import os
import struct
import sys

from PIL import Image

here = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "images")
folder = sys.argv[1] if len(sys.argv) > 1 else here
os.makedirs(folder, exist_ok=True)
WIDTH, HEIGHT = 37, 21


def picture(seed=0):
    image = Image.new("RGB", (WIDTH, HEIGHT))
    image.putdata([((x * 7 + seed * 50) % 256, (y * 11 + x * y) % 256, (x * x + 3 * y) % 256)
                   for y in range(HEIGHT) for x in range(WIDTH)])
    return image


def expect(name):
    with Image.open(os.path.join(folder, name)) as image:
        image.load()
        for mode, ending in (("RGB", "rgb"), ("L", "grey")):
            # Pillow converts a palette to grey directly; torchvision's loader converts to RGB first, as we do.
            image.convert("RGB").convert(mode).save(os.path.join(folder, f"{name}.{ending}.png"), optimize=True)


def save(name, image, **how):
    image.save(os.path.join(folder, name), **how)
    expect(name)


def raw(name, content):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)
    expect(name)


plain = picture()
clear = plain.convert("RGBA")
clear.putalpha(Image.linear_gradient("L").resize((WIDTH, HEIGHT)))
save("lossless.webp", plain, lossless=True)
save("alpha.webp", clear, lossless=True, exact=True)
save("lossy.webp", plain, quality=80)
save("animated.webp", plain, save_all=True, append_images=[picture(2)], lossless=True, duration=50)

few = plain.quantize(40)
save("palette.gif", few)
save("interlaced.gif", few, interlace=1)
save("animated.gif", plain.quantize(200), save_all=True, append_images=[picture(2).quantize(200)], duration=50)
save("clear.gif", few, transparency=3)
save("grey.gif", plain.convert("L"))
# A frame that covers a part of its screen: 37 x 21 at (5, 3) of 50 x 30.
content = bytearray(open(os.path.join(folder, "interlaced.gif"), "rb").read())
content[6:10] = struct.pack("<HH", 50, 30)
at = content.index(b",\0\0\0\0" + struct.pack("<HH", WIDTH, HEIGHT))
content[at + 1:at + 5] = struct.pack("<HH", 5, 3)
raw("part.gif", bytes(content))

save("rgb.bmp", plain)
save("palette.bmp", plain.quantize(40))
save("grey.bmp", plain.convert("L"))
save("two.bmp", plain.convert("1"))
save("alpha.bmp", clear)


def bitmap(bits, rows, palette=b"", height=HEIGHT, masks=b"", width=WIDTH):
    compression = 3 if masks else 0
    start = 54 + len(masks) + len(palette)
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(rows), 0, 0, len(palette) // 4, 0)
    return b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + header + masks + palette + rows


def rows_of(pixel_bytes, bits):
    stride = (WIDTH * bits + 31) // 32 * 4
    return b"".join(bytes((y * 31 + x * 17 + x * y) % 256 for x in range(WIDTH * bits // 8 + 1)).ljust(stride, b"\0")[:stride]
                    for y in range(HEIGHT))


colours = b"".join(bytes(((i * 16) % 256, (i * 37) % 256, (255 - i * 9) % 256, 0)) for i in range(16))
raw("four_bits.bmp", bitmap(4, rows_of(1, 4), colours))
raw("sixteen_bits.bmp", bitmap(16, rows_of(2, 16)))
raw("five_six_five.bmp", bitmap(16, rows_of(2, 16), masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F)))
raw("thirty_two_bits.bmp", bitmap(32, rows_of(4, 32)))
raw("masks.bmp", bitmap(32, rows_of(4, 32), masks=struct.pack("<III", 0xFF000000, 0xFF0000, 0xFF00)))
raw("top_down.bmp", bitmap(24, rows_of(3, 24), height=-HEIGHT))

save("rgb.tiff", plain)
save("lzw.tiff", plain, compression="tiff_lzw")
save("deflate.tiff", plain, compression="tiff_adobe_deflate")
save("palette.tiff", few)
save("two.tiff", plain.convert("1"), compression="group4")
save("grey.tiff", plain.convert("L"), compression="packbits")
save("alpha.tiff", clear)
save("pages.tiff", plain, save_all=True, append_images=[picture(2)])
save("left_bottom.tiff", plain, tiffinfo={0x112: 8})
