// Snapshots of sparse tables: a folder with files of rows by table, and a manifest that is written
// last. A folder without a manifest is not a snapshot.
//
//   FOLDER/manifest.json
//   FOLDER/TABLE/shards-000-024.rows
//
// Each server writes the shards that it has; any number of servers reads them. A delta has the rows
// that changed since another snapshot, its base, a path to that, and the checksum of its manifest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "ps/tables/row_file.h"
#include "ps/tables/sparse_table.h"

namespace fleet::ps {

inline constexpr char kSnapshotManifest[] = "manifest.json";

// One version of a table, while others change it.
class TableCut {
 public:
  explicit TableCut(SparseTable& table);  // begin_cut()
  ~TableCut();
  TableCut(const TableCut&) = delete;
  TableCut& operator=(const TableCut&) = delete;

  int64_t version() const { return version_; }
  // Writes the shards of this server, once. since: 0, or the version of the base's cut. Returns
  // this server's part of the manifest, for finish_snapshot(). progress: the number of shards
  // written. kIo.
  Json write(const std::string& folder, int64_t since = 0,
             const std::function<void(int)>& progress = {});

 private:
  SparseTable& table_;
  const int64_t version_, shrinks_;
};

struct SnapshotNote {
  std::string base = {};  // folder of the snapshot that the parts are changes to; "": none
  Json more = {};         // the caller's, kept as "more"
};
// Writes the manifest. parts: those that TableCut::write() has returned. kUsage if shards of a
// table are missing, or servers have cut different versions; kIo.
void finish_snapshot(const std::string& folder, const std::vector<Json>& parts,
                     const SnapshotNote& note = {});

struct SnapshotTable {
  std::string name;
  RowLayout layout;
  std::string rule;
  int64_t version = 0, since = 0, shrinks = 0;  // since: 0, or the base's version
  int64_t bytes = 0, files = 0;                 // in this folder; a base has more
};

// Any thread. Errors name the file: kNotFound if there is no manifest or a file is missing,
// DamagedFile.
class Snapshot {
 public:
  // Reads the manifest, and those of its bases.
  explicit Snapshot(const std::string& folder);
  ~Snapshot();
  const std::vector<SnapshotTable>& tables() const { return tables_; }
  // kNotFound naming the nearest.
  const SnapshotTable& table(const std::string& name) const;
  const Json& more() const { return more_; }
  bool has_base() const { return base_ != nullptr; }
  const std::string& base_folder() const { return base_folder_; }  // "": it has no base
  // Checks every file's size, header and directory. Throws for the first that is damaged.
  void check_files(const std::string& table) const;
  // Fast without a base: reads no rows.
  struct Count {
    int64_t rows, waiting;
  };
  Count count(const std::string& table, int shard) const;
  // The content of one shard, with that of the bases.
  ShardContent read(const std::string& table, int shard) const;

 private:
  struct File {
    int first, end;
    int64_t bytes;
    std::string path;
  };
  void read_manifest(const Json& manifest);
  const File& file_of(const std::string& table, int shard) const;
  const RowFileReader& reader(const std::string& table, const File& file) const;

  void open_base(const Json& manifest);

  const std::string folder_;
  std::string base_folder_;
  std::unique_ptr<Snapshot> base_;
  std::vector<SnapshotTable> tables_;
  std::map<std::string, std::vector<File>> files_;  // by table; ascending
  Json more_;
  mutable Mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<RowFileReader>> open_ FLEET_GUARDED_BY(mutex_);
};

// Fills an empty table with its shards of the snapshot. kUsage naming the key if the table has
// another shape or rule. progress: the number of shards read. wanted: leaves out other ids.
void load_table(const Snapshot& snapshot, SparseTable& table,
                const std::function<void(int)>& progress = {},
                const std::function<bool(uint64_t id)>& wanted = {});

}  // namespace fleet::ps
