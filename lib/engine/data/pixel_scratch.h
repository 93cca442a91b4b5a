// Memory for a copy of an image while it is changed. Each thread keeps its own: a fresh allocation
// of that size costs more in page faults than the copy. Internal to data.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace fleet::data {

// Not initialized, aligned to 64 bytes. Throws std::bad_alloc. It must end in the thread that made
// it; several may exist at once.
class PixelScratch {
 public:
  explicit PixelScratch(size_t bytes);
  ~PixelScratch();
  PixelScratch(const PixelScratch&) = delete;
  PixelScratch& operator=(const PixelScratch&) = delete;

  void* get() const { return memory_.bytes.get(); }
  float* floats() const { return static_cast<float*>(get()); }

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  struct Memory {
    std::unique_ptr<void, Free> bytes;
    size_t size = 0;
  };

 private:
  Memory memory_;
};

}  // namespace fleet::data
