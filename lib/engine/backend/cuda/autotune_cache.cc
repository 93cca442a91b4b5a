#include "backend/cuda/autotune_cache.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <sstream>

#include "base/cache_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace fleet::cuda {
namespace {

using Choices = std::map<std::string, std::string>;

constexpr const char* kHeader = "fleetrun choices 2 ";  // followed by the owner

std::string text_of(const std::string& owner, const Choices& choices) {
  std::ostringstream out;
  out << kHeader << owner << "\n";
  for (const auto& [key, value] : choices) out << key << '\t' << value << '\n';
  out << "end " << choices.size() << "\n";
  return out.str();
}

// Empty if the text is damaged: another kind of header, a line without a key, or a number of lines
// that differs from the one in the last line.
std::optional<Choices> parse(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with(kHeader)) return std::nullopt;
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

Choices read(const std::string& path, const std::string& owner) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  try {
    const std::string text = read_file(path);
    const auto choices = parse(text);
    if (choices && text.starts_with(kHeader + owner + "\n")) return *choices;
    spdlog::warn("{} is {}; measuring again and writing a new one", path,
                 choices ? "of another GPU or library" : "damaged");
  } catch (const Error& error) {
    spdlog::warn("{}", error.what());
  }
  return {};
}

}  // namespace

AutotuneCache::AutotuneCache(std::string path, std::string owner)
    : path_(std::move(path)), owner_(std::move(owner)), choices_(read(path_, owner_)) {}

UniqueFd AutotuneCache::lock() const {
  if (path_.empty()) return {};
  try {
    make_directories(std::filesystem::path(path_).parent_path());
  } catch (const Error&) {
    return {};  // add() reports it
  }
  UniqueFd file(::open((path_ + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  if (!file) return {};
  while (::flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return {};  // a file system without locks
  }
  return file;
}

void AutotuneCache::reload() {
  Choices stored = read(path_, owner_);
  const MutexLock lock(mutex_);
  for (auto& [key, choice] : stored) choices_.insert_or_assign(key, choice);
}

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
  for (auto& [other, choice] : read(path_, owner_)) choices_.try_emplace(other, choice);
  try {
    make_directories(std::filesystem::path(path_).parent_path());
    write_file_atomically(path_, text_of(owner_, choices_));
  } catch (const Error& error) {
    if (!warned_) spdlog::warn("cannot save measured choices: {}", error.what());
    warned_ = true;
  }
}

std::string autotune_cache_file(const std::string& name, const std::string& gpu, size_t version) {
  return cache_file(name + "-" + gpu + "-" + std::to_string(version) + ".txt");
}

}  // namespace fleet::cuda
