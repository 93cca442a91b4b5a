// The columns of a batch, by the names of their feeds.
#include <algorithm>
#include <array>

#include "data/pipeline.h"

namespace fleet::data {
namespace {

struct NamedSpan {
  std::string_view name;
  std::span<const std::byte> data;
};

// Columns that the pipeline makes itself.
std::array<NamedSpan, 11> own_columns(const Batch& batch) {
  return {{{"image", std::as_bytes(batch.images)},
           {"pixels", std::as_bytes(batch.pixels)},
           {"flip", std::as_bytes(batch.flips)},
           {"label", std::as_bytes(batch.labels)},
           {"weight", std::as_bytes(batch.weights)},
           {"sample_key", std::as_bytes(batch.keys)},
           {"class_weights", std::as_bytes(batch.class_weights)},
           {"other_label", std::as_bytes(batch.other_labels)},
           {"own_share", std::as_bytes(batch.own_shares)},
           {"denominator", std::as_bytes(std::span(&batch.denominator, 1))},
           {"sample_denominator", std::as_bytes(std::span(&batch.sample_denominator, 1))}}};
}

}  // namespace

std::span<const std::byte> Batch::column(std::string_view name) const {
  const auto found = std::ranges::find(columns, name, &BatchColumn::name);
  if (found != columns.end()) return found->data;
  for (const NamedSpan& own : own_columns(*this)) {
    if (own.name == name) return own.data;
  }
  return {};
}

}  // namespace fleet::data
