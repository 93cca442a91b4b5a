// Byte-pair encoding of one piece.
#include <algorithm>
#include <queue>

#include "text/bpe.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

// Up to so many symbols, a scan of all pairs beats a heap.
constexpr size_t kMostScanned = 96;

// A pair of neighbours in the heap of a long piece: the lowest rank first, then the leftmost.
struct HeapPair {
  MergeTable::Merge merge;
  uint32_t at;
  uint32_t left, right;  // ids when it was found; it is stale if they changed
  bool operator<(const HeapPair& other) const {
    return merge >> 32 != other.merge >> 32 ? merge >> 32 > other.merge >> 32 : at > other.at;
  }
};

}  // namespace

void Bpe::encode(std::string_view piece, std::vector<uint32_t>& ids,
                 std::vector<uint32_t>& lengths) const {
  std::vector<uint32_t> own;
  encode(piece, ids, &own);
  lengths.insert(lengths.end(), own.begin(), own.end());
}

void Bpe::encode(std::string_view piece, std::vector<uint32_t>& ids, Lengths* lengths) const {
  if (ignore_merges_) {
    if (const auto id = pieces().find(piece)) {
      ids.push_back(*id);
      if (lengths) lengths->push_back(static_cast<uint32_t>(piece.size()));
      return;
    }
  }
  const size_t begin = ids.size();
  symbols(piece, ids, lengths);
  if (ids.size() - begin <= kMostScanned) {
    merge_short(ids, begin, lengths);
  } else {
    merge_long(ids, begin, lengths);
  }
}

void Bpe::symbols(std::string_view piece, std::vector<uint32_t>& ids, Lengths* lengths) const {
  if (!byte_symbols_ || unk_ != kNoId || !prefix_.empty() || !suffix_.empty()) {
    return symbols_of_characters(piece, ids, lengths);
  }
  const size_t begin = ids.size();
  for (const char byte : piece) {
    const uint32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    if (id != kNoId) ids.push_back(id);
  }
  if (lengths) lengths->assign(ids.size() - begin, 1);
}

// merge_word() in tokenizers/src/models/bpe/model.rs of Hugging Face's tokenizers. The bytes of a
// character without any token belong to none.
void Bpe::symbols_of_characters(std::string_view piece, std::vector<uint32_t>& ids,
                                Lengths* lengths) const {
  size_t unk_bytes = 0;
  bool unk_pending = false;
  const auto push = [&](uint32_t id, size_t bytes) {
    ids.push_back(id);
    if (lengths) lengths->push_back(static_cast<uint32_t>(bytes));
  };
  std::string symbol;
  for (size_t at = 0; at < piece.size();) {
    size_t next = at + 1;
    if (!byte_symbols_) code_point_at(piece, at, &next);
    const size_t bytes = next - at;
    symbol.clear();
    if (at > 0) symbol += prefix_;
    symbol.append(piece, at, bytes);
    if (next == piece.size()) symbol += suffix_;
    at = next;
    if (const auto id = pieces().find(symbol)) {
      if (unk_pending) push(unk_, unk_bytes);
      unk_pending = false;
      push(*id, bytes);
      continue;
    }
    const auto has_fallback = [&](char byte) {
      return fallback_[static_cast<unsigned char>(byte)] != kNoId;
    };
    if (byte_fallback_ && std::all_of(symbol.begin(), symbol.end(), has_fallback)) {
      for (const char byte : symbol) push(fallback_[static_cast<unsigned char>(byte)], 1);
      continue;
    }
    if (unk_ == kNoId) continue;
    if (unk_pending && !fuse_unk_) push(unk_, unk_bytes);
    unk_bytes = unk_pending && fuse_unk_ ? unk_bytes + bytes : bytes;
    unk_pending = true;
  }
  if (unk_pending) push(unk_, unk_bytes);
}

void Bpe::merge_short(std::vector<uint32_t>& ids, size_t begin, Lengths* lengths) const {
  size_t count = ids.size() - begin;
  if (count < 2) return;
  uint32_t* id = ids.data() + begin;
  MergeTable::Merge merge[kMostScanned];  // [i]: the pair i, i + 1
  for (size_t i = 0; i + 1 < count; ++i) merge[i] = merges_.find(id[i], id[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merge[i] < merge[best]) best = i;
    }
    if (merge[best] == MergeTable::kNone) break;
    id[best] = static_cast<uint32_t>(merge[best]);
    std::copy(id + best + 2, id + count, id + best + 1);
    if (lengths) {
      (*lengths)[best] += (*lengths)[best + 1];
      lengths->erase(lengths->begin() + static_cast<ptrdiff_t>(best + 1));
    }
    std::copy(merge + best + 1, merge + count - 1, merge + best);
    --count;
    if (best > 0) merge[best - 1] = merges_.find(id[best - 1], id[best]);
    if (best + 1 < count) merge[best] = merges_.find(id[best], id[best + 1]);
  }
  ids.resize(begin + count);
}

void Bpe::merge_long(std::vector<uint32_t>& ids, size_t begin, Lengths* lengths) const {
  const uint32_t count = static_cast<uint32_t>(ids.size() - begin);
  uint32_t* id = ids.data() + begin;
  std::vector<uint32_t> next(count), previous(count);
  std::vector<HeapPair> found;
  found.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;  // of 0: not below count
    if (i + 1 == count) break;
    const auto merge = merges_.find(id[i], id[i + 1]);
    if (merge != MergeTable::kNone) found.push_back({merge, i, id[i], id[i + 1]});
  }
  std::priority_queue<HeapPair> heap(std::less<HeapPair>(), std::move(found));
  const auto look = [&](uint32_t left) {
    const uint32_t right = next[left];
    if (right >= count) return;
    const auto merge = merges_.find(id[left], id[right]);
    if (merge != MergeTable::kNone) heap.push({merge, left, id[left], id[right]});
  };
  while (!heap.empty()) {
    const HeapPair pair = heap.top();
    heap.pop();
    const uint32_t right = next[pair.at];
    // A symbol that was joined to the one before it has the id kNoId.
    if (right >= count || id[pair.at] != pair.left || id[right] != pair.right) continue;
    id[pair.at] = static_cast<uint32_t>(pair.merge);
    id[right] = kNoId;
    if (lengths) (*lengths)[pair.at] += (*lengths)[right];
    next[pair.at] = next[right];
    if (next[right] < count) previous[next[right]] = pair.at;
    if (previous[pair.at] < count) look(previous[pair.at]);
    look(pair.at);
  }
  size_t kept = begin;
  for (uint32_t i = 0; i < count; i = next[i]) {
    if (lengths) (*lengths)[kept - begin] = (*lengths)[i];
    ids[kept++] = id[i];
  }
  ids.resize(kept);
  if (lengths) lengths->resize(kept - begin);
}

}  // namespace fleet::text
