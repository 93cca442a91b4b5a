#include "data/encoder_row.h"

#include <algorithm>
#include <cstdint>

#include "data/token_rows.h"

namespace fleet::data {

std::vector<Column> encoder_columns(int64_t length) {
  const auto by_length = [&](const char* name) {
    return Column{.name = name, .dtype = DType::kInt64, .shape = {length}, .by_length = true};
  };
  return {by_length("input_ids"), by_length("position_ids"), by_length("document_ids"),
          by_length("token_type_ids")};
}

void fill_encoder_row(const text::Encoding& encoding, int64_t length, uint32_t padding,
                      std::span<void* const> to) {
  const auto column = [&](int i) {
    return std::span(static_cast<int64_t*>(to[i]), static_cast<size_t>(length));
  };
  std::ranges::fill(column(0), int64_t{padding});
  std::ranges::copy(encoding.ids, column(0).begin());
  std::ranges::fill(column(3), 0);
  std::ranges::copy(encoding.type_ids, column(3).begin());
  const auto size = static_cast<int64_t>(encoding.size());
  for (int64_t i = 0; i < length; ++i) {
    column(1)[i] = i < size ? i : 0;
    column(2)[i] = i < size ? 0 : -1;
  }
}

uint32_t padding_token(const JobTokenizer& opened) {
  for (const std::string& name :
       {configured_token(opened.path, "pad_token"), std::string("[PAD]"), std::string("<pad>")}) {
    if (name.empty()) continue;
    if (const auto id = opened.ids(name)) return *id;
  }
  return 0;
}

text::EncodeOptions without_special_tokens() {
  return {.special_tokens = false, .truncation = text::TruncateTo{.most = SIZE_MAX}};
}

std::vector<bool> texts_of_part(int64_t count, const ValidationPart& validation) {
  const auto& [part, seed, validates] = validation;
  std::vector<bool> chosen(static_cast<size_t>(count), part == 0);
  if (part == 0) return chosen;
  std::vector<TokenRange> texts;
  for (int64_t i = 0; i < count; ++i) texts.push_back({i, 1});
  for (const TokenRange& text : divided(texts, part, seed, validates)) chosen[text.begin] = true;
  return chosen;
}

std::vector<RowGroup> rows_by_length(const std::vector<int64_t>& sizes, int64_t longest) {
  constexpr int64_t kShortest = 16;
  std::vector<int64_t> order;
  for (int64_t row = 0; row < std::ssize(sizes); ++row) {
    if (sizes[row] > 0) order.push_back(row);
  }
  std::ranges::stable_sort(order, {}, [&](int64_t row) { return sizes[row]; });
  std::vector<RowGroup> groups;
  for (const int64_t row : order) {
    int64_t length = groups.empty() ? std::min(kShortest, longest) : groups.back().length;
    while (length < sizes[row]) length = std::min(2 * length, longest);
    if (groups.empty() || groups.back().length != length) groups.push_back({length, {}});
    groups.back().rows.push_back(row);
  }
  return groups;
}

text::Encoding part_of(const text::Encoding& encoding, size_t begin, size_t count) {
  const auto cut = [&]<typename T>(const std::vector<T>& all) {
    if (all.empty()) return all;
    const auto first = all.begin() + static_cast<int64_t>(begin);
    return std::vector<T>(first, first + static_cast<int64_t>(count));
  };
  text::Encoding part;
  part.ids = cut(encoding.ids);
  part.type_ids = cut(encoding.type_ids);
  part.words = cut(encoding.words);
  part.texts = cut(encoding.texts);
  part.offsets = cut(encoding.offsets);
  return part;
}

}  // namespace fleet::data
