#include "data/pixel_scratch.h"

#include <new>
#include <utility>
#include <vector>

namespace fleet::data {
namespace {

constexpr size_t kAlignedTo = 64;

// Memory of this thread that is not in use. The last one is in the cache, perhaps.
std::vector<PixelScratch::Memory>& idle_memory() {
  thread_local std::vector<PixelScratch::Memory> idle;
  return idle;
}

}  // namespace

PixelScratch::PixelScratch(size_t bytes) {
  std::vector<Memory>& idle = idle_memory();
  idle.reserve(idle.size() + 1);  // so that the destructor allocates nothing
  if (!idle.empty()) {
    memory_ = std::move(idle.back());
    idle.pop_back();
  }
  if (memory_.size >= bytes) return;
  memory_.bytes.reset();
  memory_.size = (bytes + kAlignedTo - 1) / kAlignedTo * kAlignedTo;
  memory_.bytes.reset(std::aligned_alloc(kAlignedTo, memory_.size));
  if (!memory_.bytes) throw std::bad_alloc();
}

PixelScratch::~PixelScratch() { idle_memory().push_back(std::move(memory_)); }

}  // namespace fleet::data
