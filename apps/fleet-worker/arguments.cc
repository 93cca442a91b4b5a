#include "arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/option_group.h"
#include "base/text.h"
#include "strategy/save.h"

namespace fleet {

namespace {

// Options with an optional value, which defaults to "text".
struct Printed {
  const char* option;
  std::vector<std::string> values;
};
const std::vector<Printed>& printed() {
  static const std::vector<Printed> all = {{"--print_flags", {"text", "markdown"}},
                                           {"--print_program", {"text", "dot"}}};
  return all;
}

// Adds the value "text" to one of these options if no value follows; the next word may be the job
// file.
std::string with_value(const std::string& word, const std::string& next) {
  for (const Printed& option : printed()) {
    if (word != option.option) continue;
    const auto& values = option.values;
    if (std::find(values.begin(), values.end(), next) == values.end()) return word + "=text";
  }
  return word;
}

// In option names a dash equals an underscore.
std::string declared(const std::string& word) {
  if (!word.starts_with("--")) return word;
  const size_t end = std::min(word.find('='), word.size());
  return canonical_flag(word.substr(0, end)) + word.substr(end);
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
  for (const auto& [option, is_given] : {std::pair("--print_flags", !arguments.print_flags.empty()),
                                         {"--print_keys", arguments.print_keys},
                                         {"--explain", arguments.explain},
                                         {"--pack", !arguments.pack.empty()},
                                         {"--save_strategy", !arguments.save_strategy.empty()},
                                         {"--export_onnx", !arguments.export_onnx.empty()},
                                         {"--profile", arguments.profile},
                                         {"--predict", predicts && !prints}}) {
    if (is_given) given.push_back(option);
  }
  if (given.size() < 2) return;
  throw Error(ErrorCode::kUsage, given[0] + " and " + given[1] + " cannot be combined", {},
              "give one of them");
}

}  // namespace

bool parse_arguments(int argc, char** argv, WorkerArguments* arguments) {
  CLI::App app{
      "Runs one rank of a job file. fleetrun starts it; started directly, it runs a job of one "
      "rank."};
  app.name("fleet-worker");
  app.add_option("job", arguments->job_file, "Job file (JSON)");
  app.add_option("--set", arguments->overrides,
                 "Override a key of the job file, as key=value; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--device", arguments->device,
                 "Device: auto, cpu or cuda. Short for --set train.device=, which it overrides");
  app.add_option(
      "--predict", arguments->predict,
      "Predict the classes of these images, folders of images, or lists of them (.txt), instead of "
      "training; put this option after the job file. Short for --set predict.input=");
  app.add_option("--log_level", arguments->log_level,
                 "Minimum severity to log: DEBUG, INFO, WARNING or ERROR");
  app.add_flag("--check", arguments->check,
               "Check the job file and these arguments without training, and exit: with 0, or with "
               "2 if something is wrong");
  CLI::Option* explain =
      app.add_flag("--explain", arguments->explain,
                   "Print the predicted cost of the job (memory, communication, time of a step) "
                   "and how one more option would change it, and exit; measures this machine once");
  app.add_option("--nodes", arguments->nodes,
                 "Number of nodes that --explain divides the ranks among; default: 1")
      ->needs(explain)
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--for", arguments->card,
                 "Explain for a GPU that this machine lacks, by its name (h200, h100, a100, ...): "
                 "an estimate from nominal rates")
      ->needs(explain);
  app.add_option("--measure", arguments->measure,
                 "Rates of this machine for --explain: measured if the cache lacks them (auto), "
                 "read only from the cache (never), or measured again (again)")
      ->needs(explain)
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "never", "again"}));
  app.add_option(
         "--link_rate", arguments->link_rate,
         "Rate of the links between nodes for --explain, in bits per second, such as 10G or 200M")
      ->needs(explain);
  app.add_option("--format", arguments->format,
                 "Format of --check and --explain: text, or json for one object on the last line "
                 "of output")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--print_config", arguments->print_config,
               "Print each setting and its origin, and exit");
  app.add_flag("--print_keys", arguments->print_keys,
               "Print the keys that this job file may have, and exit");
  app.add_option("--print_flags", arguments->print_flags,
                 "Print every option of a strategy, as text (the default) or markdown, and "
                 "exit; needs no job file")
      ->check(CLI::IsMember(printed()[0].values));
  app.add_option("--print_program", arguments->print_program,
                 "Print the Program as text (the default) or dot, and exit")
      ->check(CLI::IsMember(printed()[1].values));
  app.add_flag("--print_plan", arguments->print_plan,
               "Print the Plan (order, layouts, memory), and exit");
  app.add_option("--rank", arguments->rank,
                 "Print or explain this rank; default: the rank in the environment, or 0")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option(
         "--ranks", arguments->ranks,
         "Print or explain a job of this many ranks; default: the number in the environment, or 1")
      ->check(CLI::Range(1, 1'000'000));
  CLI::Option* save = app.add_option(
      "--save_strategy", arguments->save_strategy,
      "Write the job's strategy to this file, for Paddle's load_from_prototxt, and exit");
  app.add_option(
         "--paddle", arguments->paddle,
         "Release of Paddle that will read the strategy; names that it does not know are omitted")
      ->needs(save)
      ->capture_default_str()
      ->check(CLI::IsMember(paddle_releases()));
  app.add_option("--export_onnx", arguments->export_onnx,
                 "Write the trained network to this ONNX file, and exit. Reads checkpoint.weights, "
                 "checkpoint.resume, or the newest run");
  CLI::Option* pack =
      app.add_option("--pack", arguments->pack,
                     "Write the job's images into this folder as a few large files, for "
                     "data.source packed, and exit; continues a folder that an earlier run began");
  app.add_option(
         "--size", arguments->pack_size,
         "Shorter side of packed images; larger images are resized to it; default: no resizing")
      ->needs(pack)
      ->check(CLI::Range(1, 65500));
  app.add_flag("--raw", arguments->pack_raw, "Pack pixels, which need no decoding")->needs(pack);
  app.add_flag("--jpeg", arguments->pack_jpeg,
               "Pack image files; resized ones become JPEG files (the default)")
      ->needs(pack);
  app.add_option("--quality", arguments->pack_quality, "Quality of these JPEG files; default: 90")
      ->needs(pack)
      ->check(CLI::Range(1, 100));
  app.add_option("--pack_threads", arguments->pack_threads,
                 "Number of packing threads; default: one per core")
      ->needs(pack)
      ->check(CLI::Range(1, 1024));
  app.add_flag("--profile", arguments->profile, "Print the time per kind of operation");
  app.set_version_flag("--version,-V", std::string("fleet-worker ") + FLEET_VERSION);
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 expects the words in reverse order
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
  if (arguments->format != "text" && !arguments->check && !arguments->explain) {
    throw Error(ErrorCode::kUsage, "--format requires --check or --explain", {},
                "see fleet-worker --help");
  }
  // CLI11 takes the next word as the value, whatever it is.
  for (const std::string& text : arguments->overrides) {
    if (text.starts_with("--")) {
      throw Error(ErrorCode::kUsage, "--set needs key=value", {}, "it is followed by " + text);
    }
  }
  for (const std::string& path : arguments->predict) {
    if (path.starts_with("--")) {
      throw Error(ErrorCode::kUsage, "--predict needs images, folders or lists", {},
                  "it is followed by " + path);
    }
  }
  refuse_second_action(*arguments);
  if (!arguments->card.empty() && !arguments->device.empty()) {
    throw Error(ErrorCode::kUsage, "--for and --device cannot be combined", {},
                "leave out --device: --for explains for a GPU that this machine lacks");
  }
  const bool prints = arguments->check || arguments->explain || arguments->print_config ||
                      arguments->print_plan || !arguments->print_program.empty() ||
                      !arguments->save_strategy.empty();
  if ((arguments->rank >= 0 || arguments->ranks > 0) && !prints) {
    throw Error(ErrorCode::kUsage,
                "--rank and --ranks require --check, --explain, --save_strategy, --print_config, "
                "--print_program or --print_plan",
                {}, "start a job of several ranks with fleetrun --nproc_per_node=N");
  }
  if (arguments->job_file.empty() && arguments->print_flags.empty()) {
    throw Error(ErrorCode::kUsage, "job is required", {}, "see fleet-worker --help");
  }
  return true;
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
