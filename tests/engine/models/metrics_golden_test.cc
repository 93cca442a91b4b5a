// 1,000 random cases of each metric against scikit-learn, scipy, seqeval and SQuAD's script
// (scripts/make_golden_metrics.py, which draws the same cases).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "models/metrics_answers.h"
#include "models/metrics_classes.h"
#include "models/metrics_entities.h"
#include "models/metrics_numbers.h"
#include "tests/golden/golden.h"

namespace fleet {
namespace {

constexpr int kCases = 1000, kGroup = 25;

class Draw {
 public:
  explicit Draw(const std::string& name) : at_(golden::fnv1a(name)) {}
  int64_t operator()(int64_t below) {
    return static_cast<int64_t>((golden::splitmix64(at_++) >> 11) % static_cast<uint64_t>(below));
  }

 private:
  uint64_t at_;
};

std::string case_name(const std::string& kind, int i) { return kind + std::to_string(i); }

ClassPairs class_case(int i, bool binary) {
  Draw draw(case_name("classes", i));
  const int64_t classes = 2 + draw(4), samples = 1 + draw(30), mode = draw(5);
  ClassPairs pairs{binary ? 2 : classes, {}};
  pairs.counts.resize(static_cast<size_t>(pairs.classes * pairs.classes));
  for (int64_t n = 0; n < samples; ++n) {
    const int64_t label = draw(classes), other = draw(classes);
    const bool hit = draw(4) > 0;
    int64_t own = mode == 0 ? 1 : label;
    int64_t predicted = mode == 1 ? 0 : mode > 2 && hit ? label : other;
    if (binary) own = std::min<int64_t>(own, 1), predicted = std::min<int64_t>(predicted, 1);
    pairs.counts[static_cast<size_t>(own * pairs.classes + predicted)] += 1;
  }
  return pairs;
}

struct Numbers {
  std::vector<double> targets, predictions;
};

Numbers number_case(int i) {
  Draw draw(case_name("numbers", i));
  const int64_t samples = 2 + draw(30), mode = draw(6);
  const auto value = [&] {
    return mode < 2 ? static_cast<double>(draw(4)) : static_cast<double>(draw(1 << 20)) / 1024;
  };
  Numbers numbers;
  for (int64_t n = 0; n < samples; ++n) {
    const double a = value(), b = value();
    numbers.targets.push_back(mode == 2 ? 3.5 : a);
    numbers.predictions.push_back(mode == 3 ? 1 : mode == 4 ? a / 2 + b / 8 : b);
  }
  return numbers;
}

EntityCounts entity_case(int i) {
  static const std::vector<std::string> tags = {
      "O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC", "E-PER", "S-LOC", "I", "B", "E-LOC-2", "X-LOC"};
  Draw draw(case_name("entities", i));
  const int64_t texts = 1 + draw(4), known = 2 + draw(static_cast<int64_t>(tags.size()) - 1);
  EntityCounts counts;
  for (int64_t n = 0; n < texts; ++n) {
    const int64_t length = draw(10);
    std::vector<EntityTag> expected, predicted;
    for (int64_t k = 0; k < length; ++k) {
      const std::string& tag = tags[draw(known)];
      const std::string& other = tags[draw(known)];
      expected.push_back(entity_tag(tag));
      predicted.push_back(entity_tag(draw(3) > 0 ? tag : other));
    }
    add_entities(expected, predicted, &counts);
  }
  return counts;
}

std::string answer_of(Draw& draw) {
  static const std::vector<std::string> words = {
      "the",   "The",     "a",     "An",    "cat",      "Cat", "cat's",   "U.S.",
      "É",     "é",       "naïve", "1,000", "Straße",   "-",   "–",       "_",
      "don't", "the_cat", "½",     "ÇA",    "x\u00a0y", "(a)", "Theatre", "a–the"};
  static const std::vector<std::string> joints = {" ", "  ", "\t", "\u2003"};
  std::vector<std::string> drawn(static_cast<size_t>(draw(5)));
  for (std::string& word : drawn) word = words[draw(static_cast<int64_t>(words.size()))];
  std::string text;
  for (const std::string& word : drawn) {
    text += word + joints[draw(static_cast<int64_t>(joints.size()))];
  }
  return text;
}

// upper() of the words above.
std::string upper_case(std::string text) {
  const std::vector<std::pair<std::string, std::string>> others = {
      {"é", "É"}, {"ï", "Ï"}, {"ß", "SS"}};
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  for (const auto& [from, to] : others) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

AnswerSums answer_case(int i) {
  Draw draw(case_name("answers", i));
  std::vector<std::string> right(static_cast<size_t>(draw(4)));
  for (std::string& one : right) one = answer_of(draw);
  std::string answer;
  if (draw(3) > 0 && !right.empty()) {
    answer = draw(2) != 0 ? upper_case(right[0]) : right[0] + answer_of(draw);
  } else {
    answer = answer_of(draw);
  }
  AnswerSums sums;
  add_answer(right, answer, &sums);
  return sums;
}

TEST(MetricsGolden, ThousandRandomCases_EqualThePeers) {
  const auto classes = [](auto metric) {
    return [=](int i) { return metric(class_case(i, false)); };
  };
  const auto numbers = [](auto metric) {
    return [=](int i) {
      const Numbers one = number_case(i);
      return metric(one.targets, one.predictions);
    };
  };
  const auto entities = [](auto metric) { return [=](int i) { return metric(entity_case(i)); }; };
  const NamedMetric& tag_accuracy = named_metric_registry().get("accuracy");
  const std::map<std::string, std::function<double(int)>> metrics = {
      {"accuracy", classes(accuracy)},
      {"macro_f1", classes(macro_f1)},
      {"matthews", classes(matthews)},
      {"f1", [](int i) { return f1_of_class(class_case(i, true), 1); }},
      {"binary_matthews", [](int i) { return matthews(class_case(i, true)); }},
      {"pearson", numbers(pearson)},
      {"spearman", numbers(spearman)},
      {"entity_f1", entities(entity_f1)},
      {"entity_precision", entities(entity_precision)},
      {"entity_recall", entities(entity_recall)},
      {"tag_accuracy", entities(tag_accuracy.of_entities)},
      {"exact_match", [](int i) { return answer_case(i).exact; }},
      {"answer_f1", [](int i) { return answer_case(i).f1; }}};
  const auto json =
      nlohmann::json::parse(std::ifstream(source_folder() + "/tests/golden/metrics.json"));
  ASSERT_EQ(json.size(), metrics.size());
  for (const auto& [name, metric] : metrics) {
    const std::vector<double> sums = json.at(name);
    ASSERT_EQ(sums.size(), kCases / kGroup);
    for (int group = 0; group < kCases / kGroup; ++group) {
      double sum = 0;
      for (int i = group * kGroup; i < (group + 1) * kGroup; ++i) {
        const double weight =
            1 + static_cast<double>(Draw(case_name(name, i))(1 << 20)) / (1 << 20);
        const double value = metric(i);
        sum += weight * (std::isnan(value) ? 7 : value);
      }
      EXPECT_NEAR(sum, sums[group], 1e-8) << name << ", group " << group;
    }
  }
}

}  // namespace
}  // namespace fleet
