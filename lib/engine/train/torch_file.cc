#include "train/torch_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "train/weights_index.h"
#include "train/weights_pickle.h"
#include "train/zip_file.h"

namespace fleet {
namespace {

constexpr uint64_t kMaxPickle = uint64_t{64} << 20;
// The start of files by PyTorch before 1.6, as a pickle: 0x1950a86a20f9469cfc6c.
constexpr char kOldMagic[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
constexpr std::string_view kOldStart(kOldMagic, sizeof kOldMagic - 1);

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw DamagedFile(what, path, "it is damaged, or not what torch.save() writes; use another one");
}

std::string start_of(const std::string& path) {
  const RegularFile file = open_regular_file(path);
  std::array<char, 16> bytes{};
  const ssize_t got = ::pread(file.fd.get(), bytes.data(), bytes.size(), 0);
  return {bytes.data(), got < 0 ? 0 : static_cast<size_t>(got)};
}

std::string_view text_of(const TensorBytes& bytes) { return {bytes.data(), bytes.size()}; }

bool has_tensors(const WeightsPickle& pickle, WeightsPickle::Value dict) {
  if (dict.kind != WeightsPickle::Kind::kDict) return false;
  const auto& items = pickle.dict(dict);
  for (size_t i = 1; i < items.size(); i += 2) {
    if (items[i].kind == WeightsPickle::kTensor) return true;
  }
  return false;
}

WeightsPickle::Value state_dict_of(const WeightsPickle& pickle, const std::string& path,
                                   bool average) {
  if (average) {
    for (const char* key : {"state_dict_ema", "model_ema"}) {
      const auto below = pickle.find(pickle.root(), key);
      if (below && has_tensors(pickle, *below)) return *below;
    }
    throw Error(ErrorCode::kUsage, "contains no average of the weights (state_dict_ema, model_ema)",
                path, "set checkpoint.weights_ema to false");
  }
  for (const char* key : {"state_dict", "model_state_dict", "model"}) {
    const auto below = pickle.find(pickle.root(), key);
    if (below && has_tensors(pickle, *below)) return *below;
  }
  if (has_tensors(pickle, pickle.root())) return pickle.root();
  throw Error(ErrorCode::kUsage, "contains no state dict", path,
              "save one: torch.save(model.state_dict(), FILE)");
}

// The bytes of a storage, by its number in the pickle.
using StorageBytes = std::function<TensorBytes(size_t index)>;

// Whether all elements are in the storage, and are not more than it has.
bool fits(const WeightsPickle::Tensor& tensor, int64_t elements) {
  unsigned __int128 count = 1, last = static_cast<uint64_t>(tensor.offset);
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    count *= static_cast<uint64_t>(tensor.shape[i]);
    if (count > static_cast<uint64_t>(elements)) return false;
    if (tensor.shape[i] == 0) return true;
    last += static_cast<unsigned __int128>(tensor.shape[i] - 1) *
            static_cast<uint64_t>(tensor.strides[i]);
  }
  return last < static_cast<uint64_t>(elements);
}

bool is_row_major(const WeightsPickle::Tensor& tensor) {
  for (const int64_t size : tensor.shape) {
    if (size == 0) return true;  // the other sizes may be anything
  }
  int64_t step = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != step) return false;
    step *= tensor.shape[i];
  }
  return true;
}

TensorBytes gathered(const WeightsPickle::Tensor& tensor, const Shape& shape, const char* from,
                     size_t width) {
  const auto count = static_cast<size_t>(shape.elements());
  TensorBytes bytes(count * width);
  const char* start = from + static_cast<size_t>(tensor.offset) * width;
  if (is_row_major(tensor)) {
    if (count > 0) std::memcpy(bytes.data(), start, bytes.size());
    return bytes;
  }
  std::vector<int64_t> index(tensor.shape.size());
  for (size_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * tensor.strides[axis];
    std::memcpy(bytes.data() + i * width, start + static_cast<size_t>(at) * width, width);
    for (size_t axis = index.size(); axis-- > 0 && ++index[axis] == tensor.shape[axis];) {
      index[axis] = 0;
    }
  }
  return bytes;
}

Json json_of(const WeightsPickle& pickle, WeightsPickle::Value value) {
  using Kind = WeightsPickle::Kind;
  switch (value.kind) {
    case Kind::kBool:
      return Json(value.number != 0);
    case Kind::kInteger:
      return Json(value.number);
    case Kind::kFloat:
      return Json(std::bit_cast<double>(value.number));
    case Kind::kText:
      return Json(pickle.text(value));
    default:
      return {};
  }
}

