#include "train/prediction_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/csv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/owned_file.h"
#include "base/regular_file.h"
#include "base/rounded.h"
#include "base/sync.h"

namespace fleet {
namespace {

constexpr size_t kPiece = size_t{1} << 16;

using Kind = PredictionLayout::Kind;

// To the digits of a float32.
double rounded(double value) { return rounded_to_digits(value, 7); }

// Likewise for values that are compared with others: nine digits tell any two of them apart.
double exact(double value) { return rounded_to_digits(value, 9); }

std::string csv_number(double value) { return std::isfinite(value) ? Json(value).dump() : ""; }

class JsonLines : public PredictionFile {
 public:
  JsonLines(const std::string& path, PredictionLayout layout)
      : bytes_(path), layout_(std::move(layout)) {}

  void add(const std::string& name, std::span<const double> numbers) override {
    Json line = named(name);
    if (layout_.kind == Kind::kClasses) {
      add_classes(numbers, &line);
    } else if (layout_.kind == Kind::kNumbers && numbers.size() == 1) {
      line["value"] = exact(numbers[0]);
    } else if (layout_.kind == Kind::kProbability) {
      line["probability"] = exact(numbers[0]);
    } else {
      std::vector<Json> values;
      for (const double value : numbers) values.push_back(exact(value));
      line[layout_.kind == Kind::kEmbedding ? "embedding" : "values"] =
          Json::array(std::move(values));
    }
    bytes_.write(line.dump_lossy() + "\n");
  }
  void add_line(const std::string& name, const Json& members) override {
    Json line = named(name);
    for (const auto& [key, value] : members.items()) line[key] = value;
    bytes_.write(line.dump_lossy() + "\n");
  }
  void add_failure(const std::string& name, const std::string& why) override {
    Json line = named(name);
    line["error"] = why;
    bytes_.write(line.dump_lossy() + "\n");
  }
  void finish() override { bytes_.finish(); }

 private:
  Json named(const std::string& name) const {
    Json line = Json::object();
    line[layout_.decoder ? layout_.decoder->name_key() : "file"] = name;
    return line;
  }

  void add_classes(std::span<const double> ranked, Json* line) const {
    Json top = Json::array();
    for (size_t k = 0; k + 1 < ranked.size(); k += 2) {
      const auto label = static_cast<size_t>(ranked[k]);
      Json one = {{"class", label}};
      if (label < layout_.names.size()) one["class_name"] = layout_.names[label];
      one["probability"] = rounded(ranked[k + 1]);
      top.push_back(std::move(one));
    }
    for (const auto& [key, value] : top.at(0).items()) (*line)[key] = value;
    (*line)["top"] = std::move(top);
  }

  PredictionBytes bytes_;
  const PredictionLayout layout_;
};

// Classes: "file,class,class_name,probability,error", then three columns for each further class.
// Numbers: "file,value,error", then "value_2" and so on. One probability: "file,probability,error".
class CsvLines : public PredictionFile {
 public:
  CsvLines(const std::string& path, PredictionLayout layout)
      : bytes_(path), layout_(std::move(layout)) {
    const bool classes = layout_.kind == Kind::kClasses;
    const int64_t groups = classes ? layout_.numbers / 2 : layout_.numbers;
    std::string head = classes ? "file,class,class_name,probability,error"
                       : layout_.kind == Kind::kProbability ? "file,probability,error"
                                                            : "file,value,error";
    for (int64_t k = 2; k <= groups; ++k) {
      const std::string end = "_" + std::to_string(k);
      head +=
          classes ? ",class" + end + ",class_name" + end + ",probability" + end : ",value" + end;
    }
    bytes_.write(head + "\n");
  }

  void add(const std::string& name, std::span<const double> numbers) override {
    add_line(name, numbers, "");
  }
  void add_failure(const std::string& name, const std::string& why) override {
    add_line(name, {}, why);
  }
  void finish() override { bytes_.finish(); }

