// Rows of snapshots for readers: text and arrays of NumPy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ps/tables/snapshot.h"

namespace fleet::ps {

// One line: the id, its shard, age and version, and its values; or its occurrences, if it has no
// row yet. "" if the table does not have it.
std::string describe_id(const Snapshot& snapshot, const std::string& table, uint64_t id);

// Writes all rows, by shard and id. Text: "ID<tab>VALUE VALUE ..." with values that read back
// exactly; npy: float32 [rows, dim] in `path`, and uint64 [rows] in ids_path(). path "-": standard
// output, for text. Returns the number of rows. progress: shards and rows so far. kIo, and errors
// of Snapshot.
int64_t export_rows(const Snapshot& snapshot, const std::string& table, const std::string& path,
                    bool npy, const std::function<void(int, int64_t)>& progress = {});
std::string ids_path(const std::string& path);  // "x.npy": "x.ids.npy"

}  // namespace fleet::ps