Json list_of(const WeightsPickle& pickle, WeightsPickle::Value list) {
  constexpr size_t kLongest = 8;
  Json json = Json::array();
  const auto& values = pickle.list(list);
  for (size_t i = 0; i < std::min(values.size(), kLongest); ++i) {
    json.push_back(json_of(pickle, values[i]));
  }
  return json;
}

// What timm's training was told about its network and images, under the names of a config.json.
void add_options(const WeightsPickle& pickle, TensorFile* file) {
  using Kind = WeightsPickle::Kind;
  const auto args = pickle.find(pickle.root(), "args");
  if (!args) return;
  Json config = Json::object();
  constexpr std::pair<const char*, const char*> kKeys[] = {{"model", "architecture"},
                                                           {"num_classes", "num_classes"},
                                                           {"mean", "mean"},
                                                           {"std", "std"},
                                                           {"crop_pct", "crop_pct"},
                                                           {"crop_mode", "crop_mode"},
                                                           {"interpolation", "interpolation"},
                                                           {"input_size", "input_size"}};
  for (const auto& [theirs, key] : kKeys) {
    const auto value = pickle.find(*args, theirs);
    if (!value || value->kind == Kind::kNone) continue;
    config[key] = value->kind == Kind::kList ? list_of(pickle, *value) : json_of(pickle, *value);
  }
  const auto side = pickle.find(*args, "img_size");
  if (side && side->kind == Kind::kInteger && !config.contains("input_size")) {
    config["input_size"] = Json::array({Json(3), Json(side->number), Json(side->number)});
  }
  if (config.contains("architecture")) file->metadata["pretrained_cfg"] = config.dump_lossy();
}

TensorFile tensors_of(const WeightsPickle& pickle, const std::string& path,
                      const TorchFileOptions& options, const StorageBytes& bytes_of) {
  TensorFile file;
  add_options(pickle, &file);
  const auto& items = pickle.dict(state_dict_of(pickle, path, options.average));
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].kind != WeightsPickle::Kind::kText || items[i + 1].kind != WeightsPickle::kTensor)
      continue;
    const std::string& name = pickle.text(items[i]);
    const WeightsPickle::Tensor& tensor = pickle.tensor(items[i + 1]);
    const WeightsPickle::Storage& storage = pickle.storage(tensor.storage);
    if (!storage.dtype) {
      file.foreign[name] = storage.type;
      continue;
    }
    if (!fits(tensor, storage.elements)) {
      bad(path, "tensor '" + shown_name(name) + "' does not fit its storage");
    }
    HostTensor& out = file.tensors[name];
    out.dtype = *storage.dtype;
    out.shape = Shape(std::span<const int64_t>(tensor.shape));
    if (!options.values) continue;
    out.data = gathered(tensor, out.shape, bytes_of(tensor.storage).data(), size_of(out.dtype));
  }
  return file;
}

uint64_t bytes_of_storage(const WeightsPickle::Storage& storage, const std::string& path,
                          uint64_t most) {
  const auto elements = static_cast<uint64_t>(storage.elements);
  if (elements > most / storage.width) {
    bad(path, "truncated: the storage '" + shown_name(storage.key) + "' is cut off");
  }
  return elements * storage.width;
}

TensorFile read_zip(const std::string& path, const TorchFileOptions& options) {
  ZipFile zip(path);
  const auto name = zip.find("/data.pkl");
  if (!name) bad(path, "it has no data.pkl: it is not a file of torch.save()");
  const std::string root = name->substr(0, name->size() - std::string("data.pkl").size());
  if (zip.find("/constants.pkl")) {
    throw Error(ErrorCode::kUsage, "contains a scripted module (TorchScript)", path,
                "save its weights: torch.save(module.state_dict(), FILE)");
  }
  if (const auto order = zip.find("/byteorder");
      order && text_of(zip.read(*order, 64)) != "little") {
    throw Error(ErrorCode::kUsage, "was saved on a big-endian machine", path,
                "save it on a little-endian one");
  }
  const TensorBytes pickled = zip.read(*name, kMaxPickle);
  const WeightsPickle pickle(text_of(pickled), path);
  std::map<std::string, TensorBytes> read;  // tensors may share a storage
  return tensors_of(pickle, path, options, [&](size_t index) {
    const WeightsPickle::Storage& storage = pickle.storage(index);
    const uint64_t size = bytes_of_storage(storage, path, UINT64_MAX);
    const auto [entry, fresh] = read.try_emplace(storage.key);
    if (fresh) entry->second = zip.read(root + "data/" + storage.key, UINT64_MAX);
    if (entry->second.size() < size) {
      bad(path, "truncated: the storage '" + shown_name(storage.key) + "' is cut off");
    }
    return entry->second;
  });
}

