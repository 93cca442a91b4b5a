// Code shared by all kernels that use oneDNN: conversion between layouts and memory descriptors,
// and primitives ready to run. Only this folder includes dnnl.hpp.
#pragma once

#include <dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "exec/kernel.h"

namespace fleet::cpu {

const dnnl::engine& engine();
// Streams of the CPU engine keep no state between calls, so all threads share one.
dnnl::stream& stream();
// The Plan provides scratch memory: primitives allocate none.
const dnnl::primitive_attr& user_scratchpad();

// The types that oneDNN primitives compute in.
inline const std::vector<DType> kPrimitiveTypes = {DType::kFloat32, DType::kBFloat16};

dnnl::memory::data_type type_of(DType dtype);
// Without a layout: format "any", so that the primitive chooses.
dnnl::memory::desc desc_of(const Shape& shape, DType dtype, const std::optional<Layout>& layout);
dnnl::memory::desc desc_of(const Argument& argument);
// kInternal for a format that Layout cannot express (Winograd's weights).
Layout layout_of(const dnnl::memory::desc& desc);
// A layout for another shape of the same rank, with this layout's order of axes and blocks.
Layout layout_like(const Layout& pattern, const Shape& shape);

// The implementation behind a descriptor ("jit:avx512_core"), and whether it is one of the
// reference loops, a hundred times slower than the others.
std::string implementation_of(const dnnl::primitive_desc_base& desc);
bool is_reference(const dnnl::primitive_desc_base& desc);
// The descriptor of one argument (DNNL_ARG_SRC, ...).
dnnl::memory::desc argument_desc(const dnnl::primitive_desc_base& desc, int argument);
size_t scratchpad_bytes(const dnnl::primitive_desc_base& desc);

// Memory after a primitive's scratchpad in the workspace, for unused results.
class SpareOutputs {
 public:
  SpareOutputs(const dnnl::primitive_desc_base& desc, void* workspace)
      : next_(static_cast<char*>(workspace) + aligned(scratchpad_bytes(desc))) {}
  template <typename T>
  T* take(int64_t elements) {
    void* place = next_;
    next_ += aligned(elements * sizeof(T));
    return static_cast<T*>(place);
  }
  // The workspace for a primitive together with areas of these numbers of elements.
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

// Runs body; converts oneDNN's exceptions to an Error about `what`.
[[noreturn]] void throw_translated(const dnnl::error& error, const std::string& what);
template <typename F>
auto translated(const std::string& what, F body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    throw_translated(error, what);
  }
}

// A primitive with its arguments. Running it allocates nothing in our code; oneDNN itself keeps a
// small table of the arguments on the heap during the call.
class PrimitiveKernel : public Kernel {
 public:
  // The workspace must hold at least scratchpad_bytes(desc).
  PrimitiveKernel(const dnnl::primitive_desc_base& desc, void* workspace);
  // Binds memory in the form that the primitive's descriptor requires.
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
