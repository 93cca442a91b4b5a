// Kernels: how a backend runs an operation, and the layout query by which it says where elements
// shall lie.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "graph/program.h"
#include "tensor/device.h"
#include "tensor/layout.h"

namespace fleet {

// One argument of a kernel: memory that stays where it is for the life of the Plan.
struct Argument {
  void* data = nullptr;  // null: an optional argument that is not there
  DType dtype = DType::kFloat32;
  Shape shape;
  Layout layout;
  explicit operator bool() const { return data != nullptr; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  size_t bytes() const { return layout.elements() * size_of(dtype); }
};

// Asked once per operation, in program order, while the Plan is made. The kernel says which layout
// it needs each input in and in which it leaves each output; the Plan inserts a reorder where that
// differs from what is there. What a kernel does not mention is plain.
class LayoutQuery {
 public:
  // device: null where the Plan is made without one.
  LayoutQuery(const Program& program, const Op& op, std::vector<std::optional<Layout>> inputs,
              std::vector<std::optional<Layout>> outputs, Device* device = nullptr);
  // The device the Plan is for: to ask its library which algorithm it takes and how much workspace.
  // Null where a Plan is only printed: the answer is then the kernel's best guess.
  Device* device() const { return device_; }
  const Op& op() const { return op_; }
  const Attributes& attributes() const { return op_.attributes; }
  bool has_input(int i) const;
  bool has_output(int i) const;
  const Var& input_var(int i) const { return program_.var(op_.inputs[i]); }
  const Var& output_var(int i) const { return program_.var(op_.outputs[i]); }
  int input_count() const { return static_cast<int>(op_.inputs.size()); }
  int output_count() const { return static_cast<int>(op_.outputs.size()); }
  // The layout an input has now; nothing where it is still free to choose (a parameter or state not
  // used so far).
  const std::optional<Layout>& input(int i) const { return inputs_[i]; }
  // The layout an output must end in (a state already laid out, the gradient of a parameter);
  // nothing where it is free.
  const std::optional<Layout>& bound_output(int i) const { return outputs_[i]; }

  void need(int input, Layout layout) { needed_[input] = std::move(layout); }
  void give(int output, Layout layout) { given_[output] = std::move(layout); }
  // Scratch memory of at least so many bytes while the kernel runs; shared by all kernels of a
  // stream.
  void workspace(size_t bytes) { workspace_ = bytes; }

  const Layout& needed(int input) const { return needed_[input]; }
  const Layout& given(int output) const { return given_[output]; }
  size_t workspace() const { return workspace_; }

 private:
  const Program& program_;
  const Op& op_;
  Device* device_;
  std::vector<std::optional<Layout>> inputs_, outputs_;
  std::vector<Layout> needed_, given_;
  size_t workspace_ = 0;
};

// A common answer: all floating arguments of the first input's shape share its layout (plain where
// that is free). Where the layout has padding and the operation does not map zeros to zero, plain,
// so that padding stays zero.
void same_layout(LayoutQuery& query, bool keeps_zeros);

// What a kernel is made from.
struct KernelContext {
  const Op& op;
  std::vector<Argument> inputs, outputs;
  void* workspace = nullptr;
  Device& device;
  Communicator* communicator = nullptr;  // of a collective's group; null where that is one rank
  const Attributes& attributes() const { return op.attributes; }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(Stream& stream) = 0;  // allocates nothing
};

// A kernel from a callable taking Stream&.
template <typename F>
std::unique_ptr<Kernel> make_kernel(F body) {
  struct Callable : Kernel {
    explicit Callable(F f) : body(std::move(f)) {}
    void run(Stream& stream) override { body(stream); }
    F body;
  };
  return std::make_unique<Callable>(std::move(body));
}

struct KernelDef {
  std::vector<DType> dtypes = {DType::kFloat32};  // types of the first floating argument it can do
  std::function<void(LayoutQuery&)> layouts;      // null: everything plain
  std::function<std::unique_ptr<Kernel>(KernelContext&)> create;
};

bool register_kernel(const std::string& backend, const std::string& op, void (*define)(KernelDef&));
// kUnsupported "softmax: no cuda kernel for float16" where there is none. Collectives and other
// operations that run alike on every device are registered for the backend "any".
const KernelDef& find_kernel(const std::string& backend, const Program& program, const Op& op);

// FLEET_KERNEL(cpu, relu) { def.create = ...; }
#define FLEET_KERNEL(backend, name)                                                \
  static void define_kernel_##backend##_##name(::fleet::KernelDef& def);           \
  [[maybe_unused]] static const bool registered_kernel_##backend##_##name =        \
      ::fleet::register_kernel(#backend, #name, define_kernel_##backend##_##name); \
  static void define_kernel_##backend##_##name(::fleet::KernelDef& def)

}  // namespace fleet
