"""Operations and memory traffic of a ResNet-50 training step, by layer, against the limits of a card.

Counts operations of the convolutions and the classifier (forward, data gradient, weight gradient; a multiply and an add are
two) and bytes of activations in and out of the card's memory. Weights and their update are left out: under 1 % from batch 32 up.
Three ways to run batch normalisation, each with less traffic (O: elements of a layer's output):

  plain     convolution, statistics, apply, ReLU and the residual sum are separate passes
  fused     apply, sum and ReLU in one pass, forward and backward; ReLU's mask is kept as bits
  patterns  the convolution emits the statistics; apply and ReLU are done while the next convolution reads; backward, the data
            gradient emits the sums that batch normalisation's gradient needs
"""
from dataclasses import dataclass


@dataclass
class Layer:
    name: str
    inputs: int  # channels
    outputs: int
    size: int  # of the kernel
    stride: int
    height: int  # of the square output
    relu: bool  # after its batch norm, without a sum before it
    add: bool  # its batch norm is followed by the residual sum and ReLU

    @property
    def out(self):
        return self.outputs * self.height**2

    @property
    def taken(self):
        return self.inputs * (self.height * self.stride) ** 2

    @property
    def operations(self):
        return 2 * self.out * self.inputs * self.size**2


def resnet50(image=224):
    layers = [Layer("conv1", 3, 64, 7, 2, image // 2, True, False)]
    inputs, height = 64, image // 4
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 1):
        for block in range(count):
            stride = 2 if block == 0 and stage > 1 else 1
            name, before, height = f"layer{stage}.{block}", height, height // stride
            layers.append(Layer(f"{name}.conv1", inputs, width, 1, 1, before, True, False))
            layers.append(Layer(f"{name}.conv2", width, width, 3, stride, height, True, False))
            layers.append(Layer(f"{name}.conv3", width, 4 * width, 1, 1, height, False, True))
            if block == 0:
                layers.append(Layer(f"{name}.downsample", inputs, 4 * width, 1, stride, height, False, False))
            inputs = 4 * width
    return layers


MASK = 1 / 16  # one bit per element of two bytes


def passes(layer, way):
    """(forward, backward): elements moved by one image's layer with its batch norm, ReLU and sum."""
    o, i = layer.out, layer.taken
    first = layer.name == "conv1"
    forward = i + o  # the convolution
    backward = (o + i) + (0 if first else o + i)  # weight gradient, data gradient
    if way == "plain":
        forward += 3 * o + (2 * o if layer.relu else 0) + (5 * o if layer.add else 0)  # statistics, apply; ReLU; sum and ReLU
        backward += 5 * o + (3 * o if layer.relu or layer.add else 0)
        backward += 3 * o if layer.add else 0  # the two gradients that meet at the block's input
        return forward, backward
    mask = MASK * o if layer.relu or layer.add else 0
    if way == "fused":
        forward += 3 * o + mask + (o if layer.add else 0)
        backward += 5 * o + 2 * mask + (2 * o if layer.add else 0)
        return forward, backward
    # patterns: outputs that end in a sum are still written once; the reader applies the others.
    forward += (3 * o + mask) if layer.add else 0
    backward += 3 * o + mask + (2 * o if layer.add else 0)
    return forward, backward


def totals(way, bytes_an_element=2, image=224):
    """(operations, bytes) of one image's training step."""
    operations = moved = 0
    for layer in resnet50(image):
        forward, backward = passes(layer, way)
        operations += layer.operations * (2 if layer.name == "conv1" else 3)
        moved += (forward + backward) * bytes_an_element
    pool = 64 * (image // 2) ** 2
    moved += (pool * 1.25 + pool * 1.25) * bytes_an_element  # max pooling and its gradient
    operations += 3 * 2 * 2048 * 1000
    return operations, moved


def bound(way, batch, operations_per_s, bytes_per_s, image=224):
    """Lower bound of a step in seconds: every layer at the worse of its two limits."""
    seconds = 0
    for layer in resnet50(image):
        forward, backward = passes(layer, way)
        times = 2 if layer.name == "conv1" else 3
        computing = layer.operations * times * batch / operations_per_s
        seconds += max(computing, (forward + backward) * 2 * batch / bytes_per_s)
    return seconds


# Measured dense float16 products (operations a second) and copies (bytes a second, read and written), where PyTorch cannot
# measure them in the same run: data sheets' figures times 0.8 and 0.9.
NOMINAL = {"H200": (790e12, 4.3e12), "H100": (790e12, 3.0e12), "A100": (250e12, 1.8e12), "V100": (100e12, 0.8e12)}

def pointwise(batch, bytes_per_s, operations_per_s):
    """[layer, megabytes, microseconds at least, megabytes and microseconds with passes] of each convolution of 1 x 1 in the forward
    pass. It moves its image, result and weights once; passes read the result again, and read and write an image that is the result
    of a batch normalization."""
    rows = []
    for layer in resnet50():
        if layer.size != 1:
            continue
        pixels = batch * layer.height**2
        moved = 2 * (pixels * (layer.inputs + layer.outputs) + layer.inputs * layer.outputs)
        passes = 2 * pixels * (layer.outputs + (2 * layer.inputs if layer.add else 0))
        product = max(moved / bytes_per_s, layer.operations * batch / operations_per_s)
        rows.append([layer.name, moved / 1e6, 1e6 * product, (moved + passes) / 1e6, 1e6 * (product + passes / bytes_per_s)])
    return rows


MEASURE = """
import json, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16); b = torch.randn_like(a)
x = torch.empty(2 << 30, device="cuda", dtype=torch.uint8); y = torch.empty_like(x)
def time(work, times):
    for _ in range(3): work()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times): work()
    end.record(); torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000 / times
product, copy = time(lambda: a @ b, 20), time(lambda: y.copy_(x), 20)
print("RESULT " + json.dumps([2 * 8192**3 / product, 2 * x.numel() / copy]))
"""
