// Files of predictions: JSON lines, CSV (RFC 4180), and arrays of NumPy (.npy, version 1.0).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "models/prediction_decoder.h"

namespace fleet {

// The meaning of the numbers of a prediction.
struct PredictionLayout {
  enum class Kind {
    kClasses,      // class and probability, `numbers` / 2 times, the likeliest first
    kNumbers,      // the values that a regression predicts
    kEmbedding,    // a vector that stands for the sample
    kScores,       // the probabilities of all classes, by class: for arrays
    kProbability,  // one probability: that the event happens
    kDecoded,      // `decoder` makes lines of them
  };
  Kind kind = Kind::kClasses;
  int64_t numbers = 0;             // a sample has so many
  std::vector<std::string> names;  // class names; may be empty
  std::shared_ptr<const PredictionDecoder> decoder = nullptr;
};

// Writes a temporary file, which finish() renames; without finish() nothing remains. Samples come
// in the order of the file. Not thread-safe.
class PredictionFile {
 public:
  virtual ~PredictionFile() = default;
  // name: tells the sample. kIo.
  virtual void add(const std::string& name, std::span<const double> numbers) = 0;
  // For kDecoded: the members of the sample's line.
  virtual void add_line(const std::string& name, const Json& members);
  // A sample without a prediction. An array has NaN for it.
  virtual void add_failure(const std::string& name, const std::string& why) = 0;
  virtual void finish() = 0;
};

// format: "jsonl", "csv" or "npy". path: "-" is standard output. samples: how many there will be.
// kIo; kUsage if the path cannot be replaced.
std::unique_ptr<PredictionFile> open_prediction_file(const std::string& format,
                                                     const std::string& path,
                                                     const PredictionLayout& layout,
                                                     int64_t samples);

// Bytes of a file under another name, or of standard output. Not thread-safe.
class PredictionBytes {
 public:
  explicit PredictionBytes(const std::string& path);
  ~PredictionBytes();
  PredictionBytes(const PredictionBytes&) = delete;

  void write(std::string_view bytes);
  void finish();

 private:
  void flush();

  const std::string path_;
  std::string aside_;  // "": standard output
  UniqueFd fd_;
  std::string pending_;
};

}  // namespace fleet
