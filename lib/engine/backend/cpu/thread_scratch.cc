#include "backend/cpu/thread_scratch.h"

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace fleet::cpu {
namespace {

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// Large memory in huge pages: matrices are read in dozens of places at a time, whose small pages
// are more than a processor keeps the addresses of.
std::byte* allocate_scratch(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const size_t size = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, size);
  if (!memory) throw std::bad_alloc();
  if (size >= kHugePage) ::madvise(memory, size, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

std::byte* thread_scratch(int64_t bytes) {
  thread_local std::unique_ptr<std::byte[], Free> memory;
  thread_local int64_t size = 0;
  if (size < bytes) {
    memory.reset();
    size = 0;
    memory.reset(allocate_scratch(static_cast<size_t>(bytes)));
    size = bytes;
  }
  return memory.get();
}

}  // namespace fleet::cpu
