#include "data/fingerprint.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "data/random.h"
#include "data/storage.h"

namespace fleet::data {
namespace {

// Rows of tokens are in memory: many of them cost less than a few images.
constexpr int64_t kLookedAt = 2'000'000, kRead = 8, kRows = 256;

// At most `most` indices below `size`: all, or one of each of `most` equal parts, at different
// places in them, so that labels with a period are all met.
template <typename Body>
void evenly(int64_t size, int64_t most, const Body& body) {
  const int64_t count = std::min(size, most);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t part = size / count;
    const auto place = static_cast<int64_t>(mix(i) % static_cast<uint64_t>(part));
    body(part * i + size % count * i / count + place);
  }
}

// The position at which a path leaves the folder that it shares with another.
size_t shared_folder(std::string_view a, std::string_view b) {
  const size_t least = std::min(a.size(), b.size());
  const size_t same = std::mismatch(a.begin(), a.begin() + least, b.begin()).first - a.begin();
  const size_t slash = a.substr(0, same).rfind('/');
  return slash == std::string_view::npos ? 0 : slash + 1;
}

bool is_filled(const Column& column) { return column.name != "image" && !is_class_label(column); }

// Of at most `most` samples: the columns besides image and label.
uint64_t hash_columns(const Source& source, const std::vector<Column>& columns, int64_t most) {
  std::vector<std::vector<std::byte>> values;
  std::vector<void*> to;
  uint64_t hash = 1;
  for (const Column& column : columns) {
    hash = hash_text(column.name + name_of(column.dtype) + column.shape.text(), hash);
    to.push_back(is_filled(column)
                     ? values.emplace_back(column.shape.elements() * size_of(column.dtype)).data()
                     : nullptr);
  }
  evenly(source.size(), most, [&](int64_t index) {
    source.fill(index, evaluation_key(index), to);
    for (const auto& one : values) hash = hash_bytes(one.data(), one.size(), hash);
  });
  return hash;
}

uint64_t hash_files(const Source& source) {
  const std::string first = source.name(0);
  size_t root = shared_folder(first, first);
  evenly(source.size(), kLookedAt,
         [&](int64_t index) { root = std::min(root, shared_folder(first, source.name(index))); });
  uint64_t hash = 1;
  evenly(source.size(), kLookedAt, [&](int64_t index) {
    hash = hash_text(std::string_view(source.name(index)).substr(root), hash);
  });
  return hash;
}

}  // namespace

Fingerprint fingerprint(const Source& source) {
  Fingerprint print{.samples = source.size(), .tokenizer = source.tokenizer().hash};
  evenly(source.size(), kLookedAt, [&](int64_t index) {
    const int64_t label = source.label(index);
    print.classes = std::max(print.classes, label + 1);
    print.labels = hash_bytes(&label, sizeof label, print.labels);
  });
  const std::vector<Column> columns = source.columns();
  if (std::ranges::none_of(columns, is_class_label)) print.classes = 0;
  if (!find_column(columns, "image")) {
    print.images = hash_columns(source, columns, kRows);
    return print;
  }
  if (std::ranges::any_of(columns, is_filled)) {
    print.labels = hash_columns(source, columns, kLookedAt);
  }
  bool files = false;
  std::vector<uint8_t> scratch;
  evenly(source.size(), kRead, [&](int64_t index) {
    try {
      const Sample sample = read_patiently(source, index, scratch);
      files |= sample.encoded;
      print.images = hash_bytes(sample.bytes.data(), sample.bytes.size(), print.images);
    } catch (const Error&) {
      files = true;
      print.images = hash_text("unreadable", print.images);
    }
  });
  if (files) print.files = hash_files(source);
  return print;
}

}  // namespace fleet::data
