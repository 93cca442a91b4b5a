"""Values that follow from a name, for the scripts that make golden files: nothing drawn needs to be stored.

tests/golden/golden.h makes the same in C++.
"""
MASK = 2**64 - 1


def fnv1a(text):
    """FNV-1a in 64 bits: where the draws of a tensor of this name begin."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def splitmix64(value):
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draws(name, count):
    """splitmix64(fnv1a(name) + i) for i below count, as an array of numpy."""
    import numpy

    with numpy.errstate(over="ignore"):
        z = numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(fnv1a(name)) + numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return z ^ (z >> numpy.uint64(31))
