// One pass over memory adds up and counts the first digit of each magnitude. Two passes over v
// count the other digits, after which the k-th largest is known; one more counts the elements above
// it in each chunk, and the last one writes them.
#include <cstring>

#include "backend/cuda/launch.h"
#include "backend/cuda/tables.h"
#include "ops/dgc.h"

namespace fleet {
namespace {

using cuda::Chunk;
using cuda::kBlock;

constexpr int kBins = 2048;
constexpr int kBinsEach = kBins / kBlock;  // per thread

// A digit of a magnitude's 31 bits.
struct Digit {
  int shift, bits;
};
constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};

struct Tensor {
  const float *parameter, *gradient, *scale;
  float *velocity, *residual;
  int32_t* encoded;
  int32_t sent, first_chunk, chunks;
  float decay;
};

// Per tensor: the digits found so far, and the rank of the k-th largest among elements with these
// digits.
struct Found {
  uint32_t digits, rank;
};

// Per chunk: elements above the k-th largest and equal to it; later, those of the chunks before it.
struct Counts {
  uint32_t above, equal;
};

struct Rule {
  float factor, momentum;
  bool nesterov;
};

__device__ uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
__device__ uint32_t magnitude(float x) { return bits_of(x) & 0x7fffffffu; }
__device__ int smaller(int a, int b) { return a < b ? a : b; }

__device__ void clear(uint32_t* bins) {
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kBlock) bins[i] = 0;
  cuda::block_barrier();
}

__device__ void add_to(uint32_t* total, const uint32_t* bins) {
  cuda::block_barrier();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kBlock) {
    if (bins[i] > 0) cuda::atomic_add(total + i, bins[i]);
  }
}

__global__ void clear_histograms(int64_t count, uint32_t* bins) {
  const int64_t i = cuda::thread_index();
  if (i < count) bins[i] = 0;
}

__global__ void accumulate(const Chunk* chunks, const Tensor* tensors, Rule rule,
                           uint32_t* histograms) {
  __shared__ uint32_t bins[kBins];
  clear(bins);
  const Chunk chunk = chunks[blockIdx.x];
  const Tensor tensor = tensors[chunk.tensor];
  const float factor = tensor.scale ? rule.factor * *tensor.scale : rule.factor;
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    const int64_t at = chunk.begin + i;
    float d = tensor.gradient[at] * factor;
    if (tensor.decay != 0) d += tensor.decay * tensor.parameter[at];
    float u = tensor.velocity[at], v = tensor.residual[at];
    u = rule.nesterov ? rule.momentum * (u + d) : rule.momentum * u + d;
    v = v + u + (rule.nesterov ? d : 0.0f);
    tensor.velocity[at] = u;
    tensor.residual[at] = v;
    cuda::atomic_add(bins + (magnitude(v) >> kDigits[0].shift), 1);
  }
  add_to(histograms + static_cast<int64_t>(chunk.tensor) * kBins, bins);
}

__global__ void count_digits(const Chunk* chunks, const Tensor* tensors, const Found* found,
                             Digit digit, uint32_t* histograms) {
  __shared__ uint32_t bins[kBins];
  clear(bins);
  const Chunk chunk = chunks[blockIdx.x];
  const float* residual = tensors[chunk.tensor].residual + chunk.begin;
  const uint32_t before = found[chunk.tensor].digits, mask = (1u << digit.bits) - 1;
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    const uint32_t digits = magnitude(residual[i]) >> digit.shift;
    if (digits >> digit.bits == before) cuda::atomic_add(bins + (digits & mask), 1);
  }
  add_to(histograms + static_cast<int64_t>(chunk.tensor) * kBins, bins);
}

