// fleetrun generate: prints how a language model continues a text.
#include <cstdio>
#include <iostream>
#include <iterator>

#include "api/world.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "job_tree.h"
#include "store/generate_options.h"
#include "train/generate.h"

namespace fleet {
namespace {

std::string prompt_of(const Settings& given) {
  const std::string& file = given.text("prompt_file");
  if (file.empty()) return given.text("prompt");
  if (!given.text("prompt").empty()) {
    throw Error(ErrorCode::kUsage, "--prompt and --prompt_file cannot be combined", {},
                "give one of them");
  }
  if (file != "-") return read_file(file);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

int run_generate(const CommandLine& line) {
  const Settings& given = line.settings;
  const GenerateOptions options{.prompt = prompt_of(given),
                                .tokens = given.integer("tokens"),
                                .sampling = {.temperature = given.number("temperature"),
                                             .top_k = given.integer("top_k"),
                                             .seed = static_cast<uint64_t>(given.integer("seed"))},
                                .tokenizer = given.text("tokenizer")};
  const Job job = make_job(read_job_tree(
      {.file = line.words[0], .overrides = given.texts("set"), .device = given.text("device")}));
  const DeviceChoice choice = choose_job_device(job, false);
  const GenerateResult result = generate(job, *choice.device, options, [](std::string_view text) {
    // A model may produce any character; control sequences are not for a terminal.
    const std::string shown = escape_controls(text);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fflush(stdout);
  });
  std::puts("");
  std::fflush(stdout);
  if (result.tokens > 0) {
    spdlog::info("{} tokens, {:.1f} a second", result.tokens,
                 static_cast<double>(result.tokens) / result.seconds);
  }
  return 0;
}

}  // namespace

FLEET_COMMAND(generate) {
  def.syntax = generate_syntax();
  def.run = run_generate;
}

}  // namespace fleet
