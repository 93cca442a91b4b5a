#include "store/text_commands.h"

namespace fleet {
namespace {

constexpr double kMostThreads = 1024;
constexpr size_t kMostFiles = SIZE_MAX;

OptionGroup corpus_options() {
  OptionGroup group;
  group.text({.key = "text_key", .value = "KEY"}, "text", "key of the text in each line of JSON")
      .integer({.key = "threads", .value = "N"}, 0, 0, kMostThreads,
               "number of threads; 0: one per core");
  return group;
}

}  // namespace

CommandSyntax tokenize_syntax() {
  CommandSyntax syntax = {
      .program = "fleetrun tokenize",
      .words = "FILE...",
      .about =
          "encode texts into a file of token ids, for training a language model\n"
          "FILE is a text (one document), JSON lines (.jsonl or .ndjson, one document a\n"
          "line), a folder of such files, or a quoted pattern; each may end in .gz. If the\n"
          "command was interrupted, run it again to continue.",
      .least = 1,
      .most = kMostFiles,
      .missing_word =
          "give texts: fleetrun tokenize data/*.jsonl --tokenizer tokenizer.json -o train.bin"};
  syntax.options
      .text({.key = "tokenizer", .value = "FILE", .optional = true}, "",
            "tokenizer.json of Hugging Face, or a rank file of tiktoken")
      .text({.key = "output", .aliases = {"o"}, .value = "FILE", .optional = true}, "",
            "the file of token ids")
      .choice({.key = "format", .value = "FORMAT"}, "nanogpt", {"nanogpt", "llm.c"},
              "ids alone (nanogpt), or behind a header of 256 numbers (llm.c)")
      .choice({.key = "type", .value = "TYPE"}, "auto", {"auto", "uint16", "uint32"},
              "type of the ids; auto: uint16 if the vocabulary fits")
      .choice({.key = "eos", .value = "WHERE"}, "append", {"append", "prepend", "none"},
              "the end-of-text token: behind each document, before it (as in llm.c), or nowhere")
      .text({.key = "eos_token", .value = "TOKEN", .optional = true}, "",
            "the end-of-text token; without it: the tokenizer's <|endoftext|>, </s> or the like")
      .flag({.key = "parse_special"},
            "special tokens that a text contains become tokens; otherwise they are text")
      .number({.key = "validation", .value = "SHARE"}, 0, 0, 0.999,
              "share of the texts for a second file (train.bin: val.bin; x.bin: x_val.bin): "
              "documents of JSON lines by chance, and the end of each text file")
      .integer({.key = "seed", .value = "N"}, 0, 0, 9e15, "seed of that choice")
      .choice({.key = "on_damaged", .value = "ACTION"}, "fail", {"fail", "skip"},
              "action for a line that is not UTF-8, not JSON, or without text: end the command, or "
              "leave it out and warn")
      .include(corpus_options());
  return syntax;
}

CommandSyntax train_tokenizer_syntax() {
  CommandSyntax syntax = {
      .program = "fleetrun train_tokenizer",
      .words = "FILE...",
      .about =
          "train a byte-level BPE tokenizer on texts\n"
          "FILE is as for fleetrun tokenize. The tokenizer.json equals that of Hugging Face's\n"
          "trainer byte for byte.",
      .least = 1,
      .most = kMostFiles,
      .missing_word = "give texts: fleetrun train_tokenizer data/*.txt -o tokenizer.json"};
  syntax.options
      .text({.key = "output", .aliases = {"o"}, .value = "FILE", .optional = true}, "",
            "the tokenizer.json")
      .integer({.key = "vocabulary_size", .aliases = {"vocab_size"}, .value = "N"}, 32768, 257, 4e9,
               "number of tokens: special ones, 256 bytes and merges")
      .integer({.key = "min_frequency", .value = "N"}, 2, 0, 9e15,
               "number of times that a pair must occur to become a token")
      .texts({.key = "special_token",
              .value = "TOKEN",
              .optional = true,
              .repeats = true,
              .never_empty = true},
             "a special token; may be repeated; without it: <|endoftext|>")
      .text({.key = "cls_token", .value = "TOKEN", .optional = true}, "",
            "the special token that each text begins with, as BERT's; with --sep_token")
      .text({.key = "sep_token", .value = "TOKEN", .optional = true}, "",
            "the special token behind each text; with --cls_token")
      .choice({.key = "split", .value = "STYLE"}, "gpt2", {"gpt2", "llama3", "qwen2"},
              "how texts are split into words: as this model does")
      .include(corpus_options());
  return syntax;
}

}  // namespace fleet
