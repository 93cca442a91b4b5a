// fleetrun compare A B...: runs side by side, with means over seeds.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>

#include "base/commands.h"
#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"
#include "viewing/compare/comparison.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

// Adds the runs below a folder. depth: levels of folders to look into.
void add_runs(const fs::path& folder, int depth, std::vector<std::string>* found) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    // A link such as `latest` would be one of the others again.
    if (entry->is_symlink(gone) || !entry->is_directory(gone)) continue;
    if (is_run_folder(entry->path())) {
      found->push_back(entry->path());
    } else if (depth > 1) {
      add_runs(entry->path(), depth - 1, found);
    }
  }
}

// A folder that is not a run stands for the runs in it, such as output or output/NAME.
std::vector<std::string> expand(const std::vector<std::string>& words) {
  constexpr int kDepth = 3;
  std::vector<std::string> folders;
  for (std::string word : words) {
    while (word.size() > 1 && word.back() == '/') word.pop_back();
    std::vector<std::string> inside;
    if (!is_run_folder(word)) add_runs(word, kDepth, &inside);
    if (inside.empty()) {
      check_run_folder(word);
      inside.push_back(word);
    }
    std::ranges::sort(inside);
    std::ranges::move(inside, std::back_inserter(folders));
  }
  return folders;
}

// Several threads: most of the time goes into copying the files from the kernel.
std::vector<RunSummary> read_all(const std::vector<std::string>& folders,
                                 std::optional<double> target) {
  std::vector<RunSummary> runs(folders.size());
  std::atomic<size_t> next{0};
  const size_t count = std::min({available_cores().size(), folders.size(), size_t{16}});
  std::vector<Thread> threads = start_threads(count, "compare", [&] {
    for (size_t run = 0; (run = next++) < folders.size();) {
      runs[run] = read_run_summary(folders[run], target);
    }
  });
  for (Thread& thread : threads) thread.join();
  return runs;
}

[[noreturn]] void refuse_target(const std::string& target) {
  throw Error(ErrorCode::kUsage, "it is not an accuracy from 0 to 1", "--target " + target,
              "give a number such as 0.9");
}

int run_compare(const CommandLine& line) {
  const std::string target = line.settings.text("target");
  std::optional<double> reached;
  if (!target.empty()) {
    double value = 0;
    if (!parse_double(target, &value) || !(value > 0)) refuse_target(target);
    reached = value;
  }
  const Comparison all = compare_runs(read_all(expand(line.words), reached));
  const auto has_rate = [](const RunSummary& run) { return run.metrics.larger_is_better; };
  if (reached.value_or(0) > 1 && std::ranges::all_of(all.runs, has_rate)) refuse_target(target);
  const bool json = line.settings.text("format") == "json";
  const ComparisonOptions options{.target = target};
  std::fputs((json ? comparison_json(all, options) : comparison_text(all, options)).c_str(),
             stdout);
  return 0;
}

}  // namespace

FLEET_COMMAND(compare) {
  def.syntax = {
      .program = "fleetrun compare",
      .words = "FOLDER...",
      .about =
          "compare runs of fleet-worker: settings that differ, results, time to reach a value\n"
          "FOLDER: the folder of a run, or one with several runs, such as output or output/NAME. "
          "Runs that\ndiffer only in their seed form one group, shown as mean \xc2\xb1 standard "
          "deviation.",
      .least = 1,
      .most = 1'000'000,
      .missing_word = "name the folders of runs, such as output/lenet/run-001"};
  def.syntax.options
      .text({.key = "target", .value = "VALUE", .optional = true}, "",
            "also show the time until an evaluation first reaches this accuracy, such as 0.9, or "
            "this value of another main metric")
      .choice({.key = "format", .value = "text|json", .optional = true}, "text", {"text", "json"},
              "output format: text for people, json for programs");
  def.run = run_compare;
}

}  // namespace fleet
