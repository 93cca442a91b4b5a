#include "train/weights_pickle.h"

#include <map>
#include <set>

#include "base/error.h"
#include "base/terminal_text.h"
#include "tensor/shape.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

// A state dict with ten thousand tensors has about 1 MiB.
constexpr Pickle::Limits kLimits{.bytes = size_t{64} << 20, .values = size_t{64} << 20};

std::optional<DType> dtype_of(std::string_view storage) {
  if (storage == "FloatStorage") return DType::kFloat32;
  if (storage == "DoubleStorage") return DType::kFloat64;
  if (storage == "HalfStorage") return DType::kFloat16;
  if (storage == "BFloat16Storage") return DType::kBFloat16;
  if (storage == "LongStorage") return DType::kInt64;
  if (storage == "IntStorage") return DType::kInt32;
  if (storage == "ByteStorage") return DType::kUInt8;
  return std::nullopt;
}

// Bytes of an element; 0: not a storage.
size_t width_of(const std::string& storage) {
  static const std::map<std::string, size_t> kOthers = {{"ShortStorage", 2},
                                                        {"CharStorage", 1},
                                                        {"BoolStorage", 1},
                                                        {"ComplexFloatStorage", 8},
                                                        {"ComplexDoubleStorage", 16}};
  if (const auto dtype = dtype_of(storage)) return size_of(*dtype);
  const auto found = kOthers.find(storage);
  return found == kOthers.end() ? 0 : found->second;
}

bool is_storage(const std::string& name) {
  return name.starts_with("torch.") && width_of(name.substr(6)) > 0;
}

constexpr char kDict[] = "collections.OrderedDict",
               kRebuildTensor[] = "torch._utils._rebuild_tensor_v2",
               kParameter[] = "torch._utils._rebuild_parameter", kSize[] = "torch.Size",
               kDevice[] = "torch.device", kNamespace[] = "argparse.Namespace";

bool is_known(const std::string& name) {
  static const std::set<std::string> kKnown = {kDict, kRebuildTensor, kParameter,
                                               kSize, kDevice,        kNamespace};
  return kKnown.contains(name) || is_storage(name);
}

}  // namespace

WeightsPickle::WeightsPickle(std::string_view bytes, const std::string& path)
    : Pickle(path, kLimits) {
  read(bytes);
}

void WeightsPickle::throw_damaged(const std::string& what) const {
  throw DamagedFile(what, path(),
                    "it is damaged, or not what torch.save() writes; use another one");
}

void WeightsPickle::check_global(const std::string& name) const {
  if (is_known(name)) return;
  throw Error(ErrorCode::kUsage,
              "asks for '" + shown_name(name) + "', which weights do not need and is not executed",
              path(),
              "save the weights alone: torch.save(model.state_dict(), FILE), or as safetensors");
}

// ("storage", type, key, place, elements[, None])
Pickle::Value WeightsPickle::load_persistent(Value id) {
  if (id.kind != Kind::kList) bad("its pickle refers to something that is not a storage");
  const std::vector<Value>& parts = list(id);
  const bool fits = (parts.size() == 5 || (parts.size() == 6 && parts[5].kind == Kind::kNone)) &&
                    parts[0].kind == Kind::kText && text(parts[0]) == "storage" &&
                    parts[1].kind == Kind::kGlobal && is_storage(text(parts[1])) &&
                    parts[2].kind == Kind::kText && parts[4].kind == Kind::kInteger &&
                    parts[4].number >= 0;
  if (!fits) bad("its pickle refers to something that is not a storage");
  const std::string type = text(parts[1]).substr(6);
  storages_.push_back({type, dtype_of(type), text(parts[2]), parts[4].number, width_of(type)});
  return {kStorage, static_cast<int64_t>(storages_.size()) - 1};
}

std::vector<int64_t> WeightsPickle::integers(Value value) const {
  if (value.kind != Kind::kList) bad("a tensor has no size");
  if (list(value).size() > Shape::kMaxRank) bad("a tensor has too many dimensions");
  std::vector<int64_t> all;
  for (const Value& one : list(value)) {
    if (one.kind != Kind::kInteger || one.number < 0) bad("a tensor has an invalid size");
    all.push_back(one.number);
  }
  return all;
}

Pickle::Value WeightsPickle::rebuilt_tensor(const std::vector<Value>& arguments) {
  if (arguments.size() < 4 || arguments[0].kind != kStorage ||
      arguments[1].kind != Kind::kInteger || arguments[1].number < 0) {
    bad("a tensor is not described as torch does");
  }
  Tensor tensor{static_cast<size_t>(arguments[0].number), arguments[1].number,
                integers(arguments[2]), integers(arguments[3])};
  if (tensor.shape.size() != tensor.strides.size()) bad("a tensor has an invalid size");
  tensors_.push_back(std::move(tensor));
  return {kTensor, static_cast<int64_t>(tensors_.size()) - 1};
}

// Calls that torch makes when it loads: recreated here without calling anything.
Pickle::Value WeightsPickle::call(const std::string& function,
                                  const std::vector<Value>& arguments) {
  if (function == kRebuildTensor) return rebuilt_tensor(arguments);
  if (function == kParameter && !arguments.empty() && arguments[0].kind == kTensor) {
    return arguments[0];
  }
  if (function == kDict && arguments.empty()) return new_dict();
  if (function == kNamespace && arguments.empty()) {
    const Value options = new_dict();
    namespaces_.insert(options.number);
    return options;
  }
  if (function == kSize && arguments.size() == 1 && arguments[0].kind == Kind::kList) {
    return arguments[0];
  }
  if (function == kDevice) return {Kind::kOther};
  bad("its pickle calls " + function + " with invalid arguments");
}

void WeightsPickle::set_state(Value object, Value state) {
  const bool options = object.kind == Kind::kDict && namespaces_.contains(object.number);
  if (!options) return Pickle::set_state(object, state);
  if (state.kind != Kind::kDict) bad("its pickle has options that are not a dict");
  const std::vector<Value> values = dict(state);  // the state may be the object itself
  std::vector<Value>& own = items_of(object);
  own.insert(own.end(), values.begin(), values.end());
}

}  // namespace fleet
