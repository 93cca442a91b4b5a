#include "train/prediction_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/owned_file.h"
#include "base/regular_file.h"

namespace fleet {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kPiece = size_t{1} << 16;

// Rounds to the digits of a float32.
Json probability(double value) {
  if (!std::isfinite(value)) return nullptr;
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return std::strtod(text, nullptr);
}

}  // namespace

PredictionFile::PredictionFile(const std::string& path, std::vector<std::string> names)
    : path_(path), names_(std::move(names)) {
  if (path == "-") return;
  check_replaceable(path);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) make_directories(folder);
  aside_ = path + ".part." + std::to_string(::getpid());
  fd_ =
      UniqueFd(::open(aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd_) throw_errno("cannot create the file", path);
}

PredictionFile::~PredictionFile() {
  if (fd_) ::unlink(aside_.c_str());
}

void PredictionFile::add(const std::string& file, std::span<const double> ranked) {
  Json top = Json::array();
  for (size_t k = 0; k + 1 < ranked.size(); k += 2) {
    const auto label = static_cast<size_t>(ranked[k]);
    Json one = {{"class", label}};
    if (label < names_.size()) one["class_name"] = names_[label];
    one["probability"] = probability(ranked[k + 1]);
    top.push_back(std::move(one));
  }
  Json line = {{"file", file}};
  line.update(top[0]);
  line["top"] = std::move(top);
  write(line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void PredictionFile::add_failure(const std::string& file, const std::string& why) {
  const Json line = {{"file", file}, {"error", why}};
  write(line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void PredictionFile::write(const std::string& line) {
  pending_ += line;
  pending_ += '\n';
  if (pending_.size() >= kPiece || aside_.empty()) flush();
}

void PredictionFile::flush() {
  if (aside_.empty()) {
    std::fflush(stdout);
    write_all(STDOUT_FILENO, pending_, "standard output");
  } else {
    write_all(fd_.get(), pending_, path_);
  }
  pending_.clear();
}

void PredictionFile::finish() {
  flush();
  if (aside_.empty()) return;
  if (::fsync(fd_.get()) != 0) throw_errno("cannot sync the file", path_);
  if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    throw_errno("cannot rename the new file into place", path_);
  }
  fd_.reset();
}

}  // namespace fleet
