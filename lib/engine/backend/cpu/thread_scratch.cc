#include "backend/cpu/thread_scratch.h"

#include <memory>
#include <new>

namespace fleet::cpu {
namespace {

struct AlignedDelete {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
};

}  // namespace

std::byte* thread_scratch(int64_t bytes) {
  thread_local std::unique_ptr<std::byte[], AlignedDelete> memory;
  thread_local int64_t size = 0;
  if (size < bytes) {
    memory.reset();
    size = 0;
    memory.reset(new (std::align_val_t{64}) std::byte[static_cast<size_t>(bytes)]);
    size = bytes;
  }
  return memory.get();
}

}  // namespace fleet::cpu
