#include "models/class_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fleet {
namespace {

constexpr size_t kCurves = 8;          // that a picture shows
constexpr size_t kPoints = 100;        // of a curve
constexpr int64_t kMatrixSide = 40;    // classes of a confusion matrix
constexpr double kDigits = 1'000'000;  // of the points

Json six_digits(double value) {
  return std::isfinite(value) ? Json(std::round(value * kDigits) / kDigits) : Json(nullptr);
}

Json whole(double count) { return static_cast<int64_t>(count); }

Json list_of(const std::vector<double>& values, Json (*text)(double)) {
  Json list = Json::array();
  for (const double value : values) list.push_back(text(value));
  return list;
}

bool is_worse(const WorstSample& a, const WorstSample& b) {
  return a.loss != b.loss ? a.loss > b.loss : a.sample < b.sample;
}

// Pixels in a double, which holds whole numbers of 53 bits.
constexpr size_t kMarkBits = 48;

void append_pixels(const PixelMarks& marks, std::vector<double>* to) {
  to->insert(to->end(), {static_cast<double>(marks.height), static_cast<double>(marks.width)});
  for (size_t at = 0; at < marks.marked.size(); at += kMarkBits) {
    uint64_t bits = 0;
    for (size_t i = at; i < std::min(at + kMarkBits, marks.marked.size()); ++i) {
      bits |= uint64_t{marks.marked[i]} << (i - at);
    }
    to->push_back(static_cast<double>(bits));
  }
}

// Returns what follows.
const double* take_pixels(const double* from, PixelMarks* marks) {
  marks->height = static_cast<int>(*from++);
  marks->width = static_cast<int>(*from++);
  marks->marked.resize(size_t(marks->height) * marks->width);
  for (size_t at = 0; at < marks->marked.size(); at += kMarkBits) {
    const auto bits = static_cast<uint64_t>(*from++);
    for (size_t i = at; i < std::min(at + kMarkBits, marks->marked.size()); ++i) {
      marks->marked[i] = bits >> (i - at) & 1;
    }
  }
  return from;
}

// All of a few classes; of more, those with the most samples that are, or are taken for, another's.
std::vector<int64_t> matrix_classes(const ClassReport& report) {
  std::vector<int64_t> classes(static_cast<size_t>(report.pairs->classes));
  std::iota(classes.begin(), classes.end(), int64_t{0});
  if (report.pairs->classes <= kMatrixSide) return classes;
  const ClassTotals& totals = report.totals;
  const auto wrong = [&](int64_t c) {
    return totals.own[c] + totals.predicted[c] - 2 * totals.hits[c];
  };
  std::ranges::stable_sort(classes, [&](auto a, auto b) { return wrong(a) > wrong(b); });
  classes.resize(kMatrixSide);
  std::ranges::sort(classes);
  return classes;
}

Json matrix_of(const ClassReport& report) {
  const std::vector<int64_t> classes = matrix_classes(report);
  Json counts = Json::array();
  for (const int64_t own : classes) {
    for (const int64_t predicted : classes) {
      counts.push_back(whole(report.pairs->at(own, predicted)));
    }
  }
  Json matrix = Json::object();
  matrix["classes"] = classes;
  matrix["counts"] = std::move(counts);
  return matrix;
}

Json calibration_of(const ScoreSums& sums) {
  Json bins = Json::array();
  for (size_t i = 0; i < kCalibrationBins; ++i) {
    CalibrationBin bin = sums.bins[i];
    if (i + 1 == kCalibrationBins) {
      const CalibrationBin& certain = sums.bins[kCalibrationBins];
      bin.samples += certain.samples;
      bin.hits += certain.hits;
      bin.confidence += certain.confidence;
    }
    const double samples = std::max(bin.samples, 1.0);
    bins.push_back(whole(bin.samples));
    bins.push_back(six_digits(bin.confidence / samples));
    bins.push_back(six_digits(bin.hits / samples));
  }
  return bins;
}

Json curves_of(const ClassReport& report) {
  Json curves = Json::array();
  for (const int64_t c : report.curves->shown(report.exclusive)) {
    Json curve = Json::object();
    curve["class"] = c;
    curve["points"] = report.curves->points(c);
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace

bool WorstSamples::takes(double loss) const {
  return samples_.size() < kMost || loss >= samples_[kMost - 1].loss;
}

void WorstSamples::add(WorstSample sample) {
  if (std::isnan(sample.loss)) sample.loss = INFINITY;
  for (auto* classes : {&sample.expected, &sample.predicted}) {
    if (classes->size() > kMostClasses) classes->resize(kMostClasses);
  }
  const auto place = std::ranges::upper_bound(samples_, sample, is_worse);
  samples_.insert(place, std::move(sample));
  keep_worst();
}

void WorstSamples::keep_worst() {
  std::ranges::sort(samples_, is_worse);
  if (samples_.size() > kMost) samples_.resize(kMost);
}

void WorstSamples::finish(RankExchange& ranks) {
  std::vector<double> own;
  for (const WorstSample& one : samples_) {
    own.insert(own.end(), {one.loss, static_cast<double>(one.sample), one.probability});
    for (const auto* classes : {&one.expected, &one.predicted}) {
      own.push_back(static_cast<double>(classes->size()));
      own.insert(own.end(), classes->begin(), classes->end());
    }
    append_pixels(one.wrong, &own);
  }
  samples_.clear();
  for (const std::vector<double>& rank : ranks.gather(own)) {
    for (const double* at = rank.data(); at < rank.data() + rank.size();) {
      WorstSample one{.loss = at[0], .sample = static_cast<int64_t>(at[1]), .probability = at[2]};
      at += 3;
      for (auto* classes : {&one.expected, &one.predicted}) {
        const auto count = static_cast<int64_t>(*at++);
        for (int64_t i = 0; i < count; ++i) classes->push_back(static_cast<int64_t>(*at++));
      }
      at = take_pixels(at, &one.wrong);
      samples_.push_back(std::move(one));
    }
  }
  keep_worst();
}

CurveReport::CurveReport(int64_t classes)
    : areas_(static_cast<size_t>(classes)),
      precisions_(static_cast<size_t>(classes)),
      points_(static_cast<size_t>(classes)) {}

void CurveReport::add(int64_t c, const ScoreCurve& curve) {
  areas_[c] = area_under_roc(curve);
  precisions_[c] = average_precision(curve);
  Json points = Json::array();
  const double negatives = std::max(curve.negatives, 1.0);
  const size_t count = curve.points.size(), parts = kPoints - 1;
  double hits = 0;
  size_t next = 0;
  for (size_t p = 0; p < count; ++p) {
    const ScoreCurve::Point& point = curve.points[p];
    hits += point.positives;
    const double others = point.negatives_above + point.negatives;
    // Evenly, with the first and the last one.
    if (count > kPoints && p < next * (count - 1) / parts) continue;
    ++next;
    const double before = count > kPoints ? others : point.negatives_above;
    for (const double value :
         {before / negatives, others / negatives, hits / curve.positives, hits / (hits + others)}) {
      points.push_back(six_digits(value));
    }
  }
  points_[c] = std::move(points);
}

std::vector<int64_t> CurveReport::shown(bool exclusive) const {
  std::vector<int64_t> classes;
  for (size_t c = 0; c < areas_.size(); ++c) {
    if (!std::isnan(precisions_[c])) classes.push_back(static_cast<int64_t>(c));
  }
  if (exclusive && areas_.size() == 2) {
    // The curve of class 0 is the same, mirrored.
    std::erase(classes, int64_t{0});
    return classes;
  }
  if (classes.size() <= kCurves) return classes;
  std::ranges::stable_sort(classes,
                           [&](auto a, auto b) { return precisions_[a] < precisions_[b]; });
  classes.resize(kCurves);
  std::ranges::sort(classes);
  return classes;
}

NamedNumbers numbers_by_class(const ClassTotals& totals, const CurveReport* curves) {
  std::vector<double> precision, recall, f1;
  for (size_t c = 0; c < totals.own.size(); ++c) {
    const ClassScores scores = scores_of_class(totals, static_cast<int64_t>(c));
    precision.push_back(scores.precision);
    recall.push_back(scores.recall);
    f1.push_back(scores.f1);
  }
  NamedNumbers all = {{"class_precision", precision}, {"class_recall", recall}, {"class_f1", f1}};
  if (!curves) return all;
  all.emplace_back("class_auroc", curves->areas());
  all.emplace_back("class_ap", curves->precisions());
  return all;
}

Json class_report(const ClassReport& report) {
  Json json = Json::object();
  json["exclusive"] = report.exclusive;
  json["samples"] = whole(report.samples);
  json["support"] = list_of(report.totals.own, whole);
  json["predicted"] = list_of(report.totals.predicted, whole);
  for (const auto& [name, values] : numbers_by_class(report.totals, report.curves)) {
    json[name.substr(std::string("class_").size())] = list_of(values, six_digits);
  }
  if (!report.iou.empty()) {
    json["unit"] = "pixels";
    json["iou"] = list_of(report.iou, six_digits);
  }
  if (report.few > 0) json["few"] = report.few;
  if (report.curves) json["curves"] = curves_of(report);
  if (report.pairs) json["confusion"] = matrix_of(report);
  if (report.sums) json["calibration"] = calibration_of(*report.sums);
  return json;
}

}  // namespace fleet
