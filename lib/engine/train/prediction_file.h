// Predictions as JSON lines or as CSV (RFC 4180).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace fleet {

// Writes a temporary file, which finish() renames; without finish() nothing remains. Not
// thread-safe.
class PredictionFile {
 public:
  struct Format {
    bool csv = false;
    int64_t top_k = 1;  // classes of a line
  };
  // path: "-" is standard output. names: of classes; may be empty. kIo.
  PredictionFile(const std::string& path, std::vector<std::string> names, const Format& format);
  ~PredictionFile();
  PredictionFile(const PredictionFile&) = delete;

  // ranked: class and probability of the top_k likeliest classes, in descending order. kIo.
  void add(const std::string& file, std::span<const double> ranked);
  void add_failure(const std::string& file, const std::string& why);
  void finish();

 private:
  void write_csv_head();
  void add_csv(const std::string& file, std::span<const double> ranked, const std::string& why);
  void write(const std::string& line);
  void flush();

  const std::string path_;
  const std::vector<std::string> names_;
  const Format format_;
  std::string aside_;  // "": standard output
  UniqueFd fd_;
  std::string pending_;
};

}  // namespace fleet
