#include "ps/tables/table_settings.h"

#include <map>
#include <set>

#include "base/error.h"
#include "base/file_name.h"
#include "base/text.h"
#include "ps/tables/cold_store.h"
#include "ps/tables/row_index.h"
#include "ps/tables/table_rule.h"

namespace fleet::ps {
namespace {

using Kind = InitializerSettings::Kind;

constexpr char kTables[] = "tables", kMemory[] = "memory";

const std::map<std::string, Kind>& initializer_kinds() {
  static const std::map<std::string, Kind> kinds = {{"constant", Kind::kConstant},
                                                    {"normal", Kind::kNormal},
                                                    {"truncated_normal", Kind::kTruncatedNormal},
                                                    {"uniform", Kind::kUniform}};
  return kinds;
}

Schema initializer_schema() {
  return Schema()
      .choice(
          "name", "uniform", {"uniform", "normal", "truncated_normal", "constant"},
          "distribution of initial values; each row's follow from the seed, the table and the id")
      .number("low", -1e-4, -1e6, 1e6, "uniform: smallest value")
      .number("high", 1e-4, -1e6, 1e6, "uniform: bound above the values")
      .number("mean", 0, -1e6, 1e6, "normal: mean")
      .number("deviation", 1e-2, 0, 1e6,
              "normal: standard deviation; truncated_normal draws within two of them")
      .number("value", 0, -1e6, 1e6, "constant: the value");
}

Schema entry_schema() {
  return Schema()
      .choice("kind", "none", {"none", "count", "probability"},
              "ids that get a row: all, those that occur `count` times, or a share of them")
      .integer("count", 10, 1, IndexWord::kMaxValue,
               "the occurrence that gives an id its row; rows are zeros and pushes ignored before")
      .number("probability", 0.1, 0, 1, "probability that an id gets a row, drawn once per id");
}

Schema shrink_schema() {
  return Schema()
      .integer("every_steps", 0, 0, 9e15, "training steps between two shrinks; 0: none")
      .integer("age", 0, 0, IndexWord::kMaxAge,
               "a shrink removes rows unused since this many shrinks, including itself; 0: none")
      .boolean("by_score", false, "count shows and clicks, and remove rows by their score")
      .number("min_score", 0.8, 0, 1e9, "a shrink removes rows whose score is below this")
      .number("decay", 0.98, 0, 1, "a shrink multiplies shows and clicks by this first")
      .number("show_weight", 0.1, 0, 1e6, "weight of shows without a click in the score")
      .number("click_weight", 1, 0, 1e6, "weight of clicks in the score")
      .integer("ttl", 0, 0, 1e9,
               "seconds after its last update at which a shrink removes a row; 0: never");
}

Schema storage_schema() {
  return Schema()
      .text("kind", kMemory, "place of the rows: memory, or rocksdb with a cache in memory")
      .text("path", "", "rocksdb: folder for its files; it is emptied at the start")
      .as_path()
      .integer("cache_memory", 512, 1, 1e9,
               "rocksdb: MiB of a server for the table: cached rows, buffers, indexes and blocks")
      .boolean("huge_pages", false, "ask the kernel for pages of 2 MiB");
}

[[noreturn]] void refuse(const std::string& table, const std::string& key, const std::string& what,
                         const std::string& next) {
  throw Error(ErrorCode::kUsage, what, std::string(kTables) + "." + table + "." + key, next);
}

InitializerSettings read_initializer(const std::string& table, const Settings& settings) {
  InitializerSettings initializer{.kind = initializer_kinds().at(settings.text("name")),
                                  .low = settings.number("low"),
                                  .high = settings.number("high"),
                                  .mean = settings.number("mean"),
                                  .deviation = settings.number("deviation"),
                                  .value = settings.number("value")};
  if (initializer.low > initializer.high) {
    refuse(table, "initializer.low", "it is greater than initializer.high", "exchange them");
  }
  const std::map<std::string, std::set<Kind>> users = {
      {"low", {Kind::kUniform}},
      {"high", {Kind::kUniform}},
      {"mean", {Kind::kNormal, Kind::kTruncatedNormal}},
      {"deviation", {Kind::kNormal, Kind::kTruncatedNormal}},
      {"value", {Kind::kConstant}}};
  for (const auto& [key, kinds] : users) {
    if (settings.given(key) && !kinds.contains(initializer.kind)) {
      refuse(table, "initializer." + key,
             "the initializer '" + settings.text("name") + "' does not use it", "remove it");
    }
  }
  return initializer;
}

void read_entry(const Settings& settings, TableSettings* table) {
  const std::string& kind = settings.text("kind");
  table->entry = kind == "count"         ? TableSettings::Entry::kCount
                 : kind == "probability" ? TableSettings::Entry::kProbability
                                         : TableSettings::Entry::kNone;
  table->entry_count = settings.integer("count");
  table->entry_probability = settings.number("probability");
  for (const char* key : {"count", "probability"}) {
    if (settings.given(key) && kind != key) {
      refuse(table->name, std::string("entry.") + key, "entry.kind is '" + kind + "'",
             std::string("set entry.kind to '") + key + "', or remove the key");
    }
  }
}

void read_shrink(const Settings& settings, TableSettings* table) {
  table->shrink_every = settings.integer("every_steps");
  table->max_age = settings.integer("age");
  table->scores = settings.boolean("by_score");
  table->min_score = settings.number("min_score");
  table->decay = settings.number("decay");
  table->show_weight = settings.number("show_weight");
  table->click_weight = settings.number("click_weight");
  table->ttl = settings.integer("ttl");
  for (const char* key : {"min_score", "decay", "show_weight", "click_weight"}) {
    if (settings.given(key) && !table->scores) {
      refuse(table->name, std::string("shrink.") + key, "rows have no scores",
             "set shrink.by_score to true, or remove the key");
    }
  }
}

void read_storage(const Settings& settings, TableSettings* table) {
  table->storage = settings.text("kind");
  table->huge_pages = settings.boolean("huge_pages");
  if (table->storage == kMemory) {
    for (const char* key : {"path", "cache_memory"}) {
      if (settings.given(key)) {
        refuse(table->name, std::string("storage.") + key, "all rows are in memory",
               "set storage.kind to 'rocksdb', or remove the key");
      }
    }
    return;
  }
  check_cold_store(table->storage, std::string(kTables) + "." + table->name + ".storage.kind");
  table->path = settings.text("path");
  table->cache_memory = settings.integer("cache_memory") << 20;
  if (table->path.empty()) {
    refuse(table->name, "storage.path", "the storage needs a folder", "give one on a local disk");
  }
}

[[noreturn]] void refuse_rule(const std::string& rule, const std::string& key) {
  const std::vector<std::string> rules = table_rules().names();
  const std::string nearest = nearest_name(rule, rules);
  throw Error(ErrorCode::kUsage, "unknown table rule '" + rule + "'", key,
              (nearest.empty() ? "" : "did you mean '" + nearest + "'? ") +
                  "the rules: " + join(rules, ", "));
}

}  // namespace

RowLayout TableSettings::layout() const {
  return {
      .dim = dim, .states = make_table_rule(rule)->states(dim), .scores = scores, .times = ttl > 0};
}

int64_t TableSettings::cached_rows(int shards) const {
  if (cache_memory == 0) return 0;
  const RowLayout row = layout();
  // Rows with their stamp, flag and place in the index; a shard evicts when it has an eighth more
  // (TableShard::evict), and holds a sixteenth for a snapshot. Its last blocks are partly empty.
  constexpr int64_t kIndexed = 19, kShard = 512;
  const auto values = static_cast<int64_t>(row.floats() * sizeof(float));
  const int64_t bytes = (values + kIndexed) * 19 / 16 + 1;
  const int64_t fixed = static_cast<int64_t>(row.chunk_bytes() + RowIndex::kBlockBytes) + kShard;
  const int64_t rows = ((cache_memory - storage_memory()) / shards - fixed) / bytes;
  if (rows < 1) {
    const int64_t least = 2 * (fixed + bytes) * shards;
    refuse(name, "storage.cache_memory",
           std::to_string(shards) + " virtual shards with rows of " + std::to_string(values) +
               " bytes need more",
           "use at least " + std::to_string((least >> 20) + 1) + ", or more servers");
  }
  return rows * shards;
}

// A rate that equals the base must give the rule's own, whatever the rounding.
double TableSettings::rate_at(float dense_rate) const {
  const double own = rule.number("learning_rate");
  if (base_rate == 0 || dense_rate == static_cast<float>(base_rate)) return own;
  return own * (static_cast<double>(dense_rate) / base_rate);
}

Schema table_schema(const std::string& rule) {
  return Schema()
      .integer("dim", 16, 1, 65536, "values of a row")
      .section("initializer", initializer_schema())
      .section("rule", table_rule_schema(rule))
      .section("entry", entry_schema())
      .section("shrink", shrink_schema())
      .section("storage", storage_schema());
}

std::vector<std::string> table_names(const ConfigTree& tree) {
  const std::string start = std::string(kTables) + ".";
  std::set<std::string> names;
  for (const std::string& path : tree.paths(start)) {
    const size_t end = path.find('.', start.size());
    if (end != std::string::npos) names.insert(path.substr(start.size(), end - start.size()));
  }
  return {names.begin(), names.end()};
}

Schema tables_schema(const ConfigTree& tree) {
  Schema schema;
  for (const std::string& name : table_names(tree)) {
    const std::string section = std::string(kTables) + "." + name;
    const std::string rule = tree.peek(section + ".rule.name").value_or("adagrad");
    if (!table_rules().find(rule)) refuse_rule(rule, section + ".rule.name");
    schema.section(section, table_schema(rule));
  }
  return schema;
}

TableSettings table_settings(const std::string& name, const Settings& settings, uint64_t seed) {
  TableSettings table{.name = name,
                      .dim = static_cast<int>(settings.integer("dim")),
                      .seed = seed,
                      .initializer = read_initializer(name, settings.section("initializer")),
                      .rule = settings.section("rule")};
  if (file_name_component(name) != name) {
    throw Error(ErrorCode::kUsage, "a table has this name", std::string(kTables) + "." + name,
                "use letters, digits, '_', '-' and '.', as it names a folder of snapshots");
  }
  if (table.rule.number("low") > table.rule.number("high")) {
    refuse(name, "rule.low", "it is greater than rule.high", "exchange them");
  }
  read_entry(settings.section("entry"), &table);
  read_shrink(settings.section("shrink"), &table);
  read_storage(settings.section("storage"), &table);
  return table;
}

}  // namespace fleet::ps
