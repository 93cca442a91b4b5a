#include "ps/tables/snapshot.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/fault_point.h"
#include "base/file_name.h"
#include "base/file_status.h"
#include "base/text.h"
#include "train/safetensors.h"

namespace fleet::ps {
namespace {

constexpr int kFormat = 1, kShardsPerFile = 25, kMostBases = 1000;

std::string three_digits(int shard) {
  std::string text = std::to_string(shard);
  return std::string(3 - std::min<size_t>(3, text.size()), '0') + text;
}

std::string manifest_path(const std::string& folder) { return folder + "/" + kSnapshotManifest; }

// Covers the content too: a manifest has the checksums of its files.
uint32_t crc_of_manifest(const std::string& folder) {
  return crc32c(read_file(manifest_path(folder)));
}

[[noreturn]] void damaged_manifest(const std::string& folder, const std::string& what) {
  throw DamagedFile(what, manifest_path(folder), "load an older snapshot");
}

// The manifest's entry of one table, from the parts of all servers.
Json joined(const std::string& name, const std::vector<const Json*>& parts) {
  std::map<int, Json> files;
  int64_t shrinks = 0;
  for (const Json* part : parts) {
    shrinks = std::max(shrinks, part->at("shrinks").get<int64_t>());
    for (const char* key : {"version", "since", "dim", "states", "rule"}) {
      if (part->at(key) == parts[0]->at(key)) continue;
      throw Error(ErrorCode::kUsage,
                  "servers have cut different states (" + std::string(key) + " differs)",
                  "tables." + name, "cut all servers at the same step");
    }
    for (const Json& file : part->at("files").elements()) files[file.at("first").get<int>()] = file;
  }
  int next = 0;
  std::vector<Json> list;
  for (const auto& [first, file] : files) {
    if (first != next) break;
    next = file.at("end").get<int>();
    list.push_back(file);
  }
  if (next != kVirtualShards || list.size() != files.size()) {
    throw Error(ErrorCode::kUsage, "shard " + std::to_string(next) + " is missing",
                "tables." + name, "wait until all servers have written their parts");
  }
  Json all = *parts[0];
  // In async, a push that makes a shrink due may have come to some servers only. Rows of the others
  // are loaded as if they had aged too.
  all["shrinks"] = shrinks;
  all["files"] = Json::array(std::move(list));
  return all;
}

}  // namespace

TableCut::TableCut(SparseTable& table)
    : table_((table.begin_cut(), table)),
      version_(table.version() - 1),
      shrinks_(table.shrinks()) {}

TableCut::~TableCut() { table_.end_cut(); }

Json TableCut::write(const std::string& folder, int64_t since,
                     const std::function<void(int)>& progress) {
  const std::string name = file_name_component(table_.settings().name);
  make_directories(folder + "/" + name);
  const RowLayout& layout = table_.layout();
  Json files = Json::array();
  const ShardRange range = table_.shards();
  for (int first = range.first; first < range.end;) {
    const int end = std::min(range.end, (first / kShardsPerFile + 1) * kShardsPerFile);
    const std::string file =
        name + "/shards-" + three_digits(first) + "-" + three_digits(end - 1) + ".rows";
    RowFileWriter writer(folder + "/" + file, {.first = static_cast<uint32_t>(first),
                                               .end = static_cast<uint32_t>(end),
                                               .floats = static_cast<uint32_t>(layout.floats()),
                                               .version = version_,
                                               .since = since});
    for (int shard = first; shard < end; ++shard) {
      writer.add(table_.take_cut(shard, since));
      fault_point("ps_writes");
      if (progress) progress(shard + 1 - range.first);
    }
    writer.finish();
    files.push_back({{"file", file},
                     {"first", first},
                     {"end", end},
                     {"bytes", writer.bytes()},
                     {"crc32c", writer.crc()}});
    first = end;
  }
  return {{"name", table_.settings().name},
          {"dim", layout.dim},
          {"states", layout.states},
          {"scores", layout.scores},
          {"times", layout.times},
          {"rule", table_.settings().rule.text("name")},
          {"version", version_},
          {"since", since},
          {"shrinks", shrinks_},
          {"files", std::move(files)}};
}

void finish_snapshot(const std::string& folder, const std::vector<Json>& parts,
                     const SnapshotNote& note) {
  std::map<std::string, std::vector<const Json*>> by_table;
  for (const Json& part : parts) by_table[part.at("name").get<std::string>()].push_back(&part);
  Json manifest = {{"format", kFormat}, {"tables", Json::array()}};
  if (!note.base.empty()) {
    // Relative, so that snapshots can be moved together.
    const auto base = std::filesystem::absolute(note.base).lexically_normal();
    manifest["base"] =
        base.lexically_relative(std::filesystem::absolute(folder).lexically_normal()).string();
    manifest["base_crc32c"] = crc_of_manifest(note.base);
  }
  if (!note.more.is_null()) manifest["more"] = note.more;
  for (const auto& [name, list] : by_table) manifest["tables"].push_back(joined(name, list));
  write_file_atomically(manifest_path(folder), manifest.dump(1) + "\n");
}

Snapshot::~Snapshot() = default;

Snapshot::Snapshot(const std::string& folder) : folder_(folder) {
  if (!std::filesystem::exists(manifest_path(folder))) {
    throw Error(ErrorCode::kNotFound,
                std::filesystem::is_directory(folder)
                    ? "it is not a snapshot, or it was not written completely: it has no manifest"
                    : "no such folder",
                folder, "give a folder with a " + std::string(kSnapshotManifest));
  }
  try {
    read_manifest(Json::parse(read_file(manifest_path(folder))));
  } catch (const JsonError& error) {
    damaged_manifest(folder, error.what());
  }
}

void Snapshot::read_manifest(const Json& manifest) {
  if (manifest.value("format", 0) != kFormat) {
    throw Error(ErrorCode::kUnsupported, "another version of fleetrun wrote it",
                manifest_path(folder_), "read it with that version");
  }
  if (const Json* more = manifest.find("more")) more_ = *more;
  for (const Json& entry : manifest.at("tables").elements()) {
    SnapshotTable table{.name = entry.at("name").get<std::string>(),
                        .layout = {.dim = entry.at("dim").get<int>(),
                                   .states = entry.at("states").get<int>(),
                                   .scores = entry.at("scores").get<bool>(),
                                   .times = entry.at("times").get<bool>()},
                        .rule = entry.at("rule").get<std::string>(),
                        .version = entry.at("version").get<int64_t>(),
                        .since = entry.at("since").get<int64_t>(),
                        .shrinks = entry.at("shrinks").get<int64_t>()};
    std::vector<File>& files = files_[table.name];
    int next = 0;
    for (const Json& file : entry.at("files").elements()) {
      files.push_back({.first = file.at("first").get<int>(),
                       .end = file.at("end").get<int>(),
                       .bytes = file.at("bytes").get<int64_t>(),
                       .path = folder_ + "/" + file.at("file").get<std::string>()});
      if (files.back().first != next) damaged_manifest(folder_, "its list of files has a gap");
      next = files.back().end;
      table.bytes += files.back().bytes;
    }
    if (next != kVirtualShards) damaged_manifest(folder_, "its list of files is incomplete");
    table.files = std::ssize(files);
    tables_.push_back(std::move(table));
  }
  if (manifest.contains("base")) open_base(manifest);
  for (const SnapshotTable& table : tables_) {
    if (table.since == 0) continue;
    if (base_ == nullptr || base_->table(table.name).version != table.since) {
      damaged_manifest(folder_, "the changes of the table '" + table.name +
                                    "' do not fit the base: it has another version");
    }
  }
}

void Snapshot::open_base(const Json& manifest) {
  thread_local int depth = 0;
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } deeper;
  if (depth > kMostBases) damaged_manifest(folder_, "its chain of bases has no end");
  const std::filesystem::path path(folder_ + "/" + manifest.at("base").get<std::string>());
  base_folder_ = path.lexically_normal().string();
  if (!path_exists(manifest_path(base_folder_))) {
    throw DamagedFile(
        "it has only the changes since another snapshot, which is missing: " + base_folder_,
        folder_, "put that back, or load an older snapshot");
  }
  const Json* crc = manifest.find("base_crc32c");
  if (crc && crc->get<int64_t>() != int64_t{crc_of_manifest(base_folder_)}) {
    damaged_manifest(folder_, "its base, " + base_folder_ + ", is not the one it was made for");
  }
  base_ = std::make_unique<Snapshot>(base_folder_);
}

