#include "train/weights_index.h"

#include <filesystem>

#include "base/error.h"
#include "base/file_status.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/text_file.h"

namespace fleet {
namespace {

constexpr int64_t kLargestIndex = int64_t{64} << 20;

std::map<std::string, std::string> weight_map_of(const std::string& path) {
  try {
    const auto check = [](JsonEvent, int depth, const std::string&) {
      constexpr int kDeepest = 8;
      if (depth > kDeepest) throw JsonError("nested too deeply");
    };
    const Json index = Json::parse(read_text_file(path, kLargestIndex), check);
    auto map = index.at("weight_map").get<std::map<std::string, std::string>>();
    if (!map.empty()) return map;
  } catch (const JsonError&) {
  }
  throw Error(ErrorCode::kUsage,
              "is JSON, but not the index of a model's files: it has no weight_map", path,
              "use a file of weights, such as model.safetensors");
}

// By the name of the file: its path.
std::map<std::string, std::string> files_of(const std::string& path,
                                            const std::map<std::string, std::string>& map) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> files;
  std::vector<std::string> missing;
  for (const auto& [tensor, file] : map) {
    if (file.empty() || fs::path(file).filename() != file) {
      throw Error(ErrorCode::kUsage, "names the file '" + shown_name(file) + "' in another folder",
                  path, "put the files that it names into its folder");
    }
    const std::string place = (fs::path(path).parent_path() / file).string();
    if (files.emplace(file, place).second && !path_exists(place)) missing.push_back(file);
  }
  if (missing.empty()) return files;
  const std::string more =
      missing.size() > 1 ? " (and " + std::to_string(missing.size() - 1) + " more)" : "";
  throw Error(ErrorCode::kNotFound,
              "names '" + shown_name(missing[0]) + "'" + more + ", which its folder does not have",
              path,
              "put all " + std::to_string(files.size()) + " files that it names into its folder");
}

}  // namespace

bool begins_like_json(std::string_view bytes) {
  // The length at the start of a safetensors file has zeros; text has none.
  const std::string_view text = trim(bytes.substr(0, sizeof(uint64_t)));
  return text.starts_with('{') && text.find('\0') == std::string_view::npos;
}

TensorFile read_weights_index(const std::string& path,
                              const std::function<TensorFile(const std::string&)>& read) {
  const std::map<std::string, std::string> map = weight_map_of(path);
  TensorFile whole;
  const auto is_there = [&](const std::string& tensor) {
    return whole.tensors.contains(tensor) || whole.foreign.contains(tensor);
  };
  for (const auto& [file, place] : files_of(path, map)) {
    TensorFile part = read(place);
    // A tensor in several files is the one that the index names.
    const auto is_elsewhere = [&, &name = file](const auto& entry) {
      const auto found = map.find(entry.first);
      return found != map.end() && found->second != name;
    };
    std::erase_if(part.tensors, is_elsewhere);
    std::erase_if(part.foreign, is_elsewhere);
    whole.tensors.merge(part.tensors);
    whole.foreign.merge(part.foreign);
    whole.metadata.merge(part.metadata);
  }
  for (const auto& [tensor, file] : map) {
    if (is_there(tensor)) continue;
    throw DamagedFile("has no '" + shown_name(tensor) + "', which " +
                          std::filesystem::path(path).filename().string() + " says it has",
                      (std::filesystem::path(path).parent_path() / file).string(),
                      "use the files of one model");
  }
  return whole;
}

}  // namespace fleet
