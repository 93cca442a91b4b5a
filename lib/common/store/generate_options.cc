#include "store/generate_options.h"

namespace fleet {

CommandSyntax generate_syntax() {
  CommandSyntax syntax{
      .program = "fleetrun generate",
      .words = "JOB",
      .about =
          "continue a text with the language model that a job has trained\n"
          "JOB is a job file. The weights come from the job's newest checkpoint, or from the\n"
          "one that --set checkpoint.resume or checkpoint.weights names. The text ends after\n"
          "--tokens tokens, or at a special token such as <|endoftext|>.",
      .least = 1,
      .most = 1,
      .missing_word = "give a job file: fleetrun generate job.json --prompt 'Once upon a time'"};
  syntax.options
      .text({.key = "prompt", .aliases = {"p"}, .value = "TEXT"}, "",
            "the text to continue; it may contain special tokens, such as <|endoftext|>")
      .text({.key = "prompt_file", .value = "FILE"}, "",
            "a file with the text to continue; -: standard input")
      .integer({.key = "tokens", .aliases = {"n", "max_new_tokens"}, .value = "N"}, 200, 1,
               1'000'000, "number of tokens to generate")
      .number({.key = "temperature", .aliases = {"t"}, .value = "T"}, 1, 0, 1000,
              "divides the logits: below 1 likelier tokens are preferred; 0: always the likeliest")
      .integer({.key = "top_k", .aliases = {"k"}, .value = "K"}, 0, 0, 1'000'000'000,
               "choose only among the K likeliest tokens; 0: among all")
      .integer({.key = "seed", .value = "N"}, 0, 0, 1e18, "the same seed gives the same text")
      .text({.key = "tokenizer", .value = "FILE"}, "",
            "tokenizer.json or rank file; without it: data.tokenizer of the job, or the one in the "
            "model's folder")
      .text({.key = "device", .value = "DEVICE", .optional = true}, "", "auto, cpu or cuda")
      .texts({.key = "set", .value = "KEY=VALUE", .optional = true, .repeats = true},
             "override a key of the job file; may be repeated");
  return syntax;
}

}  // namespace fleet
