#include "backend/cuda/dnn.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "backend/cuda/device.h"
#include "base/error.h"
#include "base/mutex.h"

namespace fleet::cuda {

void check(cudnnStatus_t status, const std::string& what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> reason{};
  cudnnGetLastErrorString(reason.data(), reason.size());
  std::string text = std::string("cuDNN: ") + cudnnGetErrorString(status);
  if (reason[0] != '\0') text += std::string(" (") + reason.data() + ")";
  // Statuses of one kind share the thousands digit: 2xxx bad arguments, 3xxx not supported.
  const bool unsupported = status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
  if (unsupported) {
    throw Error(ErrorCode::kUnsupported, text, what,
                "use another type, or another configuration of the operation");
  }
  throw Error(ErrorCode::kInternal, text, what,
              "CUDNN_LOGLEVEL_DBG=2 CUDNN_LOGDEST_DBG=stderr makes cuDNN log more");
}

namespace {

// Plans from a device's properties exist since 9.8.
constexpr size_t kOldest = 90800;

void check_version() {
  const size_t found = cudnnGetVersion();
  if (found >= kOldest) return;
  throw Error(ErrorCode::kUnsupported,
              "cuDNN " + std::to_string(found / 10000) + "." + std::to_string(found / 100 % 100) +
                  " is too old",
              "starting cuDNN", "install cuDNN 9.8 or later");
}

}  // namespace

cudnnHandle_t dnn_handle(CudaDevice& device) {
  // Never destroyed: at process exit, CUDA may be gone before static objects are destroyed.
  static Mutex mutex;
  static auto* const handles FLEET_PT_GUARDED_BY(mutex) = new std::map<int, cudnnHandle_t>;
  const MutexLock lock(mutex);
  cudnnHandle_t& handle = (*handles)[device.index()];
  if (!handle) {
    check_version();
    check(cudnnCreate(&handle), "starting cuDNN on " + device.name());
  }
  return handle;
}

namespace dnn {

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDNN_DATA_FLOAT;
    case DType::kFloat16:
      return CUDNN_DATA_HALF;
    case DType::kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      throw Error(ErrorCode::kUnsupported, std::string("no cuDNN kernel for ") + name_of(dtype));
  }
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(cudnnBackendCreateDescriptor(type, &descriptor_), "making a descriptor");
}

Descriptor::~Descriptor() {
  if (descriptor_) cudnnBackendDestroyDescriptor(descriptor_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(descriptor_, name, type, count, values),
        "setting attribute " + std::to_string(name) + " of a descriptor");
}
void Descriptor::set(cudnnBackendAttributeName_t name, int64_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, bool value) {
  set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, float value) {
  set(name, CUDNN_TYPE_FLOAT, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
void Descriptor::set_list(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}
void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  const cudnnBackendDescriptor_t descriptor = value.get();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor);
}

void Descriptor::finalize(const std::string& what) {
  check(cudnnBackendFinalize(descriptor_), what);
}

bool Descriptor::try_finalize() {
  return cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS;
}

Target::Target(CudaDevice& device)
    : properties_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR), name_(device.properties().name) {
  const cudnnHandle_t handle = dnn_handle(device);
  properties_.set(CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  properties_.finalize("the properties of " + device.name());
}

Target::Target(const std::string& properties)
    : properties_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR), name_("a GPU that is not here") {
  properties_.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                  static_cast<int64_t>(properties.size()), properties.data());
  properties_.finalize("the properties of a GPU");
}

int64_t Tensor::extent() const {
  if (strides.empty()) return shape.elements();
  int64_t last = 0;
  for (int i = 0; i < shape.rank(); ++i) last += (shape[i] - 1) * strides[i];
  return last + 1;
}

Descriptor make_tensor(const Tensor& tensor) {
  const Shape& s = tensor.shape;
  FLEET_CHECK(s.rank() == 4, "a cuDNN tensor of shape " + s.text());
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::array<int64_t, 4> dims = {s[0], s[1], s[2], s[3]};
  const std::array<int64_t, 4> strides = {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, tensor.dnn_type ? *tensor.dnn_type : type_of(tensor.dtype));
  made.set_list(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  if (tensor.strides.empty()) {
    made.set_list(CUDNN_ATTR_TENSOR_STRIDES, strides);
  } else {
    made.set_list(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides);
  }
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
  if (tensor.is_virtual) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  if (tensor.is_scalar) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  made.finalize("a tensor of " + s.text());
  return made;
}

std::string EngineChoice::text() const {
  std::ostringstream out;
  out << "engine " << engine << " knobs";
  for (const auto& [type, value] : knobs) out << ' ' << type << '=' << value;
  return out.str();
}

std::optional<EngineChoice> EngineChoice::parse(const std::string& text) {
  std::istringstream in(text);
  std::string engine, knobs;
  EngineChoice choice;
  if (!(in >> engine >> choice.engine >> knobs)) return std::nullopt;
  if (engine != "engine" || knobs != "knobs" || choice.engine < 0) return std::nullopt;
  for (std::string knob; in >> knob;) {
    std::istringstream pair(knob);
    int64_t type = 0, value = 0;
    char equals = 0, more = 0;
    if (!(pair >> type >> equals >> value) || equals != '=' || pair >> more) return std::nullopt;
    choice.knobs.emplace_back(type, value);
  }
  return choice;
}

Graph::Graph(std::vector<Descriptor> operations, const std::string& what)
    : operations_(std::move(operations)),
      graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR),
      what_(what) {
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (const Descriptor& operation : operations_) pointers.push_back(operation.get());
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             static_cast<int64_t>(pointers.size()), pointers.data());
  graph_.finalize(what);
}

