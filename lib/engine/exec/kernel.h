// Kernels: how a backend runs an operation. A kernel declares the memory layouts of its arguments
// through a layout query.
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

// One argument of a kernel: memory that does not move for the life of the Plan.
struct Argument {
  void* data = nullptr;  // null: an absent optional argument
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

// Called once per operation, in program order, while the Plan is built. The kernel states the
// layout that it needs for each input and the one that it produces for each output. The Plan
// inserts a reorder if that differs from the current layout. Arguments that the kernel does not
// mention are plain.
class LayoutQuery {
 public:
  // device: null if the Plan is built without one.
  LayoutQuery(const Program& program, const Op& op, std::vector<std::optional<Layout>> inputs,
              std::vector<std::optional<Layout>> outputs, Device* device = nullptr);
  // The device that the Plan is for, to ask its library for the algorithm and its workspace. Null
  // if a Plan is only printed: the answer is then the kernel's best guess.
  Device* device() const { return device_; }
  const Op& op() const { return op_; }
  const Attributes& attributes() const { return op_.attributes; }
  bool has_input(int i) const;
  bool has_output(int i) const;
  const Var& input_var(int i) const { return program_.var(op_.inputs[i]); }
  const Var& output_var(int i) const { return program_.var(op_.outputs[i]); }
  int input_count() const { return static_cast<int>(op_.inputs.size()); }
  int output_count() const { return static_cast<int>(op_.outputs.size()); }
  // The current layout of an input; empty if it is still free to choose (a parameter or state not
  // used so far).
  const std::optional<Layout>& input(int i) const { return inputs_[i]; }
  // The layout that an output must end in (a state with a fixed layout, the gradient of a
  // parameter); empty if it is free.
  const std::optional<Layout>& bound_output(int i) const { return outputs_[i]; }

  void need(int input, Layout layout) { needed_[input] = std::move(layout); }
  void give(int output, Layout layout) { given_[output] = std::move(layout); }
  // Requests scratch memory of at least `bytes` while the kernel runs. All kernels of a stream
  // share it.
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

// A common answer: all floating arguments with the first input's shape share its layout (plain if
// that is free). If the layout has padding and the operation does not map zeros to zero, they are
// plain, so that padding stays zero.
void same_layout(LayoutQuery& query, bool keeps_zeros);

// The inputs for creating a kernel.
struct KernelContext {
  const Op& op;
  std::vector<Argument> inputs, outputs;
  void* workspace = nullptr;
  Device& device;
  Communicator* communicator = nullptr;  // the collective's group; null if it has one rank
  const Attributes& attributes() const { return op.attributes; }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(Stream& stream) = 0;  // must not allocate
};

// Makes a kernel from a callable that takes Stream&.
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
  std::vector<DType> dtypes = {DType::kFloat32};  // supported types of the first floating argument
  std::function<void(LayoutQuery&)> layouts;      // null: everything plain
  std::function<std::unique_ptr<Kernel>(KernelContext&)> create;
};

bool register_kernel(const std::string& backend, const std::string& op, void (*define)(KernelDef&));
// kUnsupported "softmax: no cuda kernel for float16" if it is missing. Collectives and other
// operations that are the same on every device are registered for the backend "any".
const KernelDef& find_kernel(const std::string& backend, const Program& program, const Op& op);

// FLEET_KERNEL(cpu, relu) { def.create = ...; }
#define FLEET_KERNEL(backend, name)                                                            \
  FLEET_REGISTER(kernel_##backend##_##name, ::fleet::KernelDef& def, ::fleet::register_kernel, \
                 #backend, #name)

}  // namespace fleet
