#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "data/random.h"
#include "data/sampler.h"
#include "data/source.h"

namespace fleet::data {
namespace {

class Subset : public Source {
 public:
  Subset(std::unique_ptr<Source> all, std::vector<int64_t> indices)
      : all_(std::move(all)), indices_(std::move(indices)) {}
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  int64_t label(int64_t index) const override { return all_->label(indices_[index]); }
  Sample read(int64_t index, std::vector<uint8_t>& scratch) const override {
    return all_->read(indices_[index], scratch);
  }
  Sample read_start(int64_t index, size_t bytes, std::vector<uint8_t>& scratch) const override {
    return all_->read_start(indices_[index], bytes, scratch);
  }
  MaskFile read_mask(int64_t index, std::vector<uint8_t>& scratch) const override {
    return all_->read_mask(indices_[index], scratch);
  }
  std::string name(int64_t index) const override { return all_->name(indices_[index]); }
  std::vector<std::string> class_names() const override { return all_->class_names(); }
  std::vector<Column> columns() const override { return all_->columns(); }
  void fill(int64_t index, uint64_t key, std::span<void* const> to) const override {
    all_->fill(indices_[index], key, to);
  }
  int64_t length(int64_t index) const override { return all_->length(indices_[index]); }
  double weight(int64_t index, uint64_t key) const override {
    return all_->weight(indices_[index], key);
  }
  std::vector<std::string> texts(int64_t index, const std::string& what) const override {
    return all_->texts(indices_[index], what);
  }
  TokenizerIdentity tokenizer() const override { return all_->tokenizer(); }

 private:
  std::unique_ptr<Source> all_;
  std::vector<int64_t> indices_;
};

}  // namespace

std::unique_ptr<Source> subset_of(std::unique_ptr<Source> all, std::vector<int64_t> indices) {
  return std::make_unique<Subset>(std::move(all), std::move(indices));
}

Split split_by_class(const Source& source, double part, uint64_t seed) {
  using Drawn = std::pair<uint64_t, int64_t>;  // the sort key, and the index
  std::map<int64_t, std::vector<Drawn>> classes;
  const uint64_t key = mix(seed ^ 0x73706c6974u);
  for (int64_t i = 0; i < source.size(); ++i) {
    classes[source.label(i)].emplace_back(mix(key + static_cast<uint64_t>(i)), i);
  }
  Split split;
  for (auto& [label, samples] : classes) {
    const auto count = static_cast<int64_t>(samples.size());
    const int64_t wanted = std::llround(static_cast<double>(count) * part);
    const int64_t taken = count < 2 ? 0 : std::clamp<int64_t>(wanted, 1, count - 1);
    std::sort(samples.begin(), samples.end());
    for (int64_t i = 0; i < count; ++i) {
      (i < taken ? split.validation : split.train).push_back(samples[i].second);
    }
  }
  if (split.validation.empty()) {
    throw Error(ErrorCode::kUsage, "no class has two samples", "data.validation_split",
                "use more data, or set separate test data (data.test)");
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.validation.begin(), split.validation.end());
  return split;
}

}  // namespace fleet::data
