#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/csv.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/owned_file.h"
#include "base/regular_file.h"
#include "base/sync.h"
#include "train/predict.h"

namespace fleet {
namespace {

constexpr size_t kPiece = size_t{1} << 16;

// Rounds to the digits of a float32.
Json probability(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(format_printf("%.7g", value).c_str(), nullptr);
}

}  // namespace

PredictionFile::PredictionFile(const std::string& path, std::vector<std::string> names,
                               const Format& format)
    : path_(path), names_(std::move(names)), format_(format) {
  if (format_.csv) write_csv_head();
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

// "file,class,class_name,probability,error", then three columns for each further class.
void PredictionFile::write_csv_head() {
  pending_ = "file,class,class_name,probability,error";
  for (int64_t k = 2; k <= format_.top_k; ++k) {
    const std::string end = "_" + std::to_string(k);
    pending_ += ",class" + end + ",class_name" + end + ",probability" + end;
  }
  pending_ += '\n';
}

void PredictionFile::add_csv(const std::string& file, std::span<const double> ranked,
                             const std::string& why) {
  std::string line = csv_field(file);
  for (int64_t k = 0; k < format_.top_k; ++k) {
    std::string number, name, share;
    if (2 * static_cast<size_t>(k) + 1 < ranked.size()) {
      const auto label = static_cast<size_t>(ranked[2 * k]);
      const Json value = probability(ranked[2 * k + 1]);
      number = std::to_string(label);
      if (label < names_.size()) name = csv_field(names_[label]);
      if (!value.is_null()) share = value.dump();
    }
    line += "," + number + "," + name + "," + share;
    if (k == 0) line += "," + csv_field(why);
  }
  write(line);
}

void PredictionFile::add(const std::string& file, std::span<const double> ranked) {
  if (format_.csv) return add_csv(file, ranked, "");
  Json top = Json::array();
  for (size_t k = 0; k + 1 < ranked.size(); k += 2) {
    const auto label = static_cast<size_t>(ranked[k]);
    Json one = {{"class", label}};
    if (label < names_.size()) one["class_name"] = names_[label];
    one["probability"] = probability(ranked[k + 1]);
    top.push_back(std::move(one));
  }
  Json line = {{"file", file}};
  for (const auto& [key, value] : top.at(0).items()) line[key] = value;
  line["top"] = std::move(top);
  write(line.dump_lossy());
}

void PredictionFile::add_failure(const std::string& file, const std::string& why) {
  if (format_.csv) return add_csv(file, {}, why);
  const Json line = {{"file", file}, {"error", why}};
  write(line.dump_lossy());
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
  sync_file(fd_.get(), path_);
  if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    throw_errno("cannot rename the new file into place", path_);
  }
  fd_.reset();
}

}  // namespace fleet
