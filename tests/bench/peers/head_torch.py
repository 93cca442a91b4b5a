"""PyTorch's head and loss, forward and backward, for head.py: ROWS DEPTH CLASSES float32|bfloat16 ROUNDS. As transformers computes
it: logits in the type of hidden, the loss of their float32 copy. Prints "torch VERSION seconds SECONDS peak BYTES": the median of the
processor's seconds, and the growth of the process's memory while it runs."""
import resource
import statistics
import sys
import time

try:
    import torch
except ImportError as error:
    print(f"SKIP: {error.name} is not installed")
    sys.exit(0)

rows, depth, classes = map(int, sys.argv[1:4])
dtype, rounds = getattr(torch, sys.argv[4]), int(sys.argv[5])


def values(count):
    return ((torch.arange(count) * 7919 % 1013).float() / 5000 - 0.1).to(dtype)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


before = peak()
hidden = values(rows * depth).view(rows, depth).requires_grad_()
head = values(classes * depth).view(classes, depth).requires_grad_()
labels = torch.arange(rows) * 7919 % classes


def step():
    hidden.grad = head.grad = None
    logits = torch.nn.functional.linear(hidden, head)
    torch.nn.functional.cross_entropy(logits.float(), labels).backward()


step()
grown = peak() - before
seconds = []
for _ in range(rounds):
    begin = time.process_time()
    step()
    seconds.append(time.process_time() - begin)
print(f"torch {torch.__version__.split('+')[0]} seconds {statistics.median(seconds):.6f} peak {grown}")
