#include "tensor/caching_allocator.h"

#include <algorithm>

#include "base/error.h"

namespace fleet {
namespace {

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

CachingAllocator::CachingAllocator(Source source, size_t limit)
    : source_(std::move(source)), limit_(limit) {}

CachingAllocator::~CachingAllocator() {
  for (const auto& [at, block] : blocks_) {
    if (!block.before) source_.give_back(at);
  }
}

void* CachingAllocator::allocate(size_t bytes) {
  const MutexLock lock(mutex_);
  bytes = round_up(bytes, kGranule);
  const bool large = bytes >= kLarge;
  if (void* block = reuse(bytes, large)) return block;
  const size_t piece = large ? round_up(bytes, kPiece) : kPiece;
  if (!take_piece(piece, large)) {
    give_back_free_pieces();
    if (!take_piece(piece, large)) return nullptr;
  }
  return reuse(bytes, large);
}

// The smallest free block that is large enough.
void* CachingAllocator::reuse(size_t bytes, bool large) {
  Free& free = free_[large ? 1 : 0];
  const auto found = free.lower_bound({bytes, nullptr});
  if (found == free.end()) return nullptr;
  char* at = found->second;
  free.erase(found);
  Block& block = blocks_[at];
  block.free = false;
  if (block.bytes - bytes >= (large ? kLarge : kGranule)) split(at, bytes);
  used_ += block.bytes;
  most_used_ = std::max(most_used_, used_);
  return at;
}

bool CachingAllocator::take_piece(size_t bytes, bool large) {
  if (bytes > limit_ - std::min(taken_, limit_)) return false;
  char* at = static_cast<char*>(source_.take(bytes));
  if (!at) return false;
  taken_ += bytes;
  blocks_[at] = {.bytes = bytes, .free = true, .large = large};
  free_[large ? 1 : 0].insert({bytes, at});
  return true;
}

void CachingAllocator::split(char* at, size_t bytes) {
  Block& block = blocks_[at];
  char* rest = at + bytes;
  blocks_[rest] = {.bytes = block.bytes - bytes,
                   .free = true,
                   .large = block.large,
                   .before = at,
                   .behind = block.behind};
  if (block.behind) blocks_[block.behind].before = rest;
  block.behind = rest;
  block.bytes = bytes;
  free_of(block).insert({blocks_[rest].bytes, rest});
}

// `behind` becomes part of `at`; neither is in free_.
void CachingAllocator::join(char* at, char* behind) {
  Block &first = blocks_[at], &second = blocks_[behind];
  first.bytes += second.bytes;
  first.behind = second.behind;
  if (second.behind) blocks_[second.behind].before = at;
  blocks_.erase(behind);
}

void CachingAllocator::free(void* memory) {
  const MutexLock lock(mutex_);
  char* at = static_cast<char*>(memory);
  const auto found = blocks_.find(at);
  FLEET_CHECK(found != blocks_.end() && !found->second.free,
              "freed memory that was not allocated here");
  Block& block = found->second;
  Free& free = free_of(block);
  used_ -= block.bytes;
  block.free = true;
  if (char* behind = block.behind; behind && blocks_[behind].free) {
    free.erase({blocks_[behind].bytes, behind});
    join(at, behind);
  }
  if (char* before = block.before; before && blocks_[before].free) {
    free.erase({blocks_[before].bytes, before});
    join(before, at);
    at = before;
  }
  free.insert({blocks_[at].bytes, at});
}

void CachingAllocator::trim() {
  const MutexLock lock(mutex_);
  give_back_free_pieces();
}

void CachingAllocator::give_back_free_pieces() {
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    const auto& [at, block] = *it;
    if (!block.free || block.before || block.behind) {
      ++it;
      continue;
    }
    free_of(block).erase({block.bytes, at});
    taken_ -= block.bytes;
    source_.give_back(at);
    it = blocks_.erase(it);
  }
}

size_t CachingAllocator::used() const {
  const MutexLock lock(mutex_);
  return used_;
}

size_t CachingAllocator::taken() const {
  const MutexLock lock(mutex_);
  return taken_;
}

size_t CachingAllocator::most_used() const {
  const MutexLock lock(mutex_);
  return most_used_;
}

}  // namespace fleet
