// Ids of lookups that have no row.
#pragma once

#include <cstdint>
#include <string>

namespace fleet::ps {

struct MissingRows {
  int64_t initial = 0;       // have the row that they would begin with
  int64_t not_admitted = 0;  // have zeros: the table's `entry` has not admitted them

  int64_t all() const { return initial + not_admitted; }
  MissingRows& operator+=(const MissingRows& more) {
    initial += more.initial;
    not_admitted += more.not_admitted;
    return *this;
  }
  bool operator==(const MissingRows&) const = default;
};

// "table embedding: 3 of 40 ids have no row: 2 take the initial one, 1 takes zeros (not admitted by
// tables.embedding.entry)". of: "40 ids".
std::string text_of(const MissingRows& missing, const std::string& table, const std::string& of);

}  // namespace fleet::ps