namespace {

// At most `most` descriptors, which the caller provides and cuDNN fills in.
std::vector<Descriptor> get_list(const Descriptor& from, cudnnBackendAttributeName_t name,
                                 cudnnBackendDescriptorType_t type, int64_t most) {
  std::vector<Descriptor> list;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (int64_t i = 0; i < most; ++i) pointers.push_back(list.emplace_back(type).get());
  int64_t count = 0;
  check(cudnnBackendGetAttribute(from.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count,
                                 pointers.data()),
        "reading a list of descriptors");
  list.resize(std::min(count, most));
  return list;
}

int64_t count_of(const Descriptor& from, cudnnBackendAttributeName_t name) {
  int64_t count = 0;
  const cudnnStatus_t status =
      cudnnBackendGetAttribute(from.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr);
  return status == CUDNN_STATUS_SUCCESS ? count : 0;
}

int64_t get_integer(const Descriptor& from, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64) {
  int64_t value = 0, count = 0;
  if (type == CUDNN_TYPE_KNOB_TYPE) {
    cudnnBackendKnobType_t knob{};
    check(cudnnBackendGetAttribute(from.get(), name, type, 1, &count, &knob), "reading a knob");
    return knob;
  }
  check(cudnnBackendGetAttribute(from.get(), name, type, 1, &count, &value), "reading a number");
  return value;
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor& engine) {
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  int64_t count = 0;
  check(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, static_cast<int64_t>(notes.size()),
                                 &count, notes.data()),
        "reading an engine's notes");
  notes.resize(std::min<int64_t>(count, static_cast<int64_t>(notes.size())));
  return notes;
}

bool is_within(const Descriptor& engine, const PlanLimits& limits) {
  for (cudnnBackendNumericalNote_t note : notes_of(engine)) {
    // Sums of 16-bit values in 16 bits: the gradient of a weight adds millions of them.
    if (note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) return false;
    if (limits.deterministic && note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
    const bool rounds = note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
                        note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    if (limits.exact_float32 && rounds) return false;
  }
  return true;
}

Descriptor engine_of(const Descriptor& config) {
  std::vector<Descriptor> engines =
      get_list(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  FLEET_CHECK(engines.size() == 1, "an engine configuration without an engine");
  return std::move(engines[0]);
}

EngineChoice choice_of(const Descriptor& config, const Descriptor& engine) {
  EngineChoice choice{.engine = get_integer(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX)};
  // cuDNN does not report their number; there is at most one of each type.
  for (const Descriptor& knob :
       get_list(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                CUDNN_KNOB_TYPE_COUNTS)) {
    choice.knobs.emplace_back(
        get_integer(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE),
        get_integer(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return choice;
}

std::vector<Descriptor> configurations(const Graph& graph, const Target& target,
                                       cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get());
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.properties());
  if (!heuristics.try_finalize()) return {};  // no heuristics for such a graph
  return get_list(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                  count_of(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS));
}

std::shared_ptr<const Plan> plan_of(const Descriptor& config, EngineChoice choice,
                                    const Target& target) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.properties());
  if (!plan.try_finalize()) return nullptr;
  return std::make_shared<const Plan>(std::move(plan), std::move(choice));
}

}  // namespace

Plan::Plan(Descriptor plan, EngineChoice choice)
    : plan_(std::move(plan)), choice_(std::move(choice)) {
  workspace_ = static_cast<size_t>(get_integer(plan_, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
}

std::vector<std::shared_ptr<const Plan>> candidate_plans(const Graph& graph, const Target& target,
                                                         const PlanLimits& limits, size_t most) {
  std::vector<std::shared_ptr<const Plan>> plans;
  // The fallback engines are slow but always available: only for graphs that have no other.
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!plans.empty()) break;
    for (const Descriptor& config : configurations(graph, target, mode)) {
      if (plans.size() >= most) return plans;
      const Descriptor engine = engine_of(config);
      if (!is_within(engine, limits)) continue;
      EngineChoice choice = choice_of(config, engine);
      const bool known = std::any_of(plans.begin(), plans.end(),
                                     [&](const auto& plan) { return plan->choice() == choice; });
      if (known) continue;
      auto plan = plan_of(config, std::move(choice), target);
      if (plan && plan->workspace() <= limits.workspace) plans.push_back(std::move(plan));
    }
  }
  return plans;
}

std::shared_ptr<const Plan> plan_for_choice(const Graph& graph, const Target& target,
                                            const EngineChoice& choice) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.get());
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine);
  engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, target.properties());
  if (!engine.try_finalize()) return nullptr;
  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (const auto& [type, value] : choice.knobs) {
    Descriptor& knob = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    const auto knob_type = static_cast<cudnnBackendKnobType_t>(type);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob_type);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    if (!knob.try_finalize()) return nullptr;
    pointers.push_back(knob.get());
  }
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!pointers.empty()) {
    config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               static_cast<int64_t>(pointers.size()), pointers.data());
  }
  if (!config.try_finalize()) return nullptr;
  return plan_of(config, choice, target);
}

Execution::Execution(std::shared_ptr<const Plan> plan, std::span<const Binding> bindings,
                     void* workspace)
    : plan_(std::move(plan)), pack_(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const Binding& binding : bindings) {
    ids.push_back(binding.id);
    pointers.push_back(binding.data);
  }
  pack_.set_list(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
            static_cast<int64_t>(pointers.size()), pointers.data());
  pack_.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack_.finalize("the arguments of a plan");
}

void Execution::run(cudnnHandle_t handle, Stream& stream) const {
  check(cudnnSetStream(handle, stream_of(stream)), "giving cuDNN its stream");
  check(cudnnBackendExecute(handle, plan_->get().get(), pack_.get()), "running a plan");
}

}  // namespace dnn
}  // namespace fleet::cuda