// One block per tensor: finds the digit of its k-th largest. Clears the histogram.
__global__ void choose_digit(const Tensor* tensors, Digit digit, bool first, uint32_t* histograms,
                             Found* found) {
  __shared__ uint32_t sums[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  uint32_t* bins = histograms + static_cast<int64_t>(blockIdx.x) * kBins;
  uint32_t sum = 0;
  for (int i = 0; i < kBinsEach; ++i) sum += bins[thread * kBinsEach + i];
  sums[thread] = sum;
  cuda::block_barrier();
  if (thread == 0) {
    Found own = found[blockIdx.x];
    if (first) own = {0, static_cast<uint32_t>(tensors[blockIdx.x].sent)};
    int part = kBlock - 1;
    for (; part > 0 && own.rank > sums[part]; --part) own.rank -= sums[part];
    int bin = part * kBinsEach + kBinsEach - 1;
    for (; bin > part * kBinsEach && own.rank > bins[bin]; --bin) own.rank -= bins[bin];
    own.digits = own.digits << digit.bits | static_cast<uint32_t>(bin);
    found[blockIdx.x] = own;
  }
  cuda::block_barrier();
  for (int i = 0; i < kBinsEach; ++i) bins[thread * kBinsEach + i] = 0;
}

__global__ void count_chunks(const Chunk* chunks, const Tensor* tensors, const Found* found,
                             Counts* counts) {
  __shared__ uint32_t above, equal;
  if (threadIdx.x == 0) above = equal = 0;
  cuda::block_barrier();
  const Chunk chunk = chunks[blockIdx.x];
  const float* residual = tensors[chunk.tensor].residual + chunk.begin;
  const uint32_t kth = found[chunk.tensor].digits;
  uint32_t more = 0, same = 0;
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    const uint32_t number = magnitude(residual[i]);
    more += number > kth;
    same += number == kth;
  }
  if (more > 0) cuda::atomic_add(&above, more);
  if (same > 0) cuda::atomic_add(&equal, same);
  cuda::block_barrier();
  if (threadIdx.x == 0) counts[blockIdx.x] = {above, equal};
}

// Exclusive prefix sum of the counts of a block's threads, beginning with `start`.
__device__ void sum_counts(Counts* counts, Counts start) {
  cuda::block_barrier();
  if (threadIdx.x == 0) {
    for (int i = 0; i < kBlock; ++i) {
      const Counts own = counts[i];
      counts[i] = start;
      start.above += own.above;
      start.equal += own.equal;
    }
  }
  cuda::block_barrier();
}

// One block per tensor: exclusive prefix sum of the counts of its chunks.
__global__ void sum_chunks(const Tensor* tensors, Counts* counts) {
  __shared__ Counts sums[kBlock];
  const Tensor tensor = tensors[blockIdx.x];
  const int thread = static_cast<int>(threadIdx.x), each = (tensor.chunks + kBlock - 1) / kBlock;
  const int begin = smaller(tensor.chunks, thread * each),
            end = smaller(tensor.chunks, begin + each);
  Counts* own = counts + tensor.first_chunk;
  Counts sum{0, 0};
  for (int i = begin; i < end; ++i) {
    sum.above += own[i].above;
    sum.equal += own[i].equal;
  }
  sums[thread] = sum;
  sum_counts(sums, {0, 0});
  sum = sums[thread];
  for (int i = begin; i < end; ++i) {
    const Counts counted = own[i];
    own[i] = sum;
    sum.above += counted.above;
    sum.equal += counted.equal;
  }
}

// Writes indices and values of the selected elements, ordered by index: each thread has a stretch.
__global__ void take_out(const Chunk* chunks, const Tensor* tensors, const Found* found,
                         const Counts* counts) {
  __shared__ Counts sums[kBlock];
  const Chunk chunk = chunks[blockIdx.x];
  const Tensor tensor = tensors[chunk.tensor];
  const Found kth = found[chunk.tensor];
  const int thread = static_cast<int>(threadIdx.x), each = (chunk.count + kBlock - 1) / kBlock;
  const int begin = smaller(chunk.count, thread * each), end = smaller(chunk.count, begin + each);
  float* residual = tensor.residual + chunk.begin;
  Counts own{0, 0};
  for (int i = begin; i < end; ++i) {
    const uint32_t number = magnitude(residual[i]);
    own.above += number > kth.digits;
    own.equal += number == kth.digits;
  }
  sums[thread] = own;
  sum_counts(sums, counts[blockIdx.x]);
  if (own.above + own.equal == 0) return;
  uint32_t equal = sums[thread].equal;
  uint32_t to = sums[thread].above + (equal < kth.rank ? equal : kth.rank);
  for (int i = begin; i < end; ++i) {
    const uint32_t number = magnitude(residual[i]);
    if (number < kth.digits || (number == kth.digits && equal++ >= kth.rank)) continue;
    tensor.encoded[to] = static_cast<int32_t>(chunk.begin + i);
    tensor.encoded[tensor.sent + to] = static_cast<int32_t>(bits_of(residual[i]));
    residual[i] = 0;
    tensor.velocity[chunk.begin + i] = 0;
    ++to;
  }
}