TensorBytes read_all(const std::string& path) {
  const RegularFile file = open_regular_file(path);
  TensorBytes bytes(static_cast<size_t>(file.size));
  if (read_at(file.fd, bytes.data(), bytes.size(), 0, path) < bytes.size()) {
    bad(path, "truncated: it shrank while being read");
  }
  return bytes;
}

// The start of each storage: the pickles are followed by the list of the storages' keys, then by
// the number of elements and the elements of each.
std::map<std::string, std::string_view> old_storages(const WeightsPickle& pickle,
                                                     const std::string& path,
                                                     std::string_view bytes) {
  std::map<std::string, const WeightsPickle::Storage*> known;
  for (const WeightsPickle::Storage& storage : pickle.storages()) known[storage.key] = &storage;
  const WeightsPickle keys(bytes, path);
  bytes.remove_prefix(keys.size());
  if (keys.root().kind != WeightsPickle::Kind::kList) bad(path, "it has no list of storages");
  std::map<std::string, std::string_view> all;
  for (const WeightsPickle::Value& value : keys.list(keys.root())) {
    const auto found =
        value.kind == WeightsPickle::Kind::kText ? known.find(keys.text(value)) : known.end();
    if (found == known.end()) bad(path, "it has a storage without a tensor");
    const uint64_t size = bytes_of_storage(*found->second, path, bytes.size());
    int64_t elements = 0;
    if (bytes.size() < sizeof elements + size) {
      bad(path, "truncated: the storage '" + shown_name(found->first) + "' is cut off");
    }
    std::memcpy(&elements, bytes.data(), sizeof elements);
    if (elements != found->second->elements) bad(path, "a storage and its tensor differ in size");
    all[found->first] = bytes.substr(sizeof elements, size);
    bytes.remove_prefix(sizeof elements + size);
  }
  return all;
}

TensorFile read_old(const std::string& path, const TorchFileOptions& options) {
  const TensorBytes file = read_all(path);
  std::string_view bytes = text_of(file);
  for (int i = 0; i < 3; ++i) {  // magic number, version, and properties of the machine
    const WeightsPickle skipped(bytes, path);
    const auto little = skipped.find(skipped.root(), "little_endian");
    if (little && little->kind == WeightsPickle::Kind::kBool && little->number == 0) {
      throw Error(ErrorCode::kUsage, "was saved on a big-endian machine", path,
                  "save it on a little-endian one");
    }
    bytes.remove_prefix(skipped.size());
  }
  const WeightsPickle pickle(bytes, path);
  bytes.remove_prefix(pickle.size());
  const auto storages = old_storages(pickle, path, bytes);
  return tensors_of(pickle, path, options, [&](size_t index) {
    const auto found = storages.find(pickle.storage(index).key);
    if (found == storages.end()) bad(path, "truncated: a storage is missing");
    return TensorBytes::view(found->second.data(), found->second.size());
  });
}

}  // namespace

bool is_torch_file(const std::string& path) {
  const std::string start = start_of(path);
  return start.starts_with("PK\x03\x04") || start.starts_with(kOldStart);
}

TensorFile read_torch_file(const std::string& path, const TorchFileOptions& options) {
  return start_of(path).starts_with("PK") ? read_zip(path, options) : read_old(path, options);
}

static TensorFile weights_of(const std::string& path,
                             const std::function<TensorFile(const std::string&)>& read) {
  return begins_like_json(start_of(path)) ? read_weights_index(path, read) : read(path);
}

TensorFile read_weights(const std::string& path, bool average) {
  return weights_of(path, [&](const std::string& file) {
    return is_torch_file(file) ? read_torch_file(file, {.average = average})
                               : read_safetensors(file);
  });
}

TensorFile open_weights(const std::string& path, bool average) {
  return weights_of(path, [&](const std::string& file) {
    return is_torch_file(file) ? read_torch_file(file, {.average = average})
                               : open_safetensors(file);
  });
}

TensorFile open_outline(const std::string& path) {
  return weights_of(path, [](const std::string& file) {
    return is_torch_file(file) ? read_torch_file(file, {.values = false}) : open_safetensors(file);
  });
}

}  // namespace fleet
