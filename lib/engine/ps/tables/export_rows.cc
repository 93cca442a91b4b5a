#include "ps/tables/export_rows.h"

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "train/prediction_file.h"

namespace fleet::ps {
namespace {

void append_values(const std::byte* record, int dim, std::string* text) {
  for (int i = 0; i < dim; ++i) {
    float value;
    std::memcpy(&value, record + sizeof(RecordHead) + static_cast<size_t>(i) * sizeof value,
                sizeof value);
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    if (i > 0) *text += ' ';
    text->append(digits.data(), end);
  }
}

// numpy.lib.format, version 1.0.
std::string npy_head(const std::string& type, const std::string& shape) {
  std::string head =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t kFixed = 10, kAlignment = 64;
  head.append(kAlignment - (kFixed + head.size() + 1) % kAlignment, ' ');
  head += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(head.size() & 0xFF);
  start += static_cast<char>(head.size() >> 8);
  return start + head;
}

std::string_view view_of(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

uint32_t age_of(const SnapshotTable& table, uint32_t used) {
  return static_cast<uint32_t>(table.shrinks) - used;
}

int64_t rows_of(const Snapshot& snapshot, const std::string& table) {
  int64_t rows = 0;
  for (int shard = 0; shard < kVirtualShards; ++shard) rows += snapshot.count(table, shard).rows;
  return rows;
}

}  // namespace

std::string describe_id(const Snapshot& snapshot, const std::string& table, uint64_t id) {
  const SnapshotTable& about = snapshot.table(table);
  const int shard = shard_of(id);
  const ShardContent content = snapshot.read(table, shard);
  const std::string start = "id " + std::to_string(id) + ": ";
  const size_t bytes = record_bytes(about.layout);
  for (size_t at = 0; at < content.records.size(); at += bytes) {
    const RecordHead head = record_head(&content.records[at]);
    if (head.id != id) continue;
    std::string line = start + "shard " + std::to_string(shard) + ", age " +
                       std::to_string(age_of(about, head.used)) + ", changed at version " +
                       std::to_string(head.version) + ": ";
    append_values(&content.records[at], about.layout.dim, &line);
    return line;
  }
  for (const WaitingRecord& waiting : content.waiting) {
    if (waiting.id != id) continue;
    return start + "shard " + std::to_string(shard) + ", age " +
           std::to_string(age_of(about, waiting.used)) + ", no row yet: occurrences " +
           std::to_string(waiting.count);
  }
  return "";
}

std::string ids_path(const std::string& path) {
  const std::string end = ".npy";
  return (path.ends_with(end) ? path.substr(0, path.size() - end.size()) : path) + ".ids" + end;
}

int64_t export_rows(const Snapshot& snapshot, const std::string& table, const std::string& path,
                    bool npy, const std::function<void(int, int64_t)>& progress) {
  const RowLayout& layout = snapshot.table(table).layout;
  const size_t bytes = record_bytes(layout);
  PredictionBytes values(path);
  std::optional<PredictionBytes> ids;
  if (npy) {
    ids.emplace(ids_path(path));
    const std::string rows = std::to_string(rows_of(snapshot, table));
    values.write(npy_head("<f4", rows + ", " + std::to_string(layout.dim)));
    ids->write(npy_head("<u8", rows + ","));
  }
  int64_t written = 0;
  for (int shard = 0; shard < kVirtualShards; ++shard) {
    const ShardContent content = snapshot.read(table, shard);
    std::string text;
    for (size_t at = 0; at < content.records.size(); at += bytes, ++written) {
      const std::byte* record = &content.records[at];
      const uint64_t id = record_head(record).id;
      if (npy) {
        ids->write(view_of(&id, sizeof id));
        values.write(
            view_of(record + sizeof(RecordHead), static_cast<size_t>(layout.dim) * sizeof(float)));
        continue;
      }
      text += std::to_string(id) + '\t';
      append_values(record, layout.dim, &text);
      text += '\n';
    }
    if (!text.empty()) values.write(text);
    if (progress) progress(shard + 1, written);
  }
  values.finish();
  if (ids) ids->finish();
  return written;
}

}  // namespace fleet::ps