struct Tables {
  std::vector<Chunk> chunks;
  std::vector<Tensor> tensors;
  explicit Tables(const KernelContext& context) {
    const auto& counts = context.attributes().integers("counts");
    const auto& decays = context.attributes().numbers("weight_decays");
    int32_t* encoded = context.outputs[0].as<int32_t>();
    for (int i = 0; i < static_cast<int>(counts.size()); ++i) {
      const Argument& parameter = context.inputs[DgcGroups::parameter(i)];
      Tensor tensor{.parameter = parameter.as<const float>(),
                    .gradient = context.inputs[DgcGroups::gradient(i)].as<const float>(),
                    .scale = context.inputs[DgcGroups::scale(i)].as<const float>(),
                    .velocity = context.outputs[DgcGroups::velocity_out(i)].as<float>(),
                    .residual = context.outputs[DgcGroups::residual_out(i)].as<float>(),
                    .encoded = encoded,
                    .sent = static_cast<int32_t>(counts[i]),
                    .first_chunk = static_cast<int32_t>(chunks.size()),
                    .chunks = 0,
                    .decay = static_cast<float>(decays[i])};
      FLEET_CHECK(context.inputs[DgcGroups::velocity(i)].data == tensor.velocity &&
                      context.inputs[DgcGroups::residual(i)].data == tensor.residual,
                  "dgc_select works in place");
      cuda::append_chunks(chunks, i, parameter.layout.elements());
      tensor.chunks = static_cast<int32_t>(chunks.size()) - tensor.first_chunk;
      tensors.push_back(tensor);
      encoded += 2 * counts[i];
    }
  }
};

void layouts(LayoutQuery& query) {
  DgcGroups::lay_out(query);
  const DgcGroups groups(query.input_count());
  int64_t chunks = 0;
  for (int i = 0; i < groups.count; ++i) {
    chunks += cuda::chunks_of(query.needed(DgcGroups::parameter(i)).elements());
  }
  query.workspace(groups.count * (kBins * sizeof(uint32_t) + sizeof(Found)) +
                  static_cast<size_t>(chunks) * sizeof(Counts));
}

std::unique_ptr<Kernel> make_select(KernelContext& context) {
  const Tables host(context);
  const cuda::Table<Chunk> chunks(context.device, host.chunks);
  const cuda::Table<Tensor> tensors(context.device, host.tensors);
  const Rule rule{.factor = static_cast<float>(context.attributes().number("gradient_factor")),
                  .momentum = static_cast<float>(context.attributes().number("momentum")),
                  .nesterov = context.attributes().boolean("use_nesterov")};
  auto* histograms = static_cast<uint32_t*>(context.workspace);
  const int64_t bins = tensors.size() * kBins;
  auto* found = reinterpret_cast<Found*>(histograms + bins);
  auto* counts = reinterpret_cast<Counts*>(found + tensors.size());
  return make_kernel([=](Stream& stream) {
    const cudaStream_t on = cuda::stream_of(stream);
    const unsigned each = cuda::blocks_for(tensors.size(), 1);
    const unsigned all = cuda::blocks_for(chunks.size(), 1);
    cuda::launch(clear_histograms, cuda::blocks_for(bins), kBlock, 0, on, bins, histograms);
    cuda::launch(accumulate, all, kBlock, 0, on, chunks.data(), tensors.data(), rule, histograms);
    for (const Digit& digit : kDigits) {
      const bool first = &digit == kDigits;
      if (!first) {
        cuda::launch(count_digits, all, kBlock, 0, on, chunks.data(), tensors.data(), found, digit,
                     histograms);
      }
      cuda::launch(choose_digit, each, kBlock, 0, on, tensors.data(), digit, first, histograms,
                   found);
    }
    cuda::launch(count_chunks, all, kBlock, 0, on, chunks.data(), tensors.data(), found, counts);
    cuda::launch(sum_chunks, each, kBlock, 0, on, tensors.data(), counts);
    cuda::launch(take_out, all, kBlock, 0, on, chunks.data(), tensors.data(), found, counts);
  });
}

}  // namespace

FLEET_KERNEL(cuda, dgc_select) {
  def.layouts = layouts;
  def.create = make_select;
}

}  // namespace fleet
