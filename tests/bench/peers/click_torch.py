"""PyTorch's training step of DeepFM for deepfm.py: THREADS ROUNDS. Batches of 512 rows of Criteo's shape (13 numbers, 26 ids of
1,000,001); EmbeddingBag with sparse gradients, Adagrad. Prints "torch VERSION step SECONDS loss LOSS": the median of the rounds by the clock."""
import math
import statistics
import sys
import time
import warnings

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"SKIP: {error.name} is not installed")
    sys.exit(0)

warnings.simplefilter("ignore")
threads, rounds = int(sys.argv[1]), int(sys.argv[2])
BATCH, SLOTS, DENSE, IDS, DIM, BATCHES = 512, 26, 13, 1000001, 9, 8
torch.set_num_threads(threads)
torch.manual_seed(1)


class DeepFm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(IDS, DIM, mode="sum", sparse=True)
        self.first_order = nn.EmbeddingBag(IDS, 1, mode="sum", sparse=True)
        nn.init.uniform_(self.embedding.weight, -0.01, 0.01)
        nn.init.uniform_(self.first_order.weight, -0.01, 0.01)
        self.dense_embedding = nn.Parameter(torch.empty(DENSE, DIM).uniform_(-0.01, 0.01))
        self.dense_first_order = nn.Linear(DENSE, 1, bias=False)
        self.bias = nn.Parameter(torch.zeros(1))
        self.deep = nn.Sequential(nn.Linear((SLOTS + DENSE) * DIM, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(),
                                  nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 1))

    def forward(self, ids, dense):
        rows = self.embedding(ids.view(-1, 1)).view(BATCH, SLOTS, DIM)
        fields = torch.cat([rows, dense[:, :, None] * self.dense_embedding], 1)
        pairs = (fields.sum(1) ** 2 - (fields**2).sum(1)).sum(1, keepdim=True) / 2
        return self.deep(fields.flatten(1)) + pairs + self.first_order(ids) + self.dense_first_order(dense) + self.bias


def make_batch():
    rank = torch.exp(torch.rand(BATCH, SLOTS, dtype=torch.float64) * math.log(1e6)).long()
    ids = (rank * 7919 + torch.arange(SLOTS) * 38461) % IDS
    return ids, torch.rand(BATCH, DENSE), (torch.rand(BATCH, 1) < 0.25).float()


model = DeepFm()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
batches = [make_batch() for _ in range(BATCHES)]


def step(number):
    ids, dense, label = batches[number % BATCHES]
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.binary_cross_entropy_with_logits(model(ids, dense), label)
    loss.backward()
    optimizer.step()
    return loss


for number in range(3):
    step(number)
seconds = []
for number in range(rounds):
    begin = time.perf_counter()
    loss = step(number)
    seconds.append(time.perf_counter() - begin)
version = torch.__version__.split("+")[0]
print(f"torch {version} step {statistics.median(seconds):.6f} loss {loss.item():.4f}")
