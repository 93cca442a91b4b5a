// LineIndex in a file. Numbers have the byte order of the machine: the file is a cache of it.
#include <cstring>
#include <type_traits>

#include "base/hash.h"
#include "data/line_index.h"

namespace fleet::data {
namespace {

template <typename T>
void put(const T& value, std::string* to) {
  static_assert(std::is_trivially_copyable_v<T>);
  to->append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
void put_all(const T& values, std::string* to) {
  put(uint64_t{values.size()}, to);
  to->append(reinterpret_cast<const char*>(values.data()),
             values.size() * sizeof(typename T::value_type));
}

// Reads what put() wrote; false if the bytes end early.
class Parser {
 public:
  explicit Parser(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  bool get(T* value) {
    if (rest_.size() < sizeof *value) return false;
    std::memcpy(value, rest_.data(), sizeof *value);
    rest_.remove_prefix(sizeof *value);
    return true;
  }
  template <typename T>
  bool get_all(T* values) {
    using Value = typename T::value_type;
    uint64_t count = 0;
    if (!get(&count) || count > rest_.size() / sizeof(Value)) return false;
    values->resize(count);
    if (count > 0) std::memcpy(values->data(), rest_.data(), count * sizeof(Value));
    rest_.remove_prefix(count * sizeof(Value));
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

std::string LineIndex::save() const {
  std::string bytes;
  put(uint64_t{parts_.size()}, &bytes);
  for (const Part& part : parts_) {
    put(uint64_t{part.file}, &bytes);
    put(part.begin, &bytes);
    put(part.end, &bytes);
    put(part.lines, &bytes);
    put(part.broken, &bytes);
    put_all(part.groups, &bytes);
    put_all(part.dropped, &bytes);
  }
  put(uint64_t{broken_.size()}, &bytes);
  for (const Broken& broken : broken_) {
    put(uint64_t{broken.part}, &bytes);
    put(broken.line, &bytes);
    put_all(broken.why, &bytes);
  }
  put(hash_text(bytes), &bytes);
  return bytes;
}

std::unique_ptr<const LineIndex> LineIndex::load(std::vector<LineFile> files,
                                                 std::string_view bytes) {
  uint64_t hash = 0, count = 0, number = 0;
  if (bytes.size() < sizeof hash) return nullptr;
  const std::string_view content = bytes.substr(0, bytes.size() - sizeof hash);
  std::memcpy(&hash, bytes.data() + content.size(), sizeof hash);
  if (hash != hash_text(content)) return nullptr;
  std::unique_ptr<LineIndex> index(new LineIndex(std::move(files)));
  Parser parser(content);
  if (!parser.get(&count)) return nullptr;
  for (uint64_t i = 0; i < count; ++i) {
    Part& part = index->parts_.emplace_back();
    if (!parser.get(&number) || number >= index->files_.size() || !parser.get(&part.begin) ||
        !parser.get(&part.end) || !parser.get(&part.lines) || !parser.get(&part.broken) ||
        !parser.get_all(&part.groups) || !parser.get_all(&part.dropped)) {
      return nullptr;
    }
    part.file = number;
  }
  if (!parser.get(&count)) return nullptr;
  for (uint64_t i = 0; i < count; ++i) {
    Broken& broken = index->broken_.emplace_back();
    if (!parser.get(&number) || number >= index->parts_.size() || !parser.get(&broken.line) ||
        !parser.get_all(&broken.why)) {
      return nullptr;
    }
    broken.part = number;
  }
  if (!parser.at_end()) return nullptr;
  index->open_files();
  index->count();
  return index;
}

}  // namespace fleet::data
