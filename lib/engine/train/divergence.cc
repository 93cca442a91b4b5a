#include "train/divergence.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/hash.h"

namespace fleet {
namespace {

// The hashes of all ranks, by rank. A double holds 32 bits exactly.
std::vector<std::vector<uint64_t>> gather(RankCoordinator& control,
                                          const std::vector<uint64_t>& own) {
  std::vector<double> halves;
  for (const uint64_t hash : own) {
    halves.push_back(static_cast<double>(hash >> 32));
    halves.push_back(static_cast<double>(hash & 0xffffffffu));
  }
  std::vector<std::vector<uint64_t>> all;
  for (const std::vector<double>& values : control.by_rank(halves)) {
    std::vector<uint64_t>& hashes = all.emplace_back();
    for (size_t i = 0; i < values.size(); i += 2) {
      hashes.push_back(static_cast<uint64_t>(values[i]) << 32 |
                       static_cast<uint64_t>(values[i + 1]));
    }
  }
  return all;
}

uint64_t hash_of(const std::vector<uint64_t>& hashes) {
  return hash_bytes(hashes.data(), hashes.size() * sizeof(uint64_t));
}

// The ranks whose value differs from the majority's; empty if no value has a majority.
std::vector<int> minority(const std::vector<uint64_t>& by_rank) {
  std::map<uint64_t, size_t> counts;
  for (const uint64_t hash : by_rank) ++counts[hash];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (2 * most->second <= by_rank.size()) return {};
  std::vector<int> odd;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank] != most->first) odd.push_back(static_cast<int>(rank));
  }
  return odd;
}

std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return "rank " + std::to_string(ranks[0]) + " has";
  std::string text = "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text + " have";
}

}  // namespace

std::vector<uint64_t> hash_values(Executor& executor, const Device& device,
                                  const std::vector<VarId>& vars) {
  executor.synchronize();
  std::vector<uint64_t> hashes;
  std::vector<unsigned char> copy;
  for (const VarId id : vars) {
    const Argument argument = executor.argument(id);
    const void* data = argument.data;
    size_t bytes = argument.bytes();
    if (device.runs_beside_host()) {
      const Var& var = executor.program().var(id);
      bytes = var.shape.elements() * size_of(var.dtype);
      copy.resize(bytes);
      executor.read(id, copy);
      data = copy.data();
    }
    hashes.push_back(hash_bytes(data, bytes));
  }
  return hashes;
}

DivergenceCheck::DivergenceCheck(Executor& executor, const Device& device, RankCoordinator& control,
                                 JobRank rank)
    : executor_(executor),
      device_(device),
      control_(control),
      rank_(rank),
      drifts_(weights_drift(executor.program())) {
  const Program& program = executor.program();
  for (const VarId id : shared_vars(program)) {
    if (program.var(id).kind == VarKind::kParameter) parameters_.push_back(id);
  }
}

void DivergenceCheck::compare_before_end(int64_t steps, const Suspicion& suspicion, bool apart) {
  if (!drifts_ && !apart) compare(steps, suspicion);
}

void DivergenceCheck::compare(int64_t steps, const Suspicion& suspicion) {
  if (rank_.world == 1) return;
  const std::vector<uint64_t> own = hash_values(executor_, device_, parameters_);
  std::vector<uint64_t> by_rank;
  for (const auto& hashes : gather(control_, {hash_of(own)})) by_rank.push_back(hashes[0]);
  if (std::count(by_rank.begin(), by_rank.end(), by_rank[0]) ==
      static_cast<std::ptrdiff_t>(by_rank.size())) {
    return;
  }
  std::vector<int> odd = minority(by_rank);
  if (by_rank.size() == 2 && suspicion.rank >= 0) odd = {suspicion.rank};
  const auto all = gather(control_, own);
  size_t first = 0, different = 0;
  for (size_t i = own.size(); i-- > 0;) {
    const bool same = std::all_of(all.begin(), all.end(),
                                  [&](const auto& hashes) { return hashes[i] == all[0][i]; });
    if (!same) first = i, ++different;
  }
  const std::string which = executor_.program().var(parameters_[first]).name + " (" +
                            std::to_string(different) + " of " + std::to_string(own.size()) +
                            " parameters)";
  const std::string others = by_rank.size() == 2 ? "the other rank" : "most ranks";
  const std::string found = suspicion.what.empty() ? "" : ", and " + suspicion.what;
  const bool mine = odd.empty() || std::count(odd.begin(), odd.end(), rank_.rank) > 0;
  throw Error(mine ? ErrorCode::kInternal : ErrorCode::kPeerLost,
              (odd.empty() ? "ranks have different values in "
                           : ranks_text(odd) + " different values from " + others + " in ") +
                  which + " after " + std::to_string(steps) + " steps" + found,
              {},
              "memory or a device may be damaged, or machines may be of different kinds: check "
              "them, and resume from a checkpoint (train.compare_ranks_every)");
}

}  // namespace fleet
