// cuDNN's graph interface: descriptors, tensors, operations, and plans that run a graph of them.
// Only this header and the files that include it use cuDNN.
//
// Everything up to a finished plan works from a GPU's properties alone (Target), so that it can be
// tested, and queried for what a GPU supports, on a machine without one.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace fleet::cuda {

class CudaDevice;

// Converts cuDNN's error to fleet::Error: kUnsupported if cuDNN lacks support for the request,
// otherwise kInternal; includes cuDNN's own explanation.
void check(cudnnStatus_t status, const std::string& what);

// The device's handle, created on first use. Used by the thread that drives the device.
cudnnHandle_t dnn_handle(CudaDevice& device);

namespace dnn {

cudnnDataType_t type_of(DType dtype);

// A backend descriptor; freed with the object.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  // Takes ownership of a descriptor created elsewhere.
  explicit Descriptor(cudnnBackendDescriptor_t descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor();

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, int64_t value);
  void set(cudnnBackendAttributeName_t name, bool value);
  // The factors of operations that compute in float32. cuDNN also accepts a double for them, but
  // reads its first four bytes as a float: 1.0 becomes 0.
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, double value) = delete;
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set_list(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void finalize(const std::string& what);
  // The same, but returns whether cuDNN supports what the descriptor requests.
  bool try_finalize();
  cudnnBackendDescriptor_t get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ != nullptr; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

// The GPU that plans are made for.
class Target {
 public:
  explicit Target(CudaDevice& device);
  // From properties in cuDNN's format (JSON): for a GPU that is not present.
  explicit Target(const std::string& properties);
  const Descriptor& properties() const { return properties_; }
  const std::string& name() const { return name_; }  // the GPU's

 private:
  Descriptor properties_;
  std::string name_;
};

// A tensor of a graph: four dimensions, 16-byte aligned. Without strides: in the order N, C, H, W
// (weights: K, C, R, S), packed with channels innermost.
struct Tensor {
  int64_t id;  // unique in the graph, from 1; binds it to memory
  Shape shape;
  DType dtype;
  bool is_virtual = false;            // internal to the graph, without memory
  bool is_scalar = false;             // one value, passed by the host when the graph runs
  std::vector<int64_t> strides = {};  // in elements
  std::optional<cudnnDataType_t> dnn_type = {};  // one that DType has not, of up to four bytes
  int64_t extent() const;                        // elements from the first to the last
};
Descriptor make_tensor(const Tensor& tensor);

// The cuDNN engine that runs a graph, and its settings.
struct EngineChoice {
  int64_t engine = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;  // type, value
  std::string text() const;                        // "engine 4 knobs 2=1 12=0"
  // Empty if the text is invalid.
  static std::optional<EngineChoice> parse(const std::string& text);
  bool operator==(const EngineChoice&) const = default;
};

// Operations on tensors, as one unit of work. Immutable.
class Graph {
 public:
  // Finished operation descriptors, in any order.
  Graph(std::vector<Descriptor> operations, const std::string& what);
  const Descriptor& get() const { return graph_; }
  const std::string& what() const { return what_; }

 private:
  std::vector<Descriptor> operations_;
  Descriptor graph_;
  std::string what_;
};

struct PlanLimits {
  size_t workspace = ~size_t{0};  // bytes
  bool deterministic = false;     // the same bits every time
  bool exact_float32 = false;     // no TF32: products of float32 in float32
};

// A graph prepared for a target with one choice.
class Plan {
 public:
  Plan(Descriptor plan, EngineChoice choice);
  size_t workspace() const { return workspace_; }  // bytes
  const EngineChoice& choice() const { return choice_; }
  const Descriptor& get() const { return plan_; }

 private:
  Descriptor plan_;
  EngineChoice choice_;
  size_t workspace_ = 0;
};

// Plans within the limits, at most `most`, in the order of cuDNN's expected speed. Empty if cuDNN
// does not support the graph on this target within these limits.
std::vector<std::shared_ptr<const Plan>> candidate_plans(const Graph& graph, const Target& target,
                                                         const PlanLimits& limits, size_t most);
// The plan of an earlier choice; null if cuDNN does not accept it (any longer).
std::shared_ptr<const Plan> plan_for_choice(const Graph& graph, const Target& target,
                                            const EngineChoice& choice);

// The plan for a graph under the device's options (deterministic, tensor_op_math,
// cudnn_exhaustive_search, conv_workspace_size_limit). The first call for a graph in a process
// decides, if necessary by running it on scratch memory for the given tensors (a measurement is
// kept for the machine); later calls return the same plan. Null if cuDNN has none. Call it only
// while a Plan is built: it may allocate and wait.
//   key      one line that describes the graph completely
//   tensors  those bound to memory
std::shared_ptr<const Plan> find_plan(CudaDevice& device, const std::string& key,
                                      const std::function<Graph()>& make_graph,
                                      const std::vector<Tensor>& tensors);

// A plan together with its memory, ready to run repeatedly.
class Execution {
 public:
  struct Binding {
    int64_t id;  // the tensor's id
    void* data;  // on the device; for a scalar: on the host, read when it runs
  };
  Execution(std::shared_ptr<const Plan> plan, std::span<const Binding> bindings, void* workspace);
  // May be recorded in a CUDA graph.
  void run(cudnnHandle_t handle, Stream& stream) const;

 private:
  std::shared_ptr<const Plan> plan_;
  Descriptor pack_;
};

}  // namespace dnn
}  // namespace fleet::cuda
