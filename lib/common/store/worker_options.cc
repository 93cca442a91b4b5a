#include "store/worker_options.h"

#include "store/env.h"

namespace fleet {
namespace {

constexpr double kMaxRanks = 1'000'000;

OptionGroup job_options() {
  OptionGroup group;
  group
      .texts({.key = "set", .value = "KEY=VALUE", .optional = true, .repeats = true},
             "override a key of the job file; may be repeated")
      .text({.key = "device", .value = "DEVICE", .optional = true}, "",
            "auto, cpu or cuda; short for --set train.device=, which it overrides")
      .texts({.key = "predict", .value = "PATH...", .optional = true, .repeats = true},
             "predict the classes of these images, folders of images or lists of them (.txt) "
             "instead of training; write it after the job file; short for --set predict.input=")
      .text({.key = "log_level", .environment = {kEnvLogLevel}, .value = "LEVEL"}, "INFO",
            "minimum severity to log: DEBUG, INFO, WARNING or ERROR")
      .flag({.key = "profile"}, "print the time per kind of operation");
  return group;
}

OptionGroup explain_options() {
  OptionGroup group;
  group
      .flag({.key = "check"},
            "check the job file and these arguments as a start would, without reading data, and "
            "exit: with 0, or with 2 if something is wrong")
      .flag({.key = "explain"},
            "print the predicted cost of the job (memory, communication, time of a step) and how "
            "one more option would change it, and exit; measures this machine once")
      .integer({.key = "nodes", .value = "N", .optional = true}, 1, 1, kMaxRanks,
               "number of nodes that --explain divides the ranks among; without it: 1")
      .text({.key = "for", .value = "GPU", .optional = true}, "",
            "explain for a GPU that this machine lacks, by its name (h200, h100, a100, ...): an "
            "estimate from nominal rates")
      .choice({.key = "measure", .value = "WHEN"}, "auto", {"auto", "never", "again"},
              "rates of this machine for --explain: measured if the cache lacks them (auto), read "
              "only from the cache (never), or measured again (again)")
      .text({.key = "link_rate", .value = "RATE", .optional = true}, "",
            "rate of the links between nodes for --explain, in bits per second, such as 10G or "
            "200M")
      .choice({.key = "format", .value = "FORMAT"}, "text", {"text", "json"},
              "format of --check and --explain: text, or json for one object on the last line of "
              "output");
  return group;
}

OptionGroup print_options() {
  OptionGroup group;
  group.flag({.key = "print_config"}, "print each setting and its origin, and exit")
      .flag({.key = "print_keys"}, "print the keys that this job file may have, and exit")
      .choice({.key = "print_flags", .value = "FORMAT", .optional = true, .implied = "text"},
              "text", {"text", "markdown"},
              "print every option of a strategy, as text or markdown, and exit; needs no job file")
      .flag({.key = "print_operations"},
            "print the operations that a network of your own may apply, as markdown, and exit; "
            "needs no job file")
      .choice({.key = "print_program", .value = "FORMAT", .optional = true, .implied = "text"},
              "text", {"text", "dot"}, "print the Program as text or dot, and exit")
      .flag({.key = "print_plan"}, "print the Plan (order, layouts, memory), and exit")
      .integer({.key = "rank", .value = "RANK", .optional = true}, 0, 0, kMaxRanks,
               "print, explain or check this rank; without it: the rank in the environment, or 0")
      .integer({.key = "ranks", .value = "N", .optional = true}, 1, 1, kMaxRanks,
               "print, explain or check a job of this many ranks; without it: the number in the "
               "environment, or 1")
      .integer(
          {.key = "servers", .value = "N", .optional = true}, 0, 0, kMaxRanks,
          "print or check a trainer of a job with this many parameter servers; without it: the "
          "number in the environment, or 0");
  return group;
}

OptionGroup export_options() {
  OptionGroup group;
  group
      .text({.key = "save_strategy", .value = "FILE", .optional = true}, "",
            "write the job's strategy to this file, for Paddle's load_from_prototxt, and exit")
      .text({.key = "paddle", .value = "RELEASE"}, "2.6",
            "release of Paddle that will read the strategy (2.0, 2.1, 2.6, 3.3); names that it "
            "does not know are omitted")
      .text({.key = "export_onnx", .value = "FILE", .optional = true}, "",
            "write the trained network to this ONNX file, and exit; takes the same weights as "
            "--predict")
      .text({.key = "export_hf", .value = "DIR", .optional = true}, "",
            "write the trained language model into this folder as transformers reads it, and exit; "
            "the job file may be the folder of a checkpoint")
      .text({.key = "export_timm", .value = "DIR", .optional = true}, "",
            "write the trained network of images into this folder as timm reads it, and exit")
      .text({.key = "export_torchvision", .value = "FILE", .optional = true}, "",
            "write the weights of the trained network of images as torchvision names them (.pth or "
            ".safetensors), and exit")
      .text({.key = "shard_size", .value = "SIZE", .optional = true}, "",
            "largest file of weights of --export_hf, as 500M or 5G; without it: 50 GB")
      .text({.key = "pack", .value = "DIR", .optional = true}, "",
            "write the job's images into this folder as a few large files, for data.source packed, "
            "and exit; continues a folder that an earlier run began");
  return group;
}

}  // namespace

OptionGroup pack_options() {
  OptionGroup group;
  group
      .integer({.key = "size", .value = "N"}, 0, 0, 65500,
               "shorter side of packed images; larger images are resized to it; 0: no resizing")
      .flag({.key = "raw"}, "pack pixels, which need no decoding")
      .flag({.key = "jpeg"}, "pack image files; resized ones become JPEG files (the default)")
      .integer({.key = "quality", .value = "N"}, 0, 0, 100, "quality of these JPEG files; 0: 90")
      .integer({.key = "pack_threads", .aliases = {"threads"}, .value = "N"}, 0, 0, 1024,
               "number of packing threads; 0: one per core");
  return group;
}

OptionGroup worker_options() {
  OptionGroup group;
  group.include(job_options())
      .include(explain_options())
      .include(print_options())
      .include(export_options())
      .include(pack_options())
      .flag({.key = "version", .aliases = {"V"}}, "print the version, and exit");
  return group;
}

}  // namespace fleet
