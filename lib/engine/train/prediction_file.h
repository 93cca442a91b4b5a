// Predictions as JSON lines.
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
  // path: "-" is standard output. names: of classes; may be empty. kIo.
  PredictionFile(const std::string& path, std::vector<std::string> names);
  ~PredictionFile();
  PredictionFile(const PredictionFile&) = delete;

  // ranked: class and probability of the likeliest classes, in descending order. kIo.
  void add(const std::string& file, std::span<const double> ranked);
  void add_failure(const std::string& file, const std::string& why);
  void finish();

 private:
  void write(const std::string& line);
  void flush();

  const std::string path_;
  const std::vector<std::string> names_;
  std::string aside_;  // "": standard output
  UniqueFd fd_;
  std::string pending_;
};

}  // namespace fleet
