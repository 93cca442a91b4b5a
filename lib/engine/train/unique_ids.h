// The different ids of a batch, in order of occurrence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fleet {

// Numbers ids from 0 in the order of their first occurrence. Not thread-safe.
class UniqueIds {
 public:
  // Forgets all; `expected` ids are coming.
  void clear(size_t expected);
  // So many more are coming.
  void expect(size_t more);
  // Returns the id's number; a new one for a new id.
  uint32_t add(uint64_t id);
  const std::vector<uint64_t>& ids() const { return ids_; }

 private:
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> slots_;  // numbers + 1 by hash; 0: free
};

// The ids of one table in a batch.
class BatchIds {
 public:
  // The bytes of a column of int64, in which -1 is none. table: for messages. kUsage naming
  // an id below -1.
  void set(std::span<const std::byte> column, const std::string& table);
  const std::vector<uint64_t>& ids() const { return unique_.ids(); }
  // By position in the column: the number of its id; -1: none.
  const std::vector<int64_t>& places() const { return places_; }
  // By number.
  const std::vector<uint32_t>& occurrences() const { return occurrences_; }

 private:
  UniqueIds unique_;
  std::vector<int64_t> places_;
  std::vector<uint32_t> occurrences_;
};

}  // namespace fleet
