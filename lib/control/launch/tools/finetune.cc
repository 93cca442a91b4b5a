// fleetrun finetune FOLDER --weights WEIGHTS: writes the job of a folder of photographs, and runs
// it.
#include "launch/tools/finetune.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/child_process.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_size_signal.h"
#include "base/file_status.h"
#include "base/home_folder.h"
#include "base/json.h"
#include "base/program_file.h"
#include "launch/planning/arguments.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"
#include "store/worker_options.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kClassFolders[] =
    "give the folder of your photographs, with a folder for each class";

OptionGroup weights_option() {
  OptionGroup group;
  group.text({.key = "weights", .value = "WEIGHTS"}, "",
             "a folder of timm, a file of weights, or a checkpoint");
  return group;
}

// Options that the line may have: --weights, fleetrun's, and those of fleet-worker that fleetrun
// lacks. --device and --profile are the worker's.
struct LineOptions {
  std::vector<Option> all;
  size_t launcher_begin = 0, launcher_end = 0;  // fleetrun's

  LineOptions() {
    const std::vector<Option> worker = worker_options().options();
    all = weights_option().options();
    for (const Option& option : worker) {
      if (option.key == "device" || option.key == "profile") all.push_back(option);
    }
    launcher_begin = all.size();
    all.insert(all.end(), launch_line_options().begin(), launch_line_options().end());
    launcher_end = all.size();
    all.insert(all.end(), worker.begin(), worker.end());
    for (Option& option : all) option.repeats = true;  // every word is passed on
  }
  bool is_launchers(const Option* option) const {
    const auto at = static_cast<size_t>(option - all.data());
    return at >= launcher_begin && at < launcher_end;
  }
};

// "photos" for "photos/", "./photos" and "photos//": they are one job.
std::string plain_path(const std::string& path) {
  std::string plain =
      path.find("..") == std::string::npos ? fs::path(path).lexically_normal().string() : path;
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain;
}

std::string text_at(const Json& job, const char* section, const char* key) {
  const Json* members = job.find(section);
  const Json* value = members ? members->find(key) : nullptr;
  return value && value->is_string() ? value->get<std::string>() : "";
}

// `before`, with paths as in jobs that are written now.
Json with_plain_paths(Json before) {
  for (const auto& [section, key] : {std::pair("checkpoint", "weights"), {"data", "root"}}) {
    const std::string path = text_at(before, section, key);
    if (!path.empty()) before[section][key] = plain_path(path);
  }
  return before;
}

// fleetrun refuses what it does not know, before anything is written. Its corrected line names the
// job file, which does not exist then.
LaunchRequest launch_request(const FineTuning& given, const std::string& job_file) {
  std::vector<std::string> words = given.launcher;
  words.push_back(job_file);
  words.insert(words.end(), given.job.begin(), given.job.end());
  try {
    return parse_arguments(words);
  } catch (const Error& error) {
    const std::string& line = error.failure();
    throw Error(error.code(), line.substr(0, line.find("\ncorrected: ")), error.where(),
                error.next());
  }
}

// Whether the line says where the photographs are, or what else the data are.
bool names_data(const std::vector<std::string>& job) {
  return std::any_of(job.begin(), job.end(), [](const std::string& word) {
    return word.find("data.train") != std::string::npos ||
           word.find("data.source") != std::string::npos;
  });
}

// Classes are below its folder train, if it has one and `job` names no other.
void check_folder(const std::string& folder, const std::vector<std::string>& job) {
  const std::string path = expand_home(folder);
  if (!path_exists(path)) refuse("'" + folder + "' does not exist", "finetune", kClassFolders);
  if (!is_folder(path)) refuse("'" + folder + "' is not a folder", "finetune", kClassFolders);
  if (names_data(job)) return;
  const bool split = is_folder(path + "/train");
  std::error_code error;
  const fs::directory_iterator entries(split ? path + "/train" : path, error);
  if (error) return;  // a rank tells the reason
  const bool has_classes =
      std::any_of(begin(entries), end(entries),
                  [](const fs::directory_entry& entry) { return is_folder(entry.path()); });
  if (has_classes) return;
  refuse("'" + folder + (split ? "/train" : "") + "' has no folders", "finetune", kClassFolders);
}

