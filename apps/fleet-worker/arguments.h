// The command line of fleet-worker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fleet {

struct WorkerArguments {
  std::string job_file;
  std::string device;                  // "": from the job file
  std::vector<std::string> overrides;  // "key=value"
  std::string log_level = "INFO";
  std::vector<std::string> predict;  // images, folders, lists
  bool check = false;
  bool explain = false;
  int nodes = 0;                 // of --explain; 0: the environment's
  std::string card;              // of --explain: a GPU to estimate for; "": the job's device
  std::string measure = "auto";  // of --explain: "auto", "never" or "again"
  std::string link_rate;         // of --explain: bits a second between nodes; "": a default
  std::string format = "text";   // of --check and --explain: "text" or "json"
  bool print_config = false;
  bool print_keys = false;
  bool print_plan = false;
  int rank = -1, ranks = 0;   // printed or explained; -1 and 0: the environment's
  int servers = -1;           // of the same job; -1: the environment's
  std::string print_program;  // "", "text" or "dot"
  std::string print_flags;    // "", "text" or "markdown"
  bool print_operations = false;
  std::string save_strategy;       // "": do not write
  std::string paddle = "2.6";      // the release that will read it
  std::string export_onnx;         // "": do not write
  std::string export_hf;           // "": do not write
  std::string export_timm;         // "": do not write
  std::string export_torchvision;  // "": do not write
  int64_t shard_bytes = 0;         // largest shard of export_hf; 0: not given
  std::string pack;                // the folder to write the images to; "": do not
  int pack_size = 0, pack_quality = 0, pack_threads = 0;  // 0: not given
  bool pack_raw = false, pack_jpeg = false;
  bool profile = false;
};

// Returns false if it has printed help or the version and nothing is left to do. Throws kUsage for
// bad arguments.
bool parse_arguments(int argc, char** argv, WorkerArguments* arguments);

// Whether this command line runs operations: it trains, predicts, or measures their times.
bool runs_operations(const WorkerArguments& arguments);

// Whether --check --format json is given, even on a line that parse_arguments() rejects.
bool wants_json_verdict(int argc, char** argv);

}  // namespace fleet
