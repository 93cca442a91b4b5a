#include <algorithm>
#include <cstring>

#include "data/batch_slot.h"
#include "data/lengths.h"
#include "observe/trace_recorder.h"

namespace fleet::data {
namespace {

SamplerOptions sampler_options(const InputPipeline::Options& options, const Source& source) {
  SamplerOptions sampler = options.sampler;
  sampler.samples = source.size();
  if (!options.lengths.empty()) sampler.lengths = length_classes(source, options.lengths);
  return sampler;
}

}  // namespace

BatchMaker::BatchMaker(std::unique_ptr<Source> source, AugmentChain chain,
                       const InputPipeline::Options& options)
    : source_(std::move(source)),
      columns_(with_mask_size(source_->columns(), options.image.height, options.image.width)),
      has_images_(find_column(columns_, "image") != nullptr),
      has_masks_(std::ranges::any_of(columns_, is_mask)),
      fills_(std::ranges::any_of(
          columns_, [](const Column& one) { return one.name != "image" && !is_class_label(one); })),
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
  return {options_.sampler.batch, options_.image, options_.bytes,
          chain_.mixes(),         columns_,       options_.lengths};
}

void BatchMaker::prepare_class_weights(BatchSlot& slot) const {
  if (class_weights_.empty()) return;
  slot.class_weights = class_weights_;
  slot.batch.class_weights = slot.class_weights;
}

uint64_t BatchMaker::source_key(const Sampler& sampler, const Pick& pick) const {
  if (options_.evaluation) return evaluation_key(pick.sample);
  return sample_key(options_.sampler.seed, sampler.epoch(), pick.draw);
}

// A damaged image counts with its own label here, not with that of its replacement.
double BatchMaker::sample_weight(const Sampler& sampler, const Pick& pick) const {
  if (weighs_) {
    return pick.real ? source_->weight(pick.sample, source_key(sampler, pick)) : 0;
  }
  if (class_weights_.empty()) return 0;
  const auto classes = static_cast<int64_t>(class_weights_.size());
  const int64_t label = source_->label(pick.sample);
  const bool counts = label >= 0 && label < classes && label != options_.ignored_label;
  return counts ? static_cast<double>(class_weights_[label]) : 0;
}

// Adds the samples in global batches [from, end) of the sampler's epoch. Every rank knows those of
// all ranks' batches.
void BatchMaker::add_batches(const Sampler& sampler, int64_t from, int64_t end,
                             Update* update) const {
  const int64_t global = sampler.global_batch();
  for (int64_t i = from * global; i < end * global; ++i) {
    const Pick pick = sampler.at(i);
    update->weights += sample_weight(sampler, pick);
    update->samples += pick.real ? 1 : 0;
  }
}

// An update may begin in one epoch and end in another. Its sum is always formed in the same order,
// so that a resumed run continues with the same bits.
const BatchMaker::Update& BatchMaker::update_of(int64_t index) {
  const int64_t batches = sampler_.batches(), k = merged_steps_;
  // Batches are counted from the first one of epoch 0.
  const int64_t own = sampler_.epoch() * batches + index;
  const int64_t first = own - ((first_step_ + index) % k + k) % k;
  if (update_ && update_->first == first) return *update_;
  Update update{.first = first};
  for (int64_t at = std::max<int64_t>(first, 0), end = first + k; at < end;) {
    const int64_t epoch = at / batches, from = at % batches;
    const int64_t count = std::min(batches - from, end - at);
    if (epoch == sampler_.epoch()) {
      add_batches(sampler_, from, from + count, &update);
    } else {
      Sampler other = sampler_;
      other.start_epoch(epoch);
      add_batches(other, from, from + count, &update);
    }
    at += count;
  }
  update_ = update;
  return *update_;
}

void BatchMaker::scale_class_weights(BatchSlot& slot, int64_t index) {
  const auto classes = static_cast<int64_t>(class_weights_.size());
  const double sum = update_of(index).weights;
  const auto samples = static_cast<double>(merged_steps_ * sampler_.global_batch());
  const double scale = sum > 0 ? samples / sum : 0;
  for (int64_t c = 0; c < classes; ++c) {
    slot.class_weights[c] = static_cast<float>(scale * static_cast<double>(class_weights_[c]));
  }
}

