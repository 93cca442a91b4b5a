#include "train/safetensors.h"

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"

namespace fleet {
namespace {

using Json = nlohmann::ordered_json;

struct TypeName {
  DType dtype;
  const char* name;
};
constexpr TypeName kTypes[] = {{DType::kFloat32, "F32"}, {DType::kFloat64, "F64"},
                               {DType::kFloat16, "F16"}, {DType::kBFloat16, "BF16"},
                               {DType::kInt64, "I64"},   {DType::kInt32, "I32"},
                               {DType::kUInt8, "U8"}};

const char* type_name(DType dtype) {
  for (const TypeName& type : kTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return "";
}

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw DamagedFile(what, path, "it is damaged or no safetensors file; use another one");
}

HostTensor parse_tensor(const std::string& path, const std::string& name, const Json& entry,
                        std::string_view data) {
  HostTensor tensor;
  const std::string type = entry.at("dtype");
  bool known = false;
  for (const TypeName& candidate : kTypes) {
    if (type != candidate.name) continue;
    tensor.dtype = candidate.dtype;
    known = true;
  }
  if (!known) bad(path, "tensor '" + name + "' has the unknown type " + type);
  const auto dims = entry.at("shape").get<std::vector<int64_t>>();
  if (dims.size() > Shape::kMaxRank) bad(path, "tensor '" + name + "' has too many dimensions");
  tensor.shape = Shape(std::span<const int64_t>(dims));
  const auto place = entry.at("data_offsets").get<std::vector<uint64_t>>();
  const uint64_t bytes = tensor.shape.elements() * size_of(tensor.dtype);
  if (place.size() != 2 || place[0] > place[1] || place[1] - place[0] != bytes) {
    bad(path, "tensor '" + name + "' does not fit its shape");
  }
  if (place[1] > data.size()) bad(path, "truncated: tensor '" + name + "' is cut off");
  tensor.data.assign(data.begin() + place[0], data.begin() + place[1]);
  return tensor;
}

constexpr char kChecksum[] = "crc32c";
constexpr char kNoChecksum[] = "00000000";

// Where the checksum's digits are in the content: the metadata comes first, its keys in order.
size_t place_of_checksum(std::string_view content) {
  const std::string before = std::string("\"") + kChecksum + "\":\"";
  const size_t found = content.find(before);
  const size_t place = found + before.size();
  return found == std::string_view::npos || place + 8 > content.size() ? std::string_view::npos
                                                                       : place;
}

std::string checksum_of(const std::string& content, size_t place) {
  const std::string_view all(content);
  const uint32_t before = crc32c(kNoChecksum, crc32c(all.substr(0, place)));
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc32c(all.substr(place + 8), before));
  return text;
}

void check_checksum(const std::string& path, const std::string& content, TensorFile* file,
                    Checksum checksum) {
  const auto found = file->metadata.find(kChecksum);
  if (found == file->metadata.end()) {
    if (checksum == Checksum::kRequired) bad(path, "has no checksum");
    return;
  }
  const size_t place = place_of_checksum(content);
  if (place == std::string_view::npos || checksum_of(content, place) != found->second) {
    bad(path, "its content is not what its checksum says");
  }
  file->metadata.erase(found);
}

}  // namespace

void write_safetensors(const std::string& path, const TensorFile& file) {
  Json header = Json::object();
  std::map<std::string, std::string> metadata = file.metadata;
  metadata[kChecksum] = kNoChecksum;
  header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const auto dims = tensor.shape.dims();
    header[name] = {{"dtype", type_name(tensor.dtype)},
                    {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                    {"data_offsets", {offset, offset + tensor.data.size()}}};
    offset += tensor.data.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string content(reinterpret_cast<const char*>(&length), sizeof length);
  content.reserve(sizeof length + text.size() + offset);
  content += text;
  for (const auto& [name, tensor] : file.tensors) {
    content.append(tensor.data.data(), tensor.data.size());
  }
  const size_t place = place_of_checksum(content);
  content.replace(place, 8, checksum_of(content, place));
  write_file_atomically(path, content);
}

TensorFile read_safetensors(const std::string& path, Checksum checksum) {
  const std::string content = read_file(path);
  uint64_t length = 0;
  if (content.size() < sizeof length) bad(path, "truncated: no header");
  std::memcpy(&length, content.data(), sizeof length);
  if (length > content.size() - sizeof length) bad(path, "truncated: the header is cut off");
  const std::string_view all(content);
  const std::string_view data = all.substr(sizeof length + length);
  TensorFile file;
  try {
    const Json header = Json::parse(all.substr(sizeof length, length));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        file.metadata = entry.get<std::map<std::string, std::string>>();
      } else {
        file.tensors.emplace(name, parse_tensor(path, name, entry, data));
      }
    }
  } catch (const nlohmann::json::exception&) {
    bad(path, "the header is not what a safetensors file has");
  }
  check_checksum(path, content, &file, checksum);
  return file;
}

}  // namespace fleet
