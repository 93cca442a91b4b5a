#include "ps/tables/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>

#include "base/thread.h"
#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kRich[] =
    "'dim': 3, 'rule': {'name': 'adam'}, 'entry': {'kind': 'count', 'count': 2}, "
    "'shrink': {'age': 5, 'by_score': true, 'min_score': 0, 'ttl': 100000}";
constexpr char kNaive[] =
    "'dim': 2, 'rule': {'name': 'naive', 'learning_rate': 1, 'low': -1e9, "
    "'high': 1e9}, 'initializer': {'name': 'constant'}";

void save(Servers& servers, const std::string& folder, int64_t since = 0,
          const SnapshotNote& note = {}) {
  std::vector<Json> parts;
  for (size_t server = 0; server < servers.size(); ++server) {
    parts.push_back(TableCut(servers[server]).write(folder, since));
  }
  finish_snapshot(folder, parts, note);
}
void save(SparseTable& table, const std::string& folder, int64_t since = 0,
          const SnapshotNote& note = {}) {
  finish_snapshot(folder, {TableCut(table).write(folder, since)}, note);
}

// Everything of the table but the versions.
std::vector<std::byte> content_of(const Snapshot& snapshot) {
  const SnapshotTable& table = snapshot.tables()[0];
  const size_t bytes = record_bytes(table.layout);
  std::vector<std::byte> all;
  for (int shard = 0; shard < kVirtualShards; ++shard) {
    ShardContent content = snapshot.read(table.name, shard);
    for (size_t at = 0; at < content.records.size(); at += bytes) {
      std::memset(&content.records[at + offsetof(RecordHead, version)], 0, sizeof(uint32_t));
    }
    const auto* waiting = reinterpret_cast<const std::byte*>(content.waiting.data());
    all.insert(all.end(), content.records.begin(), content.records.end());
    all.insert(all.end(), waiting, waiting + content.waiting.size() * sizeof(WaitingRecord));
  }
  return all;
}

