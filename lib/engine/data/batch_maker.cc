#include <algorithm>

#include "data/batch_slot.h"
#include "observe/trace_recorder.h"

namespace fleet::data {
namespace {

SamplerOptions sampler_options(const InputPipeline::Options& options, const Source& source) {
  SamplerOptions sampler = options.sampler;
  sampler.samples = source.size();
  return sampler;
}

}  // namespace

BatchMaker::BatchMaker(std::unique_ptr<Source> source, AugmentChain chain,
                       const InputPipeline::Options& options)
    : source_(std::move(source)),
      columns_(source_->columns()),
      has_images_(find_column(columns_, "image") != nullptr),
      fills_(std::ranges::any_of(
          columns_, [](const Column& one) { return one.name != "image" && one.name != "label"; })),
      weighs_(find_column(columns_, "loss_weight") != nullptr),
      chain_(std::move(chain)),
      options_(options),
      damage_(*source_, {.fail = options.fail_on_damaged,
                         .evaluation = options.evaluation,
                         .read_timeout = options.read_timeout}),
      storage_(std::make_shared<StorageState>(
          StorageState::Options{.timeout = options.read_timeout,
                                .was_there = !options.reports_damaged,
                                .clock = options.clock})),
      sampler_(sampler_options(options, *source_)),
      cache_(options.cache_bytes > 0
                 ? std::make_shared<ImageCache>(source_->size(), options.cache_bytes)
                 : nullptr) {}

BatchSlot::Layout BatchMaker::layout() const {
  return {options_.sampler.batch, options_.image, options_.bytes, chain_.mixes(), columns_};
}

void BatchMaker::prepare_class_weights(BatchSlot& slot) const {
  if (class_weights_.empty()) return;
  slot.class_weights = class_weights_;
  slot.batch.class_weights = slot.class_weights;
}

// A damaged image counts with its own label here, not with that of its replacement.
double BatchMaker::sample_weight(const Pick& pick) const {
  if (weighs_) return pick.real ? source_->weight(pick.sample) : 0;
  const auto classes = static_cast<int64_t>(class_weights_.size());
  const int64_t label = source_->label(pick.sample);
  const bool counts = label >= 0 && label < classes && label != options_.ignored_label;
  return counts ? static_cast<double>(class_weights_[label]) : 0;
}

// `sum` and the weights of the samples in global batches [from, end) of the sampler's epoch. Every
// rank knows those of all ranks' batches.
double BatchMaker::batch_weights(const Sampler& sampler, int64_t from, int64_t end,
                                 double sum) const {
  const int64_t global = sampler.global_batch();
  for (int64_t i = from * global; i < end * global; ++i) sum += sample_weight(sampler.at(i));
  return sum;
}

// An update may begin in one epoch and end in another. Its sum is always formed in the same order,
// so that a resumed run continues with the same bits.
double BatchMaker::update_weights(int64_t index) {
  const int64_t batches = sampler_.batches(), k = merged_steps_;
  // Batches are counted from the first one of epoch 0.
  const int64_t own = sampler_.epoch() * batches + index;
  const int64_t first = own - ((first_step_ + index) % k + k) % k;
  if (update_ && update_->first == first) return update_->weights;
  double sum = 0;
  for (int64_t at = std::max<int64_t>(first, 0), end = first + k; at < end;) {
    const int64_t epoch = at / batches, from = at % batches;
    const int64_t count = std::min(batches - from, end - at);
    if (epoch == sampler_.epoch()) {
      sum = batch_weights(sampler_, from, from + count, sum);
    } else {
      Sampler other = sampler_;
      other.start_epoch(epoch);
      sum = batch_weights(other, from, from + count, sum);
    }
    at += count;
  }
  update_ = {.first = first, .weights = sum};
  return sum;
}

void BatchMaker::scale_class_weights(BatchSlot& slot, int64_t index) {
  const auto classes = static_cast<int64_t>(class_weights_.size());
  const double sum = update_weights(index);
  const auto samples = static_cast<double>(merged_steps_ * sampler_.global_batch());
  const double scale = sum > 0 ? samples / sum : 0;
  for (int64_t c = 0; c < classes; ++c) {
    slot.class_weights[c] = static_cast<float>(scale * static_cast<double>(class_weights_[c]));
  }
}

void BatchMaker::set_denominator(BatchSlot& slot, int64_t index) {
  if (!weighs_ || options_.evaluation) return;
  const double sum = update_weights(index);
  const auto batches = static_cast<double>(merged_steps_ * options_.sampler.ranks);
  slot.batch.denominator = sum > 0 ? static_cast<float>(sum / batches) : 1;
}

void BatchMaker::begin(BatchSlot& slot, int64_t index) {
  slot.batch.epoch = sampler_.epoch();
  slot.batch.index = index;
  slot.missing = items();
  slot.made = -1;
  slot.error = nullptr;
  slot.damaged.clear();
  set_denominator(slot, index);
  if (!class_weights_.empty() && !options_.evaluation) scale_class_weights(slot, index);
}

bool BatchMaker::make_image(SampleMaker& maker, BatchSlot& slot, int64_t i, int64_t sample,
                            uint64_t key, std::string* why) {
  if (damage_.is_stalled(sample, why)) return false;
  try {
    if (!options_.bytes) {
      return maker.make(sample, key, static_cast<float*>(slot.image_at(i)), why);
    }
    bool flip = false;
    if (!maker.make_bytes(sample, key, static_cast<uint8_t*>(slot.image_at(i)), &flip, why)) {
      return false;
    }
    slot.flips[i] = flip ? 1 : 0;
    return true;
  } catch (const ImageSizeError& error) {
    // Training and evaluation end: they would silently use only a part of the data.
    if (!options_.reports_damaged) throw;
    *why = error.failure() + "; " + error.next();
    return false;
  }
}

// The columns that are neither image nor label. The item behind the last sample only mixes images.
void BatchMaker::fill(BatchSlot& slot, int64_t i, int64_t sample, bool real) const {
  if (!fills_ || i >= options_.sampler.batch) return;
  source_->fill(sample, slot.columns_at(i));
  if (!real) slot.clear_loss_weights(i);
  slot.loss_weights[i] = real ? source_->weight(sample) : 0;
}

std::vector<Damaged> BatchMaker::make(SampleMaker& maker, BatchSlot& slot, int64_t index,
                                      int64_t i) {
  const Pick pick =
      i < options_.sampler.batch ? sampler_.pick(index, i) : sampler_.before_first(index);
  const uint64_t key = sample_key(options_.sampler.seed, sampler_.epoch(), pick.draw);
  std::vector<Damaged> damaged;
  int64_t sample = pick.sample;
  ReadRetry retry(*storage_);
  for (std::string why; has_images_ && !make_image(maker, slot, i, sample, key, &why);) {
    damaged.push_back({sample, why, maker.unreadable()});
    if (options_.reports_damaged) {
      slot.blacken(i);
      break;
    }
    if (damage_.all_unreadable(damaged)) {  // a part of the storage is away
      retry.wait(why, source_->name(sample));
      damaged.clear();
      sample = pick.sample;
      continue;
    }
    damage_.check(damaged);
    sample = (sample + 1) % source_->size();
  }
  const bool counts = pick.real && !(options_.evaluation && !damaged.empty());
  slot.labels[i] = source_->label(sample);
  slot.samples[i] = sample;
  slot.keys[i] = key;
  slot.weights[i] = counts ? 1.0f : 0.0f;
  fill(slot, i, sample, counts);
  if (options_.reports_damaged) {
    slot.why[i] = damaged.empty() ? "" : damaged[0].why;
  } else if (!damaged.empty()) {
    damage_.report(damaged);
  }
  return damaged;
}

void BatchMaker::mix(BatchSlot& slot, int64_t index) const {
  if (!chain_.mixes()) return;
  slot.mix(chain_.mix(sample_key(options_.sampler.seed, sampler_.epoch(), index)), alone());
}

}  // namespace fleet::data