// Signals that end a process wait while this lives, so that it cleans up first.
class DelayedSignals {
 public:
  DelayedSignals() {
    sigset_t ends;
    ::sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&ends, signal);
    ::pthread_sigmask(SIG_BLOCK, &ends, &before_);
  }
  ~DelayedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  DelayedSignals(const DelayedSignals&) = delete;
  DelayedSignals& operator=(const DelayedSignals&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

// For --dry_run: the job file is there only while fleetrun looks at it.
int run_without_job_file(const FineTuning& given, const std::vector<std::string>& command) {
  const DelayedSignals delayed;
  const bool written = write_fine_tuning_job(given);
  const pid_t child = start_child({.words = command,
                                   .path = own_path(),
                                   .blocked_signals = delayed.before(),
                                   .default_signals = true});
  const int why = errno;
  const int code = child < 0 ? 1 : wait_for_child(child);
  if (written) ::unlink(given.job_file().c_str());
  if (child >= 0) return code;
  throw Error(ErrorCode::kIo, std::string("cannot be started: ") + std::strerror(why), own_path(),
              "leave out --dry_run");
}

// Writes the job file and lets fleet-worker check it. A file that it refuses is removed: a
// corrected command would be another job.
void write_checked_job(const FineTuning& given, const std::vector<std::string>& worker) {
  if (!write_fine_tuning_job(given) || !is_executable(worker.front())) return;
  try {
    check_job_file(worker, {});
  } catch (const Error&) {
    ::unlink(given.job_file().c_str());
    throw;
  }
}

int run_fine_tuning(const CommandSyntax& syntax, const std::vector<std::string>& words) {
  if (std::any_of(words.begin(), words.end(),
                  [](const std::string& word) { return word == "--help" || word == "-h"; })) {
    std::fputs(command_help(syntax).c_str(), stdout);
    return 0;
  }
  const FineTuning given = read_fine_tuning(words);
  const LaunchRequest request = launch_request(given, given.job_file());
  std::vector<std::string> command = {"fleetrun"}, worker = {default_worker_path()};
  command.insert(command.end(), given.launcher.begin(), given.launcher.end());
  for (std::vector<std::string>* words : {&command, &worker}) {
    words->push_back(given.job_file());
    words->insert(words->end(), given.job.begin(), given.job.end());
  }
  if (request.dry_run.wanted) return run_without_job_file(given, command);
  if (request.action == LaunchRequest::Action::kRun) write_checked_job(given, worker);
  restore_file_size_signal();
  ::execv("/proc/self/exe", pointers_to(command).data());
  throw Error(ErrorCode::kIo, std::string("cannot be started: ") + std::strerror(errno),
              "/proc/self/exe", "run the job file");
}

}  // namespace

std::string FineTuning::job_file() const {
  return fs::absolute(expand_home(folder) + "/.")
             .lexically_normal()
             .parent_path()
             .filename()
             .string() +
         ".json";
}

FineTuning read_fine_tuning(const std::vector<std::string>& words) {
  static const LineOptions known;
  const ParsedOptions parsed = read_options(known.all, words, PositionalWords::kInterleaved);
  FineTuning given;
  enum class Owner { kNone, kLauncher, kJob };
  std::vector<Owner> owners(words.size(), Owner::kNone);
  const auto take = [&](size_t at, size_t count, Owner owner) {
    std::fill_n(owners.begin() + static_cast<std::ptrdiff_t>(at), count, owner);
  };
  for (const GivenOption& one : parsed.options) {
    if (one.option->key == "weights") {
      given.weights = plain_path(one.value);
    } else {
      take(one.at, one.count, known.is_launchers(one.option) ? Owner::kLauncher : Owner::kJob);
    }
  }
  for (const BadOption& bad : parsed.bad) {
    const std::string flag = words[bad.at].substr(0, words[bad.at].find('='));
    const bool is_known = find_flag(known.all, flag) != nullptr;
    const Option* meant = find_flag(known.all, is_known ? flag : nearest_flag(flag, known.all));
    if (meant && !known.is_launchers(meant)) refuse(bad.what, bad.where, bad.next);
    take(bad.at, bad.count, Owner::kLauncher);  // fleetrun refuses it
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (owners[i] == Owner::kLauncher) given.launcher.push_back(words[i]);
    if (owners[i] == Owner::kJob) given.job.push_back(words[i]);
  }
  given.job.insert(given.job.end(), parsed.rest.begin(), parsed.rest.end());
  if (!parsed.bad.empty()) launch_request(given, "photos.json");
  if (parsed.words.empty()) {
    refuse("no folder of photographs is given", "finetune",
           "give one with a folder for each class: fleetrun finetune photos/ --weights DIR");
  }
  if (parsed.words.size() > 1) {
    refuse("two folders are given, '" + parsed.words[0] + "' and '" + parsed.words[1] + "'",
           "finetune", kClassFolders);
  }
  given.folder = plain_path(parsed.words[0]);
  check_folder(given.folder, given.job);
  if (given.weights.empty()) {
    refuse("--weights is missing", "finetune",
           "give a folder of timm, or a file of weights: fleetrun finetune photos/ --weights DIR");
  }
  if (!path_exists(expand_home(given.weights))) {
    refuse("--weights: '" + given.weights + "' does not exist", "finetune", "correct the path");
  }
  return given;
}

bool write_fine_tuning_job(const FineTuning& given) {
  const std::string path = given.job_file();
  const Json job = {{"checkpoint", {{"weights", given.weights}}},
                    {"data", {{"source", "image_folder"}, {"root", given.folder}}}};
  if (!path_exists(path)) {
    write_file_atomically(path, job.dump_lossy(2) + "\n");
    return true;
  }
  Json before = with_plain_paths(Json::try_parse(read_file(path)).value_or(Json()));
  if (before == job) return false;
  const std::string weights = text_at(before, "checkpoint", "weights");
  if (!weights.empty()) before["checkpoint"]["weights"] = given.weights;
  const bool same = before == job;  // but for the weights
  refuse("'" + path + "' exists and " +
             (same ? "has other weights, '" + weights + "'" : "is another job"),
         "finetune", "run it: fleetrun " + path + "; or rename it");
}

FLEET_COMMAND(finetune) {
  def.syntax = {
      .program = "fleetrun finetune",
      .words = "FOLDER --weights WEIGHTS [OPTION of fleetrun]...",
      .about =
          "train a network on a folder of photographs, starting from weights\n"
          "It writes FOLDER.json, never over another job, and runs it with all options of "
          "fleetrun.",
      .options = weights_option(),
      .least = 1,
      .most = 1,
      .missing_word = "give a folder of photographs: fleetrun finetune photos/ --weights DIR"};
  def.run_unparsed = [syntax = def.syntax](const std::vector<std::string>& words) {
    return run_fine_tuning(syntax, words);
  };
}

}  // namespace fleet
