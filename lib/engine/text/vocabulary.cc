#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace fleet::text {
namespace {

template <typename T>
uint64_t load_bytes(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

uint64_t mixed(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t hash_of(std::string_view bytes) {
  const char* data = bytes.data();
  const size_t size = bytes.size();
  uint64_t hash = size * 0x9E3779B97F4A7C15u;
  uint64_t tail;
  if (size >= 8) {
    for (size_t at = 0; at + 8 < size; at += 8) {
      hash = mixed(hash ^ load_bytes<uint64_t>(data + at), 0xD6E8FEB86659FD93u);
    }
    tail = load_bytes<uint64_t>(data + size - 8);
  } else if (size >= 4) {
    tail = load_bytes<uint32_t>(data) << 32 | load_bytes<uint32_t>(data + size - 4);
  } else if (size > 0) {
    tail = load_bytes<uint8_t>(data) << 16 | load_bytes<uint8_t>(data + size / 2) << 8 |
           load_bytes<uint8_t>(data + size - 1);
  } else {
    tail = 0;
  }
  return mixed(hash ^ tail, 0xA0761D6478BD642Fu);
}

Vocabulary::Vocabulary(size_t expected) {
  slots_.assign(std::bit_ceil(std::max<size_t>(16, expected * 2)), kNone);
  entries_.reserve(expected);
}

void Vocabulary::grow() {
  slots_.assign(slots_.size() * 2, kNone);
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t at = hash_of(text(entries_[i])) & (slots_.size() - 1);
    while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = static_cast<uint32_t>(i);
  }
}

void Vocabulary::add(std::string_view token, uint32_t id) {
  FLEET_CHECK(id < kMostIds, "a token id is too large");
  if ((entries_.size() + 1) * 2 > slots_.size()) grow();
  size_t at = hash_of(token) & (slots_.size() - 1);
  while (slots_[at] != kNone && text(entries_[slots_[at]]) != token) {
    at = (at + 1) & (slots_.size() - 1);
  }
  if (slots_[at] == kNone) {
    slots_[at] = static_cast<uint32_t>(entries_.size());
    entries_.push_back({pool_.size(), static_cast<uint32_t>(token.size()), id});
    pool_ += token;
  }
  entries_[slots_[at]].id = id;
  if (id >= by_id_.size()) by_id_.resize(size_t{id} + 1, kNone);
  by_id_[id] = slots_[at];
  longest_ = std::max(longest_, token.size());
}

std::optional<uint32_t> Vocabulary::find(std::string_view token) const {
  if (token.size() > longest_) return std::nullopt;
  size_t at = hash_of(token) & (slots_.size() - 1);
  for (; slots_[at] != kNone; at = (at + 1) & (slots_.size() - 1)) {
    const Entry& entry = entries_[slots_[at]];
    if (text(entry) == token) return entry.id;
  }
  return std::nullopt;
}

std::optional<std::string_view> Vocabulary::token(uint32_t id) const {
  if (id >= by_id_.size() || by_id_[id] == kNone) return std::nullopt;
  return text(entries_[by_id_[id]]);
}

MergeTable::MergeTable(size_t expected) {
  const size_t size = std::bit_ceil(std::max<size_t>(16, expected * 2));
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
}

void MergeTable::add(uint32_t left, uint32_t right, uint32_t rank, uint32_t id) {
  const uint64_t key = uint64_t{left} << 32 | right;
  if ((used_ + 1) * 2 > slots_.size()) {
    MergeTable larger(slots_.size());
    for (const Slot& slot : slots_) {
      if (slot.key == kNone) continue;
      larger.add(static_cast<uint32_t>(slot.key >> 32), static_cast<uint32_t>(slot.key),
                 static_cast<uint32_t>(slot.merge >> 32), static_cast<uint32_t>(slot.merge));
    }
    *this = std::move(larger);
  }
  size_t at = slot_of(key);
  while (slots_[at].key != kNone && slots_[at].key != key) at = (at + 1) & mask_;
  used_ += slots_[at].key == kNone;
  slots_[at] = {key, uint64_t{rank} << 32 | id};
}

}  // namespace fleet::text
