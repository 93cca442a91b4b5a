#include "backend/cuda/autotune_cache.h"

#include <filesystem>
#include <sstream>

#include "base/cache_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace fleet::cuda {
namespace {

using Choices = std::map<std::string, std::string>;

constexpr const char* kHeader = "fleetrun choices 1";

std::string text_of(const Choices& choices) {
  std::ostringstream out;
  out << kHeader << "\n";
  for (const auto& [key, value] : choices) out << key << '\t' << value << '\n';
  out << "end " << choices.size() << "\n";
  return out.str();
}

// Empty if the text is damaged: another header, a line without a key, or a number of lines that
// differs from the one in the last line.
std::optional<Choices> parse(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || line != kHeader) return std::nullopt;
  Choices choices;
  while (std::getline(in, line)) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      if (line == "end " + std::to_string(choices.size())) return choices;
      return std::nullopt;
    }
    choices[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return std::nullopt;
}

Choices read(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  try {
    if (auto choices = parse(read_file(path))) return *choices;
    spdlog::warn("{} is damaged; ignoring it and writing a new one", path);
  } catch (const Error& error) {
    spdlog::warn("{}", error.what());
  }
  return {};
}

}  // namespace

AutotuneCache::AutotuneCache(std::string path) : path_(std::move(path)), choices_(read(path_)) {}

std::optional<std::string> AutotuneCache::find(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

void AutotuneCache::add(const std::string& key, const std::string& value) {
  FLEET_CHECK((key + value).find_first_of("\t\n") == std::string::npos,
              "a choice contains a tab or line break");
  const MutexLock lock(mutex_);
  choices_[key] = value;
  if (path_.empty()) return;
  for (auto& [other, choice] : read(path_)) choices_.try_emplace(other, choice);
  try {
    make_directories(std::filesystem::path(path_).parent_path());
    write_file_atomically(path_, text_of(choices_));
  } catch (const Error& error) {
    if (!warned_) spdlog::warn("cannot save measured choices: {}", error.what());
    warned_ = true;
  }
}

std::string autotune_cache_file(const std::string& name, const std::string& gpu, size_t version) {
  return cache_file(name + "-" + gpu + "-" + std::to_string(version) + ".txt");
}

}  // namespace fleet::cuda