 private:
  void add_line(const std::string& name, std::span<const double> numbers, const std::string& why) {
    const size_t step = layout_.kind == Kind::kClasses ? 2 : 1;
    std::string line = csv_field(name);
    for (size_t at = 0; at < static_cast<size_t>(layout_.numbers); at += step) {
      const bool has = at + step <= numbers.size();
      line += step == 2 ? class_fields(numbers, at, has)
                        : "," + (has ? csv_number(exact(numbers[at])) : "");
      if (at == 0) line += "," + csv_field(why);
    }
    bytes_.write(line + "\n");
  }

  std::string class_fields(std::span<const double> ranked, size_t at, bool has) const {
    if (!has) return ",,,";
    const auto label = static_cast<size_t>(ranked[at]);
    const std::string name = label < layout_.names.size() ? csv_field(layout_.names[label]) : "";
    return "," + std::to_string(label) + "," + name + "," + csv_number(rounded(ranked[at + 1]));
  }

  PredictionBytes bytes_;
  const PredictionLayout layout_;
};

// numpy.lib.format: float32 [samples, numbers], in row-major order.
class NumpyArray : public PredictionFile {
 public:
  NumpyArray(const std::string& path, PredictionLayout layout, int64_t samples)
      : bytes_(path), layout_(std::move(layout)) {
    static_assert(std::endian::native == std::endian::little);
    std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(samples) + ", " + std::to_string(layout_.numbers) + "), }";
    constexpr size_t kFixed = 10, kAlignment = 64;
    head.append(kAlignment - (kFixed + head.size() + 1) % kAlignment, ' ');
    head += '\n';
    const auto size = static_cast<uint16_t>(head.size());
    std::string start("\x93NUMPY\x01\x00", 8);
    start += static_cast<char>(size & 0xFF);
    start += static_cast<char>(size >> 8);
    bytes_.write(start + head);
  }

  void add(const std::string& /*name*/, std::span<const double> numbers) override {
    std::vector<float> row(numbers.begin(), numbers.end());
    row.resize(static_cast<size_t>(layout_.numbers), std::numeric_limits<float>::quiet_NaN());
    bytes_.write({reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)});
  }
  void add_failure(const std::string& name, const std::string& /*why*/) override { add(name, {}); }
  void finish() override { bytes_.finish(); }

 private:
  PredictionBytes bytes_;
  const PredictionLayout layout_;
};

}  // namespace

void PredictionFile::add_line(const std::string& name, const Json& /*members*/) {
  FLEET_CHECK(false, "a line of JSON in another format: " + name);
}

PredictionBytes::PredictionBytes(const std::string& path) : path_(path) {
  if (path == "-") return;
  check_replaceable(path);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) make_directories(folder);
  aside_ = path + ".part." + std::to_string(::getpid());
  fd_ =
      UniqueFd(::open(aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd_) throw_errno("cannot create the file", path);
}

PredictionBytes::~PredictionBytes() {
  if (fd_) ::unlink(aside_.c_str());
}

void PredictionBytes::write(std::string_view bytes) {
  pending_ += bytes;
  if (pending_.size() >= kPiece || aside_.empty()) flush();
}

void PredictionBytes::flush() {
  if (aside_.empty()) {
    std::fflush(stdout);
    write_all(STDOUT_FILENO, pending_, "standard output");
  } else {
    write_all(fd_.get(), pending_, path_);
  }
  pending_.clear();
}

void PredictionBytes::finish() {
  flush();
  if (aside_.empty()) return;
  sync_file(fd_.get(), path_);
  if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    throw_errno("cannot rename the new file into place", path_);
  }
  fd_.reset();
}

std::unique_ptr<PredictionFile> open_prediction_file(const std::string& format,
                                                     const std::string& path,
                                                     const PredictionLayout& layout,
                                                     int64_t samples) {
  if (format == "npy") return std::make_unique<NumpyArray>(path, layout, samples);
  if (format == "csv") return std::make_unique<CsvLines>(path, layout);
  return std::make_unique<JsonLines>(path, layout);
}

}  // namespace fleet
