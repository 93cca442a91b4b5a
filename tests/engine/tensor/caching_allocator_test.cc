#include "tensor/caching_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "base/error.h"

namespace fleet {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A device with addresses and no memory.
class Source {
 public:
  explicit Source(size_t bytes = 1 << 30) : left_(bytes) {}
  CachingAllocator::Source functions() {
    return {.take = [this](size_t bytes) -> void* {
              if (bytes > left_) return nullptr;
              left_ -= bytes;
              ++taken;
              char* at = next_;
              next_ += bytes + 4096;
              pieces_[at] = bytes;
              return at;
            },
            .give_back =
                [this](void* piece) {
                  left_ += pieces_.at(static_cast<char*>(piece));
                  pieces_.erase(static_cast<char*>(piece));
                }};
  }
  int taken = 0;
  size_t pieces() const { return pieces_.size(); }

 private:
  size_t left_;
  char* next_ = reinterpret_cast<char*>(uintptr_t{1} << 40);
  std::map<char*, size_t> pieces_;
};

TEST(CachingAllocator, Nothing_IsTakenBeforeItIsNeeded) {
  Source source;
  CachingAllocator memory(source.functions(), 1 << 30);
  EXPECT_EQ(source.taken, 0);
  EXPECT_EQ(memory.taken(), 0u);
}

TEST(CachingAllocator, SmallRequests_ShareAPiece) {
  Source source;
  CachingAllocator memory(source.functions(), 1 << 30);
  for (int i = 0; i < 100; ++i) EXPECT_NE(memory.allocate(1000), nullptr);
  EXPECT_EQ(source.taken, 1);
  EXPECT_EQ(memory.taken(), CachingAllocator::kPiece);
  EXPECT_EQ(memory.used(), 100 * 1024u);
}

TEST(CachingAllocator, FreedBlock_IsUsedAgain) {
  Source source;
  CachingAllocator memory(source.functions(), 1 << 30);
  void* first = memory.allocate(50 * kMiB);
  memory.free(first);
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_EQ(memory.allocate(49 * kMiB + 1), first);
  EXPECT_EQ(source.taken, 1);
  EXPECT_EQ(memory.most_used(), 50 * kMiB);
}

TEST(CachingAllocator, NeighboursThatAreFree_BecomeOne) {
  Source source;
  CachingAllocator memory(source.functions(), 1 << 30);
  void* all = memory.allocate(64 * kMiB);
  memory.free(all);
  void *a = memory.allocate(16 * kMiB), *b = memory.allocate(16 * kMiB),
       *c = memory.allocate(32 * kMiB);
  EXPECT_EQ(source.taken, 1);
  memory.free(a);
  memory.free(c);
  memory.free(b);
  EXPECT_EQ(memory.allocate(64 * kMiB), all);
  EXPECT_EQ(source.taken, 1);
}

TEST(CachingAllocator, Limit_IsNotExceededAndFreePiecesMakeRoom) {
  Source source;
  CachingAllocator memory(source.functions(), 10 * kMiB);
  void* six = memory.allocate(6 * kMiB);
  EXPECT_EQ(memory.allocate(6 * kMiB), nullptr);
  EXPECT_NE(memory.allocate(4 * kMiB), nullptr);
  memory.free(six);
  EXPECT_NE(memory.allocate(5 * kMiB), nullptr);  // cut from the six
  EXPECT_EQ(memory.allocate(2 * kMiB), nullptr);
}

TEST(CachingAllocator, SourceThatHasNoMore_GetsFreePiecesBackFirst) {
  Source source(10 * kMiB);
  CachingAllocator memory(source.functions(), 1 << 30);
  memory.free(memory.allocate(4 * kMiB));
  memory.free(memory.allocate(6 * kMiB));
  EXPECT_EQ(source.pieces(), 2u);
  EXPECT_NE(memory.allocate(10 * kMiB), nullptr);
  EXPECT_EQ(source.pieces(), 1u);
}

TEST(CachingAllocator, Trim_KeepsWhatIsInUse) {
  Source source;
  CachingAllocator memory(source.functions(), 1 << 30);
  void* small = memory.allocate(10);
  memory.free(memory.allocate(30 * kMiB));
  memory.trim();
  EXPECT_EQ(memory.taken(), CachingAllocator::kPiece);
  memory.free(small);
  memory.trim();
  EXPECT_EQ(source.pieces(), 0u);
}

TEST(CachingAllocator, BlockFreedTwice_IsABug) {
  Source source;
  CachingAllocator memory(source.functions(), 1 << 30);
  void* block = memory.allocate(10);
  memory.free(block);
  EXPECT_THROW(memory.free(block), Error);
}

TEST(CachingAllocator, RandomUse_NeverOverlapsAndEndsEmpty) {
  Source source;
  {
    CachingAllocator memory(source.functions(), 256 * kMiB);
    std::mt19937 random(1);
    std::map<char*, size_t> live;
    for (int i = 0; i < 5000; ++i) {
      if (random() % 2 == 0 && !live.empty()) {
        auto it = std::next(live.begin(), random() % live.size());
        memory.free(it->first);
        live.erase(it);
        continue;
      }
      const size_t bytes = 1 + random() % (random() % 4 == 0 ? 8 * kMiB : 4096);
      char* at = static_cast<char*>(memory.allocate(bytes));
      if (!at) continue;
      const auto next = live.lower_bound(at);
      if (next != live.end()) {
        ASSERT_LE(at + bytes, next->first);
      }
      if (next != live.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, at);
      }
      live[at] = bytes;
    }
    for (const auto& [at, bytes] : live) memory.free(at);
    EXPECT_EQ(memory.used(), 0u);
    memory.trim();
    EXPECT_EQ(memory.taken(), 0u);
  }
  EXPECT_EQ(source.pieces(), 0u);
}

}  // namespace
}  // namespace fleet