// Rows, states, waiting counts and ages of several kinds.
void fill(Servers& servers) {
  std::mt19937_64 random(4);
  for (int step = 0; step < 6; ++step) {
    const std::vector<uint64_t> ids = random_ids(4000, 20'000, random);
    servers.pull(ids);
    servers.push(ids, random_floats(ids.size() * 3, random));
    if (step % 2 == 0) {
      for (size_t server = 0; server < servers.size(); ++server) servers[server].shrink();
    }
  }
}

TEST(TableSnapshot, SavedAtSServersLoadedAtT_HasTheSameBytes) {
  const TestFolder folder;
  const TableSettings settings = some_settings(kRich);
  std::vector<std::byte> expected;
  for (const int saved : {1, 3}) {
    Servers servers(settings, saved);
    fill(servers);
    const std::string first = folder / ("from" + std::to_string(saved));
    save(servers, first);
    const Snapshot snapshot(first);
    std::vector<std::byte> content = content_of(snapshot);
    // Seconds of the clock are among the bytes, so that runs are not compared with each other.
    ASSERT_GT(content.size(), 100'000u);
    for (const int loaded : {1, 2, 3, 5}) {
      Servers again(settings, loaded);
      for (size_t server = 0; server < again.size(); ++server) load_table(snapshot, again[server]);
      const std::string second = first + "-" + std::to_string(loaded);
      save(again, second);
      EXPECT_EQ(content_of(Snapshot(second)), content) << saved << " to " << loaded;
    }
  }
}

TEST(TableSnapshot, LoadedTable_ContinuesAsTheSavedOne) {
  const TestFolder folder;
  const TableSettings settings = some_settings(
      "'dim': 3, 'rule': {'name': 'adam'}, 'entry': {'kind': 'count', 'count': 2}, "
      "'shrink': {'age': 3}");
  Servers saved(settings, 2), loaded(settings, 3);
  fill(saved);
  save(saved, folder / "a");
  for (size_t server = 0; server < 3; ++server) load_table(Snapshot(folder / "a"), loaded[server]);
  std::mt19937_64 random(9);
  for (int step = 0; step < 3; ++step) {
    const std::vector<uint64_t> ids = random_ids(3000, 20'000, random);
    ASSERT_EQ(saved.pull(ids), loaded.pull(ids));
    const std::vector<float> gradients = random_floats(ids.size() * 3, random);
    for (Servers* servers : {&saved, &loaded}) {
      servers->push(ids, gradients);
      for (size_t server = 0; server < servers->size(); ++server) (*servers)[server].shrink();
    }
  }
  save(saved, folder / "b");
  save(loaded, folder / "c");
  EXPECT_EQ(content_of(Snapshot(folder / "b")), content_of(Snapshot(folder / "c")));
}

TEST(TableSnapshot, ChangesAfterTheCut_AreNotInIt) {
  const TestFolder folder;
  const TableSettings settings = some_settings(
      "'dim': 3, 'rule': {'name': 'adam'}, 'entry': {'kind': 'count', 'count': 2}, 'shrink': "
      "{'age': 5}");
  Servers servers(settings, 1);
  fill(servers);
  save(servers, folder / "before");
  std::mt19937_64 random(6);
  std::vector<Json> parts;
  {
    TableCut cut(servers[0]);
    // Old rows, waiting ids, and ids that are new.
    for (int step = 0; step < 3; ++step) {
      const std::vector<uint64_t> ids = random_ids(6000, 40'000, random);
      servers.pull(ids);
      servers.push(ids, random_floats(ids.size() * 3, random));
    }
    parts.push_back(cut.write(folder / "cut"));
  }
  finish_snapshot(folder / "cut", parts);
  save(servers, folder / "after");
  EXPECT_EQ(content_of(Snapshot(folder / "cut")), content_of(Snapshot(folder / "before")));
  EXPECT_NE(content_of(Snapshot(folder / "after")), content_of(Snapshot(folder / "before")));
}

TEST(TableSnapshot, UnderLoad_IsOneVersion) {
  const TestFolder folder;
  SparseTable table(some_settings(kNaive));
  constexpr size_t kIds = 500;
  const std::vector<uint64_t> ids = first_ids(kIds);
  std::atomic<bool> ends{false};
  std::vector<Thread> threads;
  for (int t = 0; t < 2; ++t) {
    // Each push adds one to every row: in one version all rows are equal.
    threads.emplace_back("push", [&] {
      while (!ends) table.push(ids, std::vector<float>(kIds * 2, -1.0f));
    });
  }
  std::vector<float> last = {0, 0};
  for (int round = 0; round < 4; ++round) {
    const std::string path = folder / std::to_string(round);
    save(table, path);
    SparseTable loaded(some_settings(kNaive));
    load_table(Snapshot(path), loaded);
    const std::vector<float> rows = looked_up(loaded, ids);
    for (const float value : rows) ASSERT_EQ(value, rows[0]);
    EXPECT_GE(rows[0], last[0]);
    last = rows;
    while (looked_up(table, {0})[0] <= rows[0] + 2) std::this_thread::yield();
  }
  ends = true;
  for (Thread& thread : threads) thread.join();
  EXPECT_GT(looked_up(table, {0})[0], last[0]);
}

TEST(TableSnapshot, Deltas_AddUpToTheWhole) {
  const TestFolder folder;
  Servers servers(some_settings(kRich), 2);
  fill(servers);
  save(servers, folder / "full");
  std::mt19937_64 random(12);
  std::string base = folder / "full";
  for (int step = 0; step < 3; ++step) {
    const std::vector<uint64_t> ids = random_ids(300, 25'000, random);
    servers.pull(ids);
    servers.push(ids, random_floats(ids.size() * 3, random));
    const std::string next = folder / ("delta" + std::to_string(step));
    save(servers, next, Snapshot(base).tables()[0].version, {.base = base});
    base = next;
  }
  const Snapshot last(base);
  EXPECT_TRUE(last.has_base());
  EXPECT_LT(last.tables()[0].bytes, Snapshot(folder / "full").tables()[0].bytes / 2);
  save(servers, folder / "whole");
  EXPECT_EQ(content_of(last), content_of(Snapshot(folder / "whole")));
  // A shrink changes all scores and removes rows: its delta has whole shards where rows ended.
  for (int i = 0; i < 5; ++i) {
    for (size_t server = 0; server < 2; ++server) servers[server].shrink();
  }
  save(servers, folder / "shrunk", last.tables()[0].version + 1, {.base = folder / "whole"});
  save(servers, folder / "small");
  EXPECT_EQ(content_of(Snapshot(folder / "shrunk")), content_of(Snapshot(folder / "small")));
}

TEST(TableSnapshot, DeltaOfAnotherBase_IsRefused) {
  const TestFolder folder;
  SparseTable table(some_settings(kNaive));
  for (const char* name : {"one", "two"}) save(table, folder / name);
  save(table, folder / "delta", 1, {.base = folder / "two"});
  EXPECT_THAT(thrown_by([&] { Snapshot snapshot(folder / "delta"); }),
              IsUsageError(EndsWith("delta/manifest.json")));
}

TEST(TableSnapshot, DamagedFiles_AreNamed) {
  const TestFolder folder;
  SparseTable table(some_settings(kNaive));
  table.push(first_ids(20'000), std::vector<float>(40'000, 1.0f));
  save(table, folder / "good");
  const std::string file = "ids/shards-025-049.rows";
  const auto size = std::filesystem::file_size(folder / ("good/" + file));
  const auto read_all = [](const std::string& path) {
    const Snapshot snapshot(path);
    snapshot.check_files("ids");
    for (int shard = 0; shard < kVirtualShards; ++shard) snapshot.read("ids", shard);
  };
  read_all(folder / "good");
  // The header, a row, the directory, its checksum.
  for (const uint64_t at : {uint64_t{9}, uint64_t{30}, uint64_t{5000}, size - 100, size - 2}) {
    const std::string bad = folder / ("bad" + std::to_string(at));
    std::filesystem::copy(folder / "good", bad, std::filesystem::copy_options::recursive);
    std::fstream stream(bad + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const char flipped = static_cast<char>(stream.get() ^ 4);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(flipped);
    stream.close();
    EXPECT_THAT(thrown_by([&] { read_all(bad); }), IsUsageError(EndsWith(file))) << at;
    SparseTable loaded(some_settings(kNaive));
    EXPECT_THAT(thrown_by([&] { load_table(Snapshot(bad), loaded); }),
                IsUsageError(EndsWith(file)));
  }
  for (const uint64_t left : {uint64_t{0}, uint64_t{40}, size / 2, size - 1}) {
    std::filesystem::resize_file(folder / ("good/" + file), left);
    EXPECT_THAT(thrown_by([&] { read_all(folder / "good"); }), IsUsageError(EndsWith(file)));
  }
  std::filesystem::remove(folder / ("good/" + file));
  EXPECT_THAT(thrown_by([&] { read_all(folder / "good"); }),
              IsError(ErrorCode::kNotFound, EndsWith(file)));
}

TEST(TableSnapshot, ADamagedShard_IsNamed) {
  const TestFolder folder;
  SparseTable table(some_settings(kNaive));
  table.push(first_ids(20'000), std::vector<float>(40'000, 1.0f));
  save(table, folder / "a");
  const std::string path = folder / "a/ids/shards-000-024.rows";
  std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(64 + 20);
  stream.put('\x55');
  stream.close();
  const Error error = thrown_by([&] { Snapshot(folder / "a").read("ids", 0); });
  EXPECT_THAT(error.failure(), HasSubstr("shard 0"));
  EXPECT_NO_THROW(Snapshot(folder / "a").read("ids", 1));
}

TEST(TableSnapshot, WithoutAManifest_IsNotASnapshot) {
  const TestFolder folder;
  SparseTable table(some_settings(kNaive));
  const Json part = TableCut(table).write(folder / "a");
  EXPECT_THAT(thrown_by([&] { Snapshot snapshot(folder / "a"); }),
              IsError(ErrorCode::kNotFound, EndsWith("/a")));
  finish_snapshot(folder / "a", {part});
  EXPECT_EQ(Snapshot(folder / "a").table("ids").layout.dim, 2);
}

TEST(TableSnapshot, MissingPartOfAServer_IsRefused) {
  const TestFolder folder;
  Servers servers(some_settings(kNaive), 3);
  std::vector<Json> parts;
  for (size_t server = 0; server < 3; ++server) {
    parts.push_back(TableCut(servers[server]).write(folder / "a"));
  }
  EXPECT_THAT(thrown_by([&] {
                finish_snapshot(folder / "a", {parts[0], parts[2]});
              }),
              IsUsageError("tables.ids"));
  parts[1] = TableCut(servers[1]).write(folder / "a");  // a cut later than the others'
  EXPECT_THAT(thrown_by([&] { finish_snapshot(folder / "a", parts); }), IsUsageError("tables.ids"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a/manifest.json"));
}

// In async, the push that makes it due may have come to one server only.
TEST(TableSnapshot, ShrinkOfOneServer_AgesTheRowsOfAll) {
  const TestFolder folder;
  const TableSettings settings = some_settings(kRich);
  Servers servers(settings, 2);
  fill(servers);
  servers[0].shrink();
  save(servers, folder / "a");
  const Snapshot snapshot(folder / "a");
  EXPECT_EQ(snapshot.tables()[0].shrinks, servers[0].shrinks());
  EXPECT_EQ(servers[1].shrinks(), servers[0].shrinks() - 1);
  Servers again(settings, 1);
  load_table(snapshot, again[0]);
  EXPECT_EQ(again[0].counts().rows, servers[0].counts().rows + servers[1].counts().rows);
}

TEST(TableSnapshot, OtherShapeOrRule_IsRefusedByItsKey) {
  const TestFolder folder;
  SparseTable table(some_settings(kNaive));
  save(table, folder / "a");
  const Snapshot snapshot(folder / "a");
  const std::pair<const char*, const char*> cases[] = {
      {"'dim': 3, 'rule': {'name': 'naive'}", "tables.ids.dim"},
      {"'dim': 2, 'rule': {'name': 'adam'}", "tables.ids.rule.name"},
      {"'dim': 2, 'rule': {'name': 'naive'}, 'shrink': {'ttl': 5}", "tables.ids.shrink.ttl"}};
  for (const auto& [json, key] : cases) {
    SparseTable other(some_settings(json));
    EXPECT_THAT(thrown_by([&] { load_table(snapshot, other); }), IsUsageError(key));
  }
  SparseTable other(some_settings(kNaive, 1, "idx"));
  EXPECT_THAT(thrown_by([&] { load_table(snapshot, other); }), IsError(ErrorCode::kNotFound));
}

TEST(TableSnapshot, ManyCuts_KeepDeltasComplete) {
  SparseTable table(some_settings(kNaive), shards_of_server(0, 1000));
  std::vector<uint64_t> mine;
  for (uint64_t id = 0; mine.size() < 3; ++id) {
    if (shard_of(id) == 0) mine.push_back(id);
  }
  table.push(std::vector<uint64_t>{mine[0]}, std::vector<float>(2));
  for (int cut = 0; cut < 70'000; ++cut) {  // stamps have 16 bits
    if (cut == 69'000) table.push(std::vector<uint64_t>{mine[1]}, std::vector<float>(2));
    table.begin_cut();
    table.end_cut();
  }
  table.push(std::vector<uint64_t>{mine[2]}, std::vector<float>(2));
  table.begin_cut();
  const ShardContent delta = table.take_cut(0, 68'000);
  table.end_cut();
  const size_t bytes = record_bytes(table.layout());
  ASSERT_EQ(delta.records.size(), 2 * bytes);
  EXPECT_EQ(record_head(&delta.records[0]).id, mine[1]);
  EXPECT_EQ(record_head(&delta.records[0]).version, 69'001u);
  EXPECT_EQ(record_head(&delta.records[bytes]).id, mine[2]);
}

}  // namespace
}  // namespace fleet::ps
