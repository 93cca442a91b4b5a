#include "arguments.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/command_line.h"
#include "base/error.h"
#include "base/text.h"
#include "store/worker_options.h"

namespace fleet {

namespace {

CommandSyntax syntax() {
  return {.program = "fleet-worker",
          .words = "JOB",
          .about =
              "Runs one rank of a job file (JSON). fleetrun starts it; started directly, it runs a "
              "job of one rank.",
          .options = worker_options(),
          .most = SIZE_MAX};  // the words after the job file may belong to --predict
}

// "--print_program dot" becomes "--print_program=dot": without such a value, the next word may be
// the job file.
std::vector<std::string> joined_values(const std::vector<std::string>& words) {
  const OptionGroup options = worker_options();
  const auto takes = [&](const std::string& word, const std::string& next) {
    for (size_t i = 0; i < options.options().size(); ++i) {
      const Option& option = options.options()[i];
      if (option.implied.empty() || canonical_flag(word) != "--" + option.key) continue;
      const std::vector<std::string>& choices = options.schema().keys()[i].choices;
      return std::find(choices.begin(), choices.end(), next) != choices.end();
    }
    return false;
  };
  std::vector<std::string> joined;
  for (size_t i = 0; i < words.size(); ++i) {
    joined.push_back(words[i]);
    if (i + 1 < words.size() && takes(words[i], words[i + 1])) joined.back() += "=" + words[++i];
  }
  return joined;
}

int64_t shard_bytes_of(const Settings& given) {
  if (!given.given("shard_size")) return 0;
  int64_t bytes = 0;
  if (parse_size(given.text("shard_size"), &bytes) && bytes > 0) return bytes;
  throw Error(ErrorCode::kUsage, "'" + given.text("shard_size") + "' is not a size", "--shard_size",
              "give bytes, as 500M or 5G");
}

WorkerArguments from_settings(const Settings& given) {
  const auto integer_or = [&](const std::string& key, int fallback) {
    return given.given(key) ? static_cast<int>(given.integer(key)) : fallback;
  };
  const auto text_if_given = [&](const std::string& key) {
    return given.given(key) ? given.text(key) : std::string();
  };
  return {.device = given.text("device"),
          .overrides = given.texts("set"),
          .log_level = given.text("log_level"),
          .predict = given.texts("predict"),
          .check = given.boolean("check"),
          .explain = given.boolean("explain"),
          .nodes = integer_or("nodes", 0),
          .card = given.text("for"),
          .measure = given.text("measure"),
          .link_rate = given.text("link_rate"),
          .format = given.text("format"),
          .print_config = given.boolean("print_config"),
          .print_keys = given.boolean("print_keys"),
          .print_plan = given.boolean("print_plan"),
          .rank = integer_or("rank", -1),
          .ranks = integer_or("ranks", 0),
          .servers = integer_or("servers", -1),
          .print_program = text_if_given("print_program"),
          .print_flags = text_if_given("print_flags"),
          .print_operations = given.boolean("print_operations"),
          .save_strategy = given.text("save_strategy"),
          .paddle = given.text("paddle"),
          .export_onnx = given.text("export_onnx"),
          .export_hf = given.text("export_hf"),
          .export_timm = given.text("export_timm"),
          .export_torchvision = given.text("export_torchvision"),
          .shard_bytes = shard_bytes_of(given),
          .pack = given.text("pack"),
          .pack_size = static_cast<int>(given.integer("size")),
          .pack_quality = static_cast<int>(given.integer("quality")),
          .pack_threads = static_cast<int>(given.integer("pack_threads")),
          .pack_raw = given.boolean("raw"),
          .pack_jpeg = given.boolean("jpeg"),
          .profile = given.boolean("profile")};
}

// The first word is the job file, the others are more images of --predict.
void take_words(const std::vector<std::string>& words, WorkerArguments* arguments) {
  if (words.empty()) return;
  arguments->job_file = words[0];
  if (words.size() > 1 && arguments->predict.empty()) {
    throw Error(ErrorCode::kUsage, "unexpected argument '" + words[1] + "'", {},
                "see fleet-worker --help");
  }
  arguments->predict.insert(arguments->predict.end(), words.begin() + 1, words.end());
}

// Options that have an effect only with another one.
void refuse_lonely_options(const Settings& given) {
  constexpr std::pair<const char*, const char*> kNeeds[] = {
      {"nodes", "explain"},       {"for", "explain"},
      {"measure", "explain"},     {"link_rate", "explain"},
      {"size", "pack"},           {"raw", "pack"},
      {"jpeg", "pack"},           {"quality", "pack"},
      {"pack_threads", "pack"},   {"paddle", "save_strategy"},
      {"shard_size", "export_hf"}};
  for (const auto& [option, needed] : kNeeds) {
    if (!given.given(option) || given.given(needed)) continue;
    throw Error(ErrorCode::kUsage, std::string("--") + option + " requires --" + needed, {},
                "see fleet-worker --help");
  }
}

// Options that do one thing and exit, and --profile, which trains: only one of them can be given.
// --predict is a setting of the job, which some of them print. --check checks any of these lines.
void refuse_second_action(const WorkerArguments& arguments) {
  const bool predicts = !arguments.predict.empty();
  const char* prints = arguments.print_config             ? "--print_config"
                       : arguments.print_plan             ? "--print_plan"
                       : !arguments.print_program.empty() ? "--print_program"
                                                          : nullptr;
  std::vector<std::string> given;
  if (prints) given.push_back(prints);
  for (const auto& [option, is_given] :
       {std::pair("--print_flags", !arguments.print_flags.empty()),
        {"--print_keys", arguments.print_keys},
        {"--print_operations", arguments.print_operations},
        {"--explain", arguments.explain},
        {"--pack", !arguments.pack.empty()},
        {"--save_strategy", !arguments.save_strategy.empty()},
        {"--export_onnx", !arguments.export_onnx.empty()},
        {"--export_hf", !arguments.export_hf.empty()},
        {"--export_timm", !arguments.export_timm.empty()},
        {"--export_torchvision", !arguments.export_torchvision.empty()},
        {"--profile", arguments.profile},
        {"--predict", predicts && !prints}}) {
    if (is_given) given.push_back(option);
  }
  if (given.size() < 2) return;
  throw Error(ErrorCode::kUsage, given[0] + " and " + given[1] + " cannot be combined", {},
              "give one of them");
}

// Rules between several options.
void check_combinations(const WorkerArguments& arguments) {
  if (arguments.format != "text" && !arguments.check && !arguments.explain) {
    throw Error(ErrorCode::kUsage, "--format requires --check or --explain", {},
                "see fleet-worker --help");
  }
  refuse_second_action(arguments);
  if (!arguments.card.empty() && !arguments.device.empty()) {
    throw Error(ErrorCode::kUsage, "--for and --device cannot be combined", {},
                "leave out --device: --for explains for a GPU that this machine lacks");
  }
  const bool prints = arguments.check || arguments.explain || arguments.print_config ||
                      arguments.print_plan || !arguments.print_program.empty() ||
                      !arguments.save_strategy.empty();
  if ((arguments.rank >= 0 || arguments.ranks > 0 || arguments.servers >= 0) && !prints) {
    throw Error(ErrorCode::kUsage,
                "--rank, --ranks and --servers require --check, --explain, --save_strategy, "
                "--print_config, "
                "--print_program or --print_plan",
                {}, "start a job of several ranks with fleetrun --nproc_per_node=N");
  }
  const bool needs_job = arguments.print_flags.empty() && !arguments.print_operations;
  if (arguments.job_file.empty() && needs_job) {
    throw Error(ErrorCode::kUsage, "no job file is given", {}, "see fleet-worker --help");
  }
}

}  // namespace

bool parse_arguments(int argc, char** argv, WorkerArguments* arguments) {
  const auto line =
      read_command_line(syntax(), joined_values(std::vector<std::string>(argv + 1, argv + argc)));
  if (!line) {
    std::fputs(command_help(syntax()).c_str(), stdout);
    return false;
  }
  if (line->settings.boolean("version")) {
    std::puts("fleet-worker " FLEET_VERSION);
    return false;
  }
  *arguments = from_settings(line->settings);
  take_words(line->words, arguments);
  refuse_lonely_options(line->settings);
  check_combinations(*arguments);
  return true;
}

bool runs_operations(const WorkerArguments& arguments) {
  const bool prints = arguments.print_config || arguments.print_keys || arguments.print_plan ||
                      arguments.print_operations || !arguments.print_program.empty() ||
                      !arguments.print_flags.empty();
  const bool writes = !arguments.save_strategy.empty() || !arguments.export_onnx.empty() ||
                      !arguments.export_hf.empty() || !arguments.export_timm.empty() ||
                      !arguments.export_torchvision.empty() || !arguments.pack.empty();
  return !arguments.check && !prints && !writes;
}

bool wants_json_verdict(int argc, char** argv) {
  bool check = false, json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], next = i + 1 < argc ? argv[i + 1] : "";
    check = check || word == "--check" || word == "--check=true";
    json = json || word == "--format=json" || (word == "--format" && next == "json");
  }
  return check && json;
}

}  // namespace fleet
