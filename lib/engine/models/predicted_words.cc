#include "models/predicted_words.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounded.h"
#include "models/entity_metrics.h"
#include "models/label_losses.h"

namespace fleet {
namespace {

// A row: its part, how many words it has, then class and probability of each.
constexpr size_t kHead = 2, kFields = 2;

class WordDecoder : public PredictionDecoder {
 public:
  explicit WordDecoder(int64_t length) : length_(static_cast<size_t>(length)) {}

  std::string output() const override { return "token_logits"; }
  size_t size() const override { return kHead + kFields * length_; }
  size_t used(std::span<const double> numbers) const override {
    return kHead + kFields * static_cast<size_t>(numbers[1]);
  }

  void read(const Rows& rows, int64_t row, std::span<double> to) const override {
    const std::span<const float> logits = rows.output("token_logits");
    const auto labels = rows.column_as<int64_t>("token_labels");
    const size_t length = labels.size() / rows.size, classes = logits.size() / labels.size();
    std::vector<double> probabilities(classes);
    size_t at = kHead;
    for (size_t token = row * length; token < (row + 1) * length; ++token) {
      if (labels[token] < 0) continue;
      const std::span<const float> own = logits.subspan(token * classes, classes);
      const int64_t label = largest_logit(own);
      softmax_row(own, probabilities);
      to[at++] = static_cast<double>(label);
      to[at++] = probabilities[static_cast<size_t>(label)];
    }
    to[0] = static_cast<double>(rows.column_as<int64_t>("part")[row]);
    to[1] = static_cast<double>((at - kHead) / kFields);
  }

  Json line(const Sample& sample) const override {
    const std::vector<std::string> words = sample.texts("words"), why = sample.texts("left_out");
    const std::vector<double> predicted = joined(sample.rows);
    std::vector<Json> all;
    int64_t left_out = 0;
    size_t at = 0;
    for (size_t w = 0; w < words.size(); ++w) {
      Json word = {{"text", words[w]}};
      if (!why[w].empty()) {
        word["error"] = why[w];
        ++left_out;
      } else {
        FLEET_CHECK(at < predicted.size(), "words without a prediction");
        word["label"] = label_of(predicted[at], sample.class_names);
        word["probability"] = rounded_to_digits(predicted[at + 1], 7);
        at += kFields;
      }
      all.push_back(std::move(word));
    }
    FLEET_CHECK(at == predicted.size(), "predictions without a word");
    Json members = Json::object();
    members["words"] = Json::array(std::move(all));
    if (left_out > 0) members["left_out"] = left_out;
    return members;
  }

 private:
  static Json label_of(double label, std::span<const std::string> names) {
    const auto number = static_cast<size_t>(label);
    return number < names.size() ? Json(names[number]) : Json(number);
  }

  // Class and probability of all words, in the order of the text.
  static std::vector<double> joined(std::vector<std::vector<double>> rows) {
    std::ranges::sort(rows, {}, [](const std::vector<double>& row) { return row[0]; });
    std::vector<double> all;
    for (const std::vector<double>& row : rows) {
      all.insert(all.end(), row.begin() + kHead, row.end());
    }
    return all;
  }

  const size_t length_;
};

}  // namespace

std::unique_ptr<PredictionDecoder> word_decoder(const TaskContext& context) {
  return std::make_unique<WordDecoder>(context.shape("token_labels")[1]);
}

}  // namespace fleet
