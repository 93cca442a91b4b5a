// Tables and batches for tests.
#pragma once

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/config.h"
#include "ps/tables/sparse_table.h"
#include "ps/tables/table_settings.h"

namespace fleet::ps {

// json: the section of the table "ids": "'dim': 4, 'rule': {...}", with single quotes.
inline TableSettings some_settings(std::string json, uint64_t seed = 1,
                                   const std::string& name = "ids") {
  for (char& letter : json) letter = letter == '\'' ? '"' : letter;
  const ConfigTree tree =
      ConfigTree::from_json("{\"tables\": {\"" + name + "\": {" + json + "}}}", "job.json");
  const Settings settings = tree.validate(tables_schema(tree));
  return table_settings(name, settings.section("tables." + name), seed);
}

inline std::vector<float> pulled(SparseTable& table, const std::vector<uint64_t>& ids) {
  std::vector<float> rows(ids.size() * static_cast<size_t>(table.settings().dim));
  table.pull(ids, rows);
  return rows;
}
inline std::vector<float> looked_up(const SparseTable& table, const std::vector<uint64_t>& ids) {
  std::vector<float> rows(ids.size() * static_cast<size_t>(table.settings().dim));
  table.lookup(ids, rows);
  return rows;
}

inline std::vector<float> random_floats(size_t count, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}
inline std::vector<uint64_t> random_ids(size_t count, uint64_t below, std::mt19937_64& random) {
  std::vector<uint64_t> ids(count);
  for (uint64_t& id : ids) id = random() % below;
  return ids;
}
inline std::vector<uint64_t> first_ids(size_t count, uint64_t from = 0) {
  std::vector<uint64_t> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = from + i;
  return ids;
}

// A table that is spread over several servers.
class Servers {
 public:
  Servers(const TableSettings& settings, int count) {
    for (int server = 0; server < count; ++server) {
      tables_.push_back(std::make_unique<SparseTable>(settings, shards_of_server(server, count)));
    }
  }
  size_t size() const { return tables_.size(); }
  SparseTable& operator[](size_t server) { return *tables_[server]; }

  std::vector<float> pull(const std::vector<uint64_t>& ids) {
    const auto dim = static_cast<size_t>(tables_[0]->settings().dim);
    std::vector<float> all(ids.size() * dim);
    for_servers(ids, [&](SparseTable& table, const std::vector<size_t>& at,
                         const std::vector<uint64_t>& part) {
      const std::vector<float> rows = pulled(table, part);
      for (size_t k = 0; k < at.size(); ++k) {
        std::copy_n(&rows[k * dim], dim, &all[at[k] * dim]);
      }
    });
    return all;
  }
  void push(const std::vector<uint64_t>& ids, const std::vector<float>& gradients) {
    const auto dim = static_cast<size_t>(tables_[0]->settings().dim);
    for_servers(ids, [&](SparseTable& table, const std::vector<size_t>& at,
                         const std::vector<uint64_t>& part) {
      std::vector<float> mine(part.size() * dim);
      for (size_t k = 0; k < at.size(); ++k) {
        std::copy_n(&gradients[at[k] * dim], dim, &mine[k * dim]);
      }
      table.push(part, mine);
    });
  }

 private:
  template <typename Visit>
  void for_servers(const std::vector<uint64_t>& ids, Visit visit) {
    for (size_t server = 0; server < tables_.size(); ++server) {
      std::vector<size_t> at;
      std::vector<uint64_t> part;
      for (size_t i = 0; i < ids.size(); ++i) {
        if (!tables_[server]->shards().contains(shard_of(ids[i]))) continue;
        at.push_back(i);
        part.push_back(ids[i]);
      }
      visit(*tables_[server], at, part);
    }
  }

  std::vector<std::unique_ptr<SparseTable>> tables_;
};

// A folder of its own for each test, removed at the end.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fleet-tables-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace fleet::ps
