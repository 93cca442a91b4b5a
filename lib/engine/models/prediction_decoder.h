// Predictions that are more than a class or a few numbers for each sample: tags of words, answers.
// Rows of a batch become numbers where they are computed, and those of a sample become a line of
// JSON on one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/task.h"

namespace fleet {

// Immutable: thread-safe.
class PredictionDecoder {
 public:
  using Rows = EvaluationCollector::Rows;
  virtual ~PredictionDecoder() = default;

  // The output of the model that it reads, [N, ...].
  virtual std::string output() const = 0;
  // Numbers of a row, at most.
  virtual size_t size() const = 0;
  // Those of row `row` of a batch. to: size() numbers. Rows have no `texts` here.
  virtual void read(const Rows& rows, int64_t row, std::span<double> to) const = 0;
  // How many of the numbers that read() has written count.
  virtual size_t used(std::span<const double> numbers) const = 0;

  struct Sample {
    std::vector<std::vector<double>> rows;  // the used numbers of all its rows, in any order
    // Texts of the sample (data::UnlabelledSamples::texts).
    std::function<std::vector<std::string>(const std::string& what)> texts;
    std::span<const std::string> class_names = {};  // by label; may be empty
    int64_t top = 1;                                // candidates to list, at most
  };
  // The members of the sample's line, without its name.
  virtual Json line(const Sample& sample) const = 0;

  // The key of a sample's name in the output.
  virtual std::string name_key() const { return "file"; }
  // Whether the numbers are classes of an image's pixels, for a file of their own.
  virtual bool gives_masks() const { return false; }
  // Whether lines list candidates.
  virtual bool lists() const { return false; }
};

}  // namespace fleet
