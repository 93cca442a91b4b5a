// What all kernels that use oneDNN share: layouts to memory descriptors and back, and primitives
// ready to run. Only this folder includes dnnl.hpp.
#pragma once

#include <dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "exec/kernel.h"

namespace fleet::cpu {

const dnnl::engine& engine();
// Scratch memory is the Plan's: primitives allocate none.
const dnnl::primitive_attr& user_scratchpad();

// The types its primitives compute in, for kernels made of them.
inline const std::vector<DType> kPrimitiveTypes = {DType::kFloat32, DType::kBFloat16};

dnnl::memory::data_type type_of(DType dtype);
// Without a layout: format "any", so that a primitive chooses.
dnnl::memory::desc desc_of(const Shape& shape, DType dtype, const std::optional<Layout>& layout);
dnnl::memory::desc desc_of(const Argument& argument);
// kInternal for a format that is no layout of ours (Winograd's weights).
Layout layout_of(const dnnl::memory::desc& desc);
// The layout with this one's order of axes and blocks for another shape of the same rank.
Layout layout_like(const Layout& pattern, const Shape& shape);

// Which implementation a descriptor stands for ("jit:avx512_core"), and whether it is one of the
// reference loops, a hundred times slower than the others.
std::string implementation_of(const dnnl::primitive_desc_base& desc);
bool is_reference(const dnnl::primitive_desc_base& desc);
// The descriptor of one argument (DNNL_ARG_SRC, ...).
dnnl::memory::desc argument_desc(const dnnl::primitive_desc_base& desc, int argument);
size_t scratchpad_bytes(const dnnl::primitive_desc_base& desc);

// Places behind a primitive's scratchpad in the workspace, for results nobody asked for.
class Spare {
 public:
  Spare(const dnnl::primitive_desc_base& desc, void* workspace)
      : next_(static_cast<char*>(workspace) + aligned(scratchpad_bytes(desc))) {}
  template <typename T>
  T* take(int64_t elements) {
    void* place = next_;
    next_ += aligned(elements * sizeof(T));
    return static_cast<T*>(place);
  }
  // The workspace a primitive needs together with places of so many elements.
  static size_t bytes(const dnnl::primitive_desc_base& desc,
                      std::initializer_list<int64_t> elements, size_t size) {
    size_t sum = aligned(scratchpad_bytes(desc));
    for (int64_t count : elements) sum += aligned(count * size);
    return sum;
  }

 private:
  static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
  char* next_;
};

// Runs body; what oneDNN throws becomes an Error about `what`.
[[noreturn]] void throw_translated(const dnnl::error& error, const std::string& what);
template <typename F>
auto translated(const std::string& what, F body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    throw_translated(error, what);
  }
}

// A primitive with its arguments. Running it allocates nothing of ours; oneDNN itself keeps a small
// table of the arguments on the heap for the length of the call.
class PrimitiveKernel : public Kernel {
 public:
  // The workspace holds scratchpad_bytes(desc) at least.
  PrimitiveKernel(const dnnl::primitive_desc_base& desc, void* workspace);
  // Memory in the form the primitive's descriptor says.
  void bind(int argument, void* data);
  // Memory that must live as long as the kernel.
  void keep(Buffer memory) { kept_ = std::move(memory); }
  void execute();
  void run(Stream&) override { execute(); }
  std::string implementation() const { return implementation_; }

 private:
  dnnl::primitive_desc_base desc_;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::string implementation_;
  Buffer kept_;
};

}  // namespace fleet::cpu