const SnapshotTable& Snapshot::table(const std::string& name) const {
  std::vector<std::string> names;
  for (const SnapshotTable& table : tables_) {
    if (table.name == name) return table;
    names.push_back(table.name);
  }
  throw Error(ErrorCode::kNotFound, "the snapshot has no table '" + name + "'", folder_,
              suggestion(name, names));
}

const Snapshot::File& Snapshot::file_of(const std::string& table, int shard) const {
  this->table(table);
  for (const File& file : files_.at(table)) {
    if (shard < file.end) return file;
  }
  FLEET_CHECK(false, "no such shard");
  std::abort();
}

const RowFileReader& Snapshot::reader(const std::string& table, const File& file) const {
  const MutexLock lock(mutex_);
  auto& reader = open_[file.path];
  if (reader) return *reader;
  auto opened = std::make_unique<RowFileReader>(file.path, file.bytes);
  if (opened->head().floats != this->table(table).layout.floats() ||
      static_cast<int>(opened->head().first) != file.first ||
      static_cast<int>(opened->head().end) != file.end ||
      opened->head().version != this->table(table).version) {
    throw DamagedFile("it belongs to another snapshot", file.path, "load an older snapshot");
  }
  reader = std::move(opened);
  return *reader;
}

void Snapshot::check_files(const std::string& table) const {
  this->table(table);
  for (const File& file : files_.at(table)) reader(table, file);
  if (base_) base_->check_files(table);
}

