#include "ps/tables/row_index.h"

#include <cstring>

#include "ps/tables/virtual_shards.h"

namespace fleet::ps {
namespace {

constexpr double kMaxLoad = 0.85;
constexpr size_t kGrowth = 32;  // an index grows by 1/kGrowth

}  // namespace

RowIndex::~RowIndex() {
  const size_t blocks = buckets() / kBucketsPerBlock;
  for (size_t at = 0; at < blocks; ++at) {
    arena_.free(directory_.load(std::memory_order_relaxed)[at].load(std::memory_order_relaxed));
  }
}

size_t RowIndex::buckets_for(size_t ids) {
  const auto buckets = static_cast<size_t>(static_cast<double>(ids) / (kWays * kMaxLoad)) + 1;
  return (buckets + kBucketsPerBlock - 1) / kBucketsPerBlock * kBucketsPerBlock;
}

void RowIndex::insert(uint64_t id, uint64_t hash, uint32_t word) {
  if (size_ + 1 > capacity_) {
    // By a block, which buckets_for() adds where it rounds up, or by 1/kGrowth if that is more.
    constexpr size_t kBlock = kBucketsPerBlock * kWays;
    const size_t growth = size_ / kGrowth;
    rebuild(buckets_for(size_ + 1 + (growth > kBlock ? growth - kBlock : 0)), size_);
  }
  place(id, hash, word);
  ++size_;
}

void RowIndex::place(uint64_t id, uint64_t hash, uint32_t word) {
  const size_t buckets = this->buckets();
  for (size_t at = home(hash, buckets);; at = at + 1 == buckets ? 0 : at + 1) {
    Bucket& bucket = *this->bucket(at);
    for (int i = 0; i < kWays; ++i) {
      if (bucket.words[i] != IndexWord::kEmpty) continue;
      bucket.ids[i] = id;
      bucket.words[i] = word;
      return;
    }
    bucket.passed = 1;
  }
}

void RowIndex::rebuild(size_t buckets, size_t size) {
  const size_t old_blocks = this->buckets() / kBucketsPerBlock;
  const size_t blocks = size == 0 && buckets == 0 ? 0 : buckets / kBucketsPerBlock;
  std::vector<Bucket*> old(old_blocks), fresh(blocks);
  for (size_t at = 0; at < old_blocks; ++at) old[at] = bucket(at * kBucketsPerBlock);
  try {
    for (Bucket*& block : fresh) {
      block = static_cast<Bucket*>(arena_.allocate());
      std::memset(static_cast<void*>(block), 0xFF, kBlockBytes);
      for (size_t i = 0; i < kBucketsPerBlock; ++i) block[i].passed = 0;
    }
  } catch (...) {
    for (Bucket* block : fresh) {
      if (block != nullptr) arena_.free(block);
    }
    throw;
  }
  reserve_directory(std::max(blocks, old_blocks));
  std::atomic<Bucket*>* directory = directory_.load(std::memory_order_relaxed);
  for (size_t at = 0; at < blocks; ++at) directory[at].store(fresh[at], std::memory_order_relaxed);
  buckets_.store(buckets, std::memory_order_release);
  size_ = size;
  capacity_ = static_cast<size_t>(static_cast<double>(buckets) * kWays * kMaxLoad);
  for (const Bucket* block : old) {
    for (size_t at = 0; at < kBucketsPerBlock; ++at) {
      for (int i = 0; i < kWays; ++i) {
        if (block[at].words[i] == IndexWord::kEmpty) continue;
        place(block[at].ids[i], mix_id(block[at].ids[i]), block[at].words[i]);
      }
    }
  }
  // Entries behind the end of a smaller index keep their address, for prefetch().
  for (Bucket* block : old) arena_.free(block);
}

void RowIndex::reserve_directory(size_t blocks) {
  if (blocks <= directory_size_) return;
  const size_t size = std::max(blocks, 2 * directory_size_);
  auto larger = std::make_unique<std::atomic<Bucket*>[]>(size);
  for (size_t at = 0; at < directory_size_; ++at) {
    larger[at].store(directories_.back()[at].load(std::memory_order_relaxed),
                     std::memory_order_relaxed);
  }
  directory_.store(larger.get(), std::memory_order_release);
  directories_.push_back(std::move(larger));
  directory_size_ = size;
}

}  // namespace fleet::ps