void BatchMaker::set_denominators(BatchSlot& slot, int64_t index) {
  if (!fills_ || options_.evaluation) return;  // losses of images alone are means
  const Update& update = update_of(index);
  const auto batches = static_cast<double>(merged_steps_ * options_.sampler.ranks);
  const auto part = [&](double sum) { return sum > 0 ? static_cast<float>(sum / batches) : 1.0f; };
  if (weighs_) slot.batch.denominator = part(update.weights);
  slot.batch.sample_denominator = part(static_cast<double>(update.samples));
}

void BatchMaker::begin(BatchSlot& slot, int64_t index) {
  slot.batch.epoch = sampler_.epoch();
  slot.batch.index = index;
  slot.missing = items();
  slot.made = -1;
  slot.error = nullptr;
  slot.damaged.clear();
  set_length(slot, index);
  set_denominators(slot, index);
  // The classes of pixels are not known before masks are read.
  if (!class_weights_.empty() && !options_.evaluation && !has_masks_) {
    scale_class_weights(slot, index);
  }
}

bool BatchMaker::make_image(SampleMaker& maker, BatchSlot& slot, int64_t i, int64_t sample,
                            uint64_t key, std::string* why) {
  if (damage_.is_stalled(sample, why)) return false;
  try {
    if (!options_.bytes) {
      return maker.make(sample, key, static_cast<float*>(slot.image_at(i)), why) &&
             make_mask(maker, slot, i, sample, key, why);
    }
    bool flip = false;
    if (!maker.make_bytes(sample, key, static_cast<uint8_t*>(slot.image_at(i)), &flip, why)) {
      return false;
    }
    slot.flips[i] = flip ? 1 : 0;
    return make_mask(maker, slot, i, sample, key, why);
  } catch (const ImageSizeError& error) {
    // Training and evaluation end: they would silently use only a part of the data.
    if (!options_.reports_damaged) throw;
    *why = error.failure() + "; " + error.next();
    return false;
  }
}

bool BatchMaker::make_mask(SampleMaker& maker, BatchSlot& slot, int64_t i, int64_t sample,
                           uint64_t key, std::string* why) {
  if (!has_masks_ || i >= options_.sampler.batch) return true;
  int64_t labelled = 0;
  if (!maker.make_mask(sample, key, slot.mask_at(i), &labelled, why)) return false;
  if (float* to = slot.labelled_pixels_at(i)) *to = static_cast<float>(labelled);
  return true;
}

// A source writes whole rows. Those of a shorter batch lack only padding.
void BatchMaker::fill_columns(BatchSlot& slot, int64_t i, uint64_t key) const {
  const std::vector<void*> to = slot.columns_at(i);
  const int64_t sample = slot.samples[i], length = slot.batch.length;
  if (length == row_length(columns_) || length == 0) return source_->fill(sample, key, to);
  std::vector<std::vector<std::byte>> rows(columns_.size());
  std::vector<void*> whole = to;
  const auto bytes = [](const Column& column) {
    return static_cast<size_t>(column.shape.elements()) * size_of(column.dtype);
  };
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (!columns_[c].by_length) continue;
    rows[c].resize(bytes(columns_[c]));
    whole[c] = rows[c].data();
  }
  source_->fill(sample, key, whole);
  const std::vector<Column> shorter = at_length(columns_, length);
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].by_length) std::memcpy(to[c], rows[c].data(), bytes(shorter[c]));
  }
}

// The columns that are neither image nor label. The item behind the last sample only mixes images.
void BatchMaker::fill(BatchSlot& slot, int64_t i, const Pick& pick, bool real) const {
  if (!fills_ || i >= options_.sampler.batch) return;
  const int64_t sample = slot.samples[i];
  const uint64_t key = source_key(sampler_, {sample, real, pick.draw});
  fill_columns(slot, i, key);
  if (!real) slot.clear_loss_weights(i);
  if (!real) slot.clear_mask(i);
  slot.loss_weights[i] = real ? source_->weight(sample, key) : 0;
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
  fill(slot, i, pick, counts);
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