Snapshot::Count Snapshot::count(const std::string& table, int shard) const {
  const RowFileReader& file = reader(table, file_of(table, shard));
  if (base_ == nullptr) return {file.rows(shard), file.waiting(shard)};
  const ShardContent content = read(table, shard);
  const size_t bytes = record_bytes(this->table(table).layout);
  return {static_cast<int64_t>(content.records.size() / bytes), std::ssize(content.waiting)};
}

ShardContent Snapshot::read(const std::string& table, int shard) const {
  ShardContent changes = reader(table, file_of(table, shard)).read(shard);
  if (changes.full) return changes;
  if (!base_) {
    damaged_manifest(folder_, "it has changes of the table '" + table + "', but no base");
  }
  ShardContent content = base_->read(table, shard);
  merge_content(std::move(changes), record_bytes(this->table(table).layout), &content);
  return content;
}

static ShardContent filtered(ShardContent content, size_t record_bytes,
                             const std::function<bool(uint64_t)>& wanted) {
  if (!wanted) return content;
  std::vector<std::byte> records;
  for (size_t at = 0; at < content.records.size(); at += record_bytes) {
    const std::byte* record = content.records.data() + at;
    if (wanted(record_head(record).id)) {
      records.insert(records.end(), record, record + record_bytes);
    }
  }
  content.records = std::move(records);
  std::erase_if(content.waiting, [&](const WaitingRecord& one) { return !wanted(one.id); });
  return content;
}

void load_table(const Snapshot& snapshot, SparseTable& table,
                const std::function<void(int)>& progress,
                const std::function<bool(uint64_t)>& wanted) {
  const TableSettings& settings = table.settings();
  const SnapshotTable& saved = snapshot.table(settings.name);
  const auto compare = [&](const char* key, const std::string& here, const std::string& there) {
    if (here == there) return;
    throw Error(ErrorCode::kUsage, "the snapshot has " + there + ", the job " + here,
                "tables." + settings.name + "." + key, "change the job, or begin without it");
  };
  const RowLayout& layout = table.layout();
  compare("dim", std::to_string(layout.dim), std::to_string(saved.layout.dim));
  compare("rule.name", settings.rule.text("name"), saved.rule);
  compare("shrink.by_score", layout.scores ? "true" : "false",
          saved.layout.scores ? "true" : "false");
  compare("shrink.ttl", layout.times ? "a time for each row" : "no times",
          saved.layout.times ? "a time for each row" : "no times");
  compare("rule", std::to_string(layout.states) + " states",
          std::to_string(saved.layout.states) + " states");
  table.begin_restore(saved.version, saved.shrinks);
  const ShardRange range = table.shards();
  for (int shard = range.first; shard < range.end; ++shard) {
    table.restore(
        filtered(snapshot.read(settings.name, shard), record_bytes(table.layout()), wanted));
    if (progress) progress(shard + 1 - range.first);
  }
}

}  // namespace fleet::ps
