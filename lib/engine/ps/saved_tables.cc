#include "ps/saved_tables.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "base/counted.h"
#include "ps/job_tables.h"
#include "ps/tables/snapshot.h"
#include "ps/tables/sparse_table.h"

namespace fleet::ps {
namespace {

class SavedTables : public SavedRows {
 public:
  SavedTables(std::vector<TableSettings> settings, const std::string& folder) : snapshot_(folder) {
    for (TableSettings& one : settings) {
      one.storage = "memory";
      tables_.push_back({std::make_unique<SparseTable>(std::move(one))});
    }
  }

  void want(int table, std::span<const uint64_t> ids) override {
    tables_[static_cast<size_t>(table)].wanted.insert(ids.begin(), ids.end());
  }

  void load() override {
    for (Table& table : tables_) {
      load_table(snapshot_, *table.rows, {},
                 [&](uint64_t id) { return table.wanted.contains(id); });
    }
  }

  void read(int table, std::span<const uint64_t> ids, std::span<float> rows) override {
    tables_[static_cast<size_t>(table)].rows->lookup(ids, rows);
  }

  std::vector<std::string> missing_lines() const override {
    std::vector<std::string> lines;
    for (const Table& table : tables_) {
      const MissingRows missing = missing_of(table);
      if (missing.all() == 0) continue;
      lines.push_back(text_of(missing, table.rows->settings().name,
                              counted(static_cast<int64_t>(table.wanted.size()), "id")));
    }
    return lines;
  }

 private:
  struct Table {
    std::unique_ptr<SparseTable> rows;
    std::unordered_set<uint64_t> wanted = {};
  };

  static MissingRows missing_of(const Table& table) {
    constexpr size_t kAtOnce = 4096;
    MissingRows missing;
    if (table.rows->counts().rows == std::ssize(table.wanted)) return missing;
    std::vector<uint64_t> ids;
    std::vector<float> values(kAtOnce * static_cast<size_t>(table.rows->settings().dim));
    const auto look = [&] {
      const size_t size = ids.size() * static_cast<size_t>(table.rows->settings().dim);
      missing += table.rows->lookup(ids, std::span(values).first(size));
      ids.clear();
    };
    for (const uint64_t id : table.wanted) {
      ids.push_back(id);
      if (ids.size() == kAtOnce) look();
    }
    look();
    return missing;
  }

  const Snapshot snapshot_;
  std::vector<Table> tables_;
};

}  // namespace

std::string tables_of_checkpoint(const std::string& checkpoint) { return checkpoint + "/tables"; }

std::unique_ptr<SavedRows> open_saved_tables(const Job& job, const Program& program,
                                             const std::string& checkpoint) {
  return std::make_unique<SavedTables>(tables_of(job, program), tables_of_checkpoint(checkpoint));
}

}  // namespace fleet::ps
