// The settings of a sparse table: the section tables.NAME of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"
#include "ps/tables/row_chunks.h"
#include "ps/tables/row_initializer.h"

namespace fleet::ps {

struct TableSettings {
  enum class Entry { kNone, kCount, kProbability };

  std::string name;
  int dim = 0;
  uint64_t seed = 0;
  InitializerSettings initializer;
  Settings rule;  // validated by table_rule_schema()
  // The base of the job's schedule, which the rule's rate follows; 0: the rate is constant.
  double base_rate = 0;
  // Admission: kCount gives an id a row at its occurrence number entry_count; kProbability gives it
  // one with this probability, drawn once for each id.
  Entry entry = Entry::kNone;
  int64_t entry_count = 1;
  double entry_probability = 1;
  // A shrink removes rows of age >= max_age (0: none) or score < min_score, and those whose last
  // update is at least ttl seconds old (0: none).
  int64_t max_age = 0;
  bool scores = false;
  double min_score = 0, decay = 0.98, click_weight = 1, show_weight = 0.1;
  int64_t ttl = 0;
  int64_t shrink_every = 0;        // training steps between two shrinks; 0: none
  std::string storage = "memory";  // or a registered one (ps/tables/cold_store.h)
  std::string path;                // storage's folder
  int64_t cache_memory = 0;        // bytes of a server for rows and the storage; 0: no limit
  bool huge_pages = false;

  RowLayout layout() const;
  // Of cache_memory: the storage's part. The cached rows have the rest.
  int64_t storage_memory() const { return cache_memory / 2; }
  // Rows that stay in memory on a server with so many shards: at least 1 of each; 0: all. kUsage
  // if cache_memory is less than that needs.
  int64_t cached_rows(int shards) const;
  // The rate of the rule in an update in which dense parameters have this one.
  double rate_at(float dense_rate) const;
};

// The keys of a table whose rule has this name.
Schema table_schema(const std::string& rule);
// The names of the sections tables.NAME.
std::vector<std::string> table_names(const ConfigTree& tree);
// The keys of all tables of the job, each below "tables.NAME". kUsage for an unknown rule.
Schema tables_schema(const ConfigTree& tree);
// settings: validated by table_schema(). seed: the job's. kUsage naming the key of a value that
// contradicts others; kUnsupported if this build has no such storage.
TableSettings table_settings(const std::string& name, const Settings& settings, uint64_t seed);

}  // namespace fleet::ps
