// fleet-worker table: `fleetrun table`.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/commands.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file_status.h"
#include "base/terminal_text.h"
#include "base/terminal_width.h"
#include "base/text.h"
#include "base/text_table.h"
#include "observe/progress.h"
#include "ps/tables/export_rows.h"
#include "ps/tables/snapshot.h"
#include "store/table_commands.h"
#include "text_command.h"

namespace fleet {
namespace {

class ShardProgress {
 public:
  explicit ShardProgress(const std::string& title)
      : progress_({.width = terminal_width(STDERR_FILENO), .write = write_progress}) {
    progress_.start(title, ps::kVirtualShards);
  }
  ~ShardProgress() { progress_.finish(); }
  void update(int done, int64_t rows) { progress_.update(done, count_text(rows) + " rows"); }

 private:
  Progress progress_;
};

std::vector<std::string> chosen_tables(const ps::Snapshot& snapshot, const std::string& name) {
  std::vector<std::string> names;
  if (!name.empty()) return {snapshot.table(name).name};
  for (const ps::SnapshotTable& table : snapshot.tables()) names.push_back(table.name);
  return names;
}

std::string only_table(const ps::Snapshot& snapshot, const std::string& name) {
  const std::vector<std::string> names = chosen_tables(snapshot, name);
  if (names.size() == 1) return names[0];
  throw Error(ErrorCode::kUsage, "the snapshot has " + counted(std::ssize(names), "table"),
              "--table", "choose one of: " + join_first(names, 8));
}

void print_counts(const ps::Snapshot& snapshot, const std::vector<std::string>& names, bool check) {
  std::vector<std::vector<std::string>> lines = {
      {"table", "rows", "waiting", "dim", "rule", "version", "size"}};
  for (const std::string& name : names) {
    const ps::SnapshotTable& table = snapshot.table(name);
    int64_t rows = 0, waiting = 0;
    {
      ShardProgress progress((check ? "check " : "count ") + name);
      for (int shard = 0; shard < ps::kVirtualShards; ++shard) {
        if (check) snapshot.read(name, shard);
        const ps::Snapshot::Count count = snapshot.count(name, shard);
        rows += count.rows;
        waiting += count.waiting;
        progress.update(shard + 1, rows);
      }
    }
    lines.push_back({name, std::to_string(rows), std::to_string(waiting),
                     std::to_string(table.layout.dim), table.rule, std::to_string(table.version),
                     mebibytes(static_cast<size_t>(table.bytes))});
  }
  std::fputs(format_table(lines).c_str(), stdout);
  if (snapshot.has_base()) {
    std::printf("the rows of %s, and the changes since\n",
                shown_path(snapshot.base_folder()).c_str());
  }
  if (check) std::printf("all checksums match\n");
}

uint64_t parse_id(const std::string& text) {
  size_t end = 0;
  try {
    if (!text.empty() && text[0] != '-') {
      const uint64_t id = std::stoull(text, &end);
      if (end == text.size()) return id;
    }
  } catch (const std::exception&) {
  }
  throw Error(ErrorCode::kUsage, "'" + text + "' is not an id", "--id",
              "give an integer from 0 to 18446744073709551615");
}

void print_ids(const ps::Snapshot& snapshot, const std::string& table,
               const std::vector<std::string>& ids) {
  std::vector<std::string> unknown;
  for (const std::string& text : ids) {
    const uint64_t id = parse_id(text);
    const std::string line = ps::describe_id(snapshot, table, id);
    if (line.empty()) {
      unknown.push_back(text);
    } else {
      std::printf("%s\n", line.c_str());
    }
  }
  if (unknown.empty()) return;
  std::fflush(stdout);
  throw Error(ErrorCode::kNotFound, "it has no row of id " + join_first(unknown, 8),
              "table " + table, "see the ids with --export -");
}

void check_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (path == "-" || folder.empty() || is_folder(folder)) return;
  throw Error(ErrorCode::kUsage, "the folder does not exist", folder,
              "create it, or give another --export");
}

// A checkpoint has its snapshot in a folder of its own.
std::string snapshot_folder(const std::string& given) {
  const std::string inside = given + "/tables";
  const auto is_snapshot = [](const std::string& folder) {
    return path_exists(folder + "/" + ps::kSnapshotManifest);
  };
  return !is_snapshot(given) && is_snapshot(inside) ? inside : given;
}

void export_table(const ps::Snapshot& snapshot, const std::string& table, const std::string& path,
                  const std::string& format) {
  const bool npy = format == "npy" || (format == "auto" && path.ends_with(".npy"));
  if (npy && path == "-") {
    throw Error(ErrorCode::kUsage, "an array cannot be written to standard output", "--format",
                "give a file, or use --format text");
  }
  check_folder_of(path);
  int64_t rows = 0;
  {
    ShardProgress progress("export " + table);
    rows = ps::export_rows(snapshot, table, path, npy,
                           [&](int done, int64_t written) { progress.update(done, written); });
  }
  if (path == "-") return;
  std::printf("%s: %s of %s\n", shown_path(path).c_str(), counted(rows, "row").c_str(),
              counted(snapshot.table(table).layout.dim, "value").c_str());
  if (npy) std::printf("%s: their ids\n", shown_path(ps::ids_path(path)).c_str());
}

int run_table(const CommandLine& line) {
  const ps::Snapshot snapshot(snapshot_folder(line.words[0]));
  const std::string table = line.settings.text("table"), path = line.settings.text("export");
  const std::vector<std::string> ids = line.settings.texts("id");
  const bool check = line.settings.boolean("check");
  for (const std::string& name : chosen_tables(snapshot, table)) snapshot.check_files(name);
  if (!ids.empty()) print_ids(snapshot, only_table(snapshot, table), ids);
  if (!path.empty()) {
    export_table(snapshot, only_table(snapshot, table), path, line.settings.text("format"));
  }
  if (check || (ids.empty() && path.empty())) {
    print_counts(snapshot, chosen_tables(snapshot, table), check);
  }
  return 0;
}

}  // namespace

FLEET_COMMAND(table) {
  def.syntax = table_syntax();
  def.run = run_table;
}

}  // namespace fleet
