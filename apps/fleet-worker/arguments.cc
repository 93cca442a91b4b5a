#include "arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/option_group.h"
#include "base/text.h"
#include "strategy/save.h"

namespace fleet {

namespace {

// Options whose value may be left out, which is "text" then.
struct Printed {
  const char* option;
  std::vector<std::string> values;
};
const std::vector<Printed>& printed() {
  static const std::vector<Printed> all = {{"--print_flags", {"text", "markdown"}},
                                           {"--print_program", {"text", "dot"}}};
  return all;
}

// The word with the value "text" where it is one of these options and none follows: what follows
// may be the job file.
std::string with_value(const std::string& word, const std::string& next) {
  for (const Printed& option : printed()) {
    if (word != option.option) continue;
    const auto& values = option.values;
    if (std::find(values.begin(), values.end(), next) == values.end()) return word + "=text";
  }
  return word;
}

// In the names of options a dash is an underscore.
std::string declared(const std::string& word) {
  if (!word.starts_with("--")) return word;
  const size_t end = std::min(word.find('='), word.size());
  return canonical_flag(word.substr(0, end)) + word.substr(end);
}

}  // namespace

bool parse_arguments(int argc, char** argv, WorkerArguments* arguments) {
  CLI::App app{
      "Trains what a job file says, as one rank. fleetrun starts it; alone it is a job of one "
      "rank."};
  app.name("fleet-worker");
  app.add_option("job", arguments->job_file, "Job file (JSON)");
  app.add_option("--set", arguments->overrides, "key=value over the job file, any number of times")
      ->allow_extra_args(false);
  app.add_option("--device", arguments->device,
                 "auto, cpu or cuda; short for --set train.device=, over which it goes");
  app.add_option(
      "--predict", arguments->predict,
      "Predict the classes of these images, folders or lists (.txt) instead of training; "
      "behind the job file. Short for --set predict.input=");
  app.add_option("--log_level", arguments->log_level, "DEBUG, INFO, WARNING or ERROR");
  app.add_flag("--print_config", arguments->print_config,
               "Print each setting and where it came from, and end");
  app.add_flag("--print_keys", arguments->print_keys,
               "Print the keys this job file may have, and end");
  app.add_option(
         "--print_flags", arguments->print_flags,
         "Print every option of a strategy, as text (where nothing is said) or markdown, and "
         "end; needs no job")
      ->check(CLI::IsMember(printed()[0].values));
  app.add_option("--print_program", arguments->print_program,
                 "Print the Program as text (where nothing is said) or dot, and end")
      ->check(CLI::IsMember(printed()[1].values));
  app.add_flag("--print_plan", arguments->print_plan,
               "Print the Plan (order, layouts, memory), and end");
  app.add_option("--save_strategy", arguments->save_strategy,
                 "Write the job's strategy to this file, for Paddle's load_from_prototxt, and end");
  app.add_option("--paddle", arguments->paddle,
                 "The release of Paddle that is to read it; names it does not have are left out")
      ->capture_default_str()
      ->check(CLI::IsMember(paddle_releases()));
  app.add_option("--export_onnx", arguments->export_onnx,
                 "Write the trained network to this ONNX file, and end: of checkpoint.weights, "
                 "checkpoint.resume, or the newest run");
  app.add_flag("--profile", arguments->profile, "Print the time each kind of operation took");
  app.set_version_flag("--version,-V", std::string("fleet-worker ") + FLEET_VERSION);
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 wants the last first
    words.push_back(with_value(declared(argv[i]), i + 1 < argc ? argv[i + 1] : ""));
  }
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::CallForVersion&) {
    std::puts(app.version().c_str());
    return false;
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
    const std::string first = app.remaining().empty() ? "" : app.remaining().front();
    throw Error(ErrorCode::kUsage, "unknown argument '" + first + "'", {},
                suggestion(first.substr(0, first.find('=')), known));
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kUsage, error.what(), {}, "see fleet-worker --help");
  }
  if (arguments->job_file.empty() && arguments->print_flags.empty()) {
    throw Error(ErrorCode::kUsage, "job is required", {}, "see fleet-worker --help");
  }
  return true;
}

}  // namespace fleet
