// Launch lines of public repositories, as public_lines.txt has them: each plans the job that its
// own launcher starts, or is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/arguments.h"
#include "launch/planning/devices.h"
#include "launch/planning/program.h"
#include "launch/planning/rank_commands.h"
#include "launch/planning/topology.h"
#include "launch/planning/via_plan.h"
#include "launch/starting/via_slurm.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using Fields = std::map<std::string, std::string>;

struct PublicLine {
  std::string address, command;
  Fields variables, files;  // by name
  std::string here = "10.0.0.7";
  int gpus = 8;
  Fields job;
  std::string program, refused;
};

// --- the table ---

// "NAME=VALUE" or "NAME VALUE"
std::pair<std::string, std::string> cut_at(const std::string& text, char separator) {
  const size_t at = text.find(separator);
  return {text.substr(0, at), at == std::string::npos ? std::string() : text.substr(at + 1)};
}

// "a | b" are two lines.
std::string lines_of_file(const std::string& text) {
  std::istringstream all(text);
  std::string lines;
  for (std::string line; std::getline(all, line, '|');) {
    if (!lines.empty() && line.starts_with(' ')) line.erase(0, 1);
    if (line.ends_with(' ')) line.pop_back();
    lines += line + "\n";
  }
  return lines;
}

void add_property(const std::string& text, PublicLine* line) {
  const auto [key, value] = cut_at(text, ' ');
  if (key == "set") line->variables.insert(cut_at(value, '='));
  if (key == "file" || key == "stand-in") {
    const auto [name, content] = cut_at(value, ' ');
    line->files[name] = lines_of_file(content);
  }
  if (key == "here") line->here = value;
  if (key == "gpus") line->gpus = std::stoi(value);
  if (key == "runs") {
    for (const std::string& field : split(value, ' ')) line->job.insert(cut_at(field, '='));
  }
  if (key == "program") line->program = value;
  if (key == "refused") line->refused = value;
}

std::vector<PublicLine> read_public_lines() {
  std::vector<PublicLine> all;
  std::ifstream file(source_folder() + "/tests/control/launch/planning/compat/public_lines.txt");
  EXPECT_TRUE(file.is_open());
  bool in_command = false;
  for (std::string text; std::getline(file, text);) {
    in_command = in_command && !text.starts_with("runs ") && !text.starts_with("refused ");
    if (in_command) {
      all.back().command += "\n" + text;
    } else if (text.starts_with("https://")) {
      all.emplace_back().address = text;
    } else if (text.starts_with("$ ")) {
      all.back().command = text.substr(2);
      in_command = true;
    } else if (!text.empty() && !text.starts_with('#')) {
      add_property(text, &all.back());
    }
  }
  return all;
}

// --- the shell and its machine ---

// Sets variables of this process until its end.
class Environment {
 public:
  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }
  void set(const std::string& name, const std::optional<std::string>& value) {
    before_.emplace(name, get_env(name));
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

void replace_all(const std::string& from, const std::string& to, std::string* text) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size()) {
    text->replace(at, from.size(), to);
  }
}

// The words of the command, without what the shell does with its output.
std::vector<std::string> words_of(std::string command, const Fields& variables) {
  replace_all("\\\n", "", &command);
  for (const auto& [name, value] : variables) {
    const bool special = name.size() == 1 && !std::isalpha(static_cast<unsigned char>(name[0]));
    if (!special) continue;  // $1, $@, $*
    replace_all("\"$" + name + "\"", value, &command);
    replace_all("$" + name, value, &command);
  }
  command = fill_template(command, variables);
  EXPECT_EQ(command.find('$'), std::string::npos) << command;
  std::vector<std::string> words = shell_words(command, "test");
  for (const std::string& word : words) {
    if (word.find_first_of("><|&") == 0 || word.starts_with("2>")) {
      words.resize(static_cast<size_t>(&word - words.data()));
      break;
    }
  }
  return words;
}

// The number of words at `at` that `fleetrun` replaces.
size_t launcher_words(const std::vector<std::string>& words, size_t at) {
  const std::string name = std::filesystem::path(words.at(at)).filename().string();
  if (name == "accelerate" || name == "colossalai") return 2;  // accelerate launch
  if (name.starts_with("python")) {                            // python -u -m MODULE
    while (words.at(at) != "-m") ++at;
    const std::string& module = words.at(at + 1);
    EXPECT_TRUE(module.starts_with("torch.distributed.") ||
                module.starts_with("paddle.distributed."))
        << module;
    return words[at - 1] == "-u" ? 4 : 3;
  }
  const bool starts_another =
      name == "srun" && words.at(at + 1).starts_with("python3") && words.at(at + 2) == "-m";
  return starts_another ? 1 + launcher_words(words, at + 1) : 1;
}

HostFacts machine_at(const std::string& address) {
  HostFacts host;
  host.name = "node7";
  host.addresses = {"127.0.0.1", address};
  host.resolve = [address](const std::string& name) {
    const bool numeric = name.find_first_not_of("0123456789.") == std::string::npos;
    return numeric ? name : name == "localhost" ? std::string("127.0.0.1") : address;
  };
  host.address_towards = [address](const std::string&) { return address; };
  return host;
}

// --- the job ---

int total_of(const std::vector<NodeProcesses>& nodes) {
  return std::accumulate(nodes.begin(), nodes.end(), 0, [](int sum, const NodeProcesses& node) {
    EXPECT_TRUE(node.known);
    return sum + static_cast<int>(node.ranks.size());
  });
}

void add_nodes_of_via(const LaunchRequest& request, Fields* job) {
  const LaunchConfig& config = request.config;
  std::vector<NodeProcesses> processes;
  if (config.via.name == "slurm") {
    std::vector<std::string> names;
    for (const NodeStart& node : plan_via_slurm(request, get_env, "fleetrun").nodes) {
      names.push_back(node.name);
      processes.push_back(node.processes);
    }
    (*job)["hosts"] = join(names, ",");
  } else {
    (*job)["hosts"] = list_text(config.nodes.listed.value);
    processes = expected_processes(config, config.nodes.listed.value);
    if (!config.via.options.empty()) (*job)["options"] = join(config.via.options, ",");
  }
  (*job)["via"] = config.via.name;
  (*job)["nodes"] = std::to_string(processes.size());
  (*job)["ranks"] = std::to_string(total_of(processes));
}

void add_nodes_of_topology(const LaunchConfig& config, const PublicLine& line, Fields* job) {
  const Topology topology = resolve_topology(config, machine_at(line.here));
  const LocalRanks local =
      local_ranks(config, {line.gpus, get_env("CUDA_VISIBLE_DEVICES")}, topology.listed_devices);
  (*job)["nodes"] = NodeCount{topology.min_nodes, topology.nnodes}.text();
  (*job)["ranks"] = std::to_string(topology.nnodes * local.local_world_size);
  if (topology.master_port > 0) (*job)["port"] = std::to_string(topology.master_port);
  if (topology.is_single_node()) return;
  if (topology.node_rank >= 0) (*job)["node"] = std::to_string(topology.node_rank);
  (*job)["meet"] = endpoint(topology.rendezvous_address, topology.rendezvous_port);
  if (!topology.nodes.empty()) (*job)["hosts"] = list_text(config.nodes.listed.value);
}

Fields job_of(const LaunchRequest& request, const PublicLine& line) {
  const LaunchConfig& config = request.config;
  Fields job;
  if (config.via.name.empty()) {
    add_nodes_of_topology(config, line, &job);
  } else {
    add_nodes_of_via(request, &job);
  }
  if (config.gpus.given()) job["gpus"] = join(config.gpus.value, ",");
  for (const std::string& variable : config.exported) job.insert(cut_at(variable, '='));
  return job;
}

// The paths of programs depend on the machine.
std::string program_of(const LaunchRequest& request, const std::string& home) {
  if (!request.config.via.name.empty()) return join(request.program, " ");
  std::vector<std::string> words =
      rank_command(request.program, "fleet-worker", request.config.program_kind);
  if (words[0].starts_with(home)) {
    words[0].replace(0, home.size(), "~");
  } else if (words[0].starts_with('/')) {
    words[0] = std::filesystem::path(words[0]).filename().string();
  }
  return join(words, " ");
}

// Where the lines run: a folder with stand-ins for all that they name.
struct PublicLines : ::testing::Test {
  void SetUp() override {
    for (const char* name : {"python", "python3", "pytest", "lm_eval", "lmp", "dp"}) {
      write(root + "/bin/" + name, "");
    }
    std::filesystem::create_directories(root + "/place/a/b");
    environment.set("HOME", home);
    environment.set("PATH", root + "/bin:/usr/bin:/bin");
    for (const char* name :
         {"CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_STEP_ID",
          "SLURM_STEP_NUM_NODES", "PYTHON_EXEC", "HF_HOME", "XDG_CACHE_HOME"}) {
      environment.set(name, std::nullopt);
    }
  }
  void TearDown() override {
    std::filesystem::current_path(before);
    std::filesystem::remove_all(root);
  }

  static void write(const std::filesystem::path& path, const std::string& text) {
    std::error_code taken;
    std::filesystem::create_directories(path.parent_path(), taken);
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, taken);
  }

  // The words behind `fleetrun`. Sets the variables before the launcher.
  std::vector<std::string> arguments_of(const PublicLine& line, Environment* own) const {
    Fields variables = line.variables;
    variables["HOME"] = home;
    const std::vector<std::string> words = words_of(line.command, variables);
    size_t at = 0;
    for (; words.at(at).find('=') < words[at].find('/'); ++at) {
      const auto [name, value] = cut_at(words[at], '=');
      own->set(name, value);
    }
    at += launcher_words(words, at);
    return {words.begin() + static_cast<std::ptrdiff_t>(at), words.end()};
  }

  // Plans the line on this machine, in a folder with its files.
  void check(const PublicLine& line) const {
    Environment own;
    for (const auto& [name, value] : line.variables) own.set(name, value);
    std::filesystem::current_path(root + "/place/a/b");
    for (const auto& [name, text] : line.files) write(name, text);
    const std::vector<std::string> arguments = arguments_of(line, &own);
    for (const std::string& word : arguments) {
      const bool names_program =
          word.ends_with(".py") || word.starts_with("./") || word.starts_with(home);
      if (names_program && !word.starts_with('-') && !line.files.contains(word)) write(word, "");
    }
    try {
      const LaunchRequest request = parse_arguments(arguments);
      check_options(request, ArgumentsFor::kStart);
      compare(line, request);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_FALSE(line.refused.empty()) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(line.refused));
    }
  }

  void compare(const PublicLine& line, const LaunchRequest& request) const {
    EXPECT_EQ(line.refused, "");
    Fields job = job_of(request, line);
    for (const auto& [key, value] : line.job) EXPECT_EQ(job[key], value) << key;
    for (const char* key : {"via", "hosts", "node", "meet", "gpus"}) {
      EXPECT_EQ(job.contains(key), line.job.contains(key)) << key << "=" << job[key];
    }
    EXPECT_EQ(program_of(request, home), line.program);
  }

  const std::string root = ::testing::TempDir() + "public_lines";
  const std::filesystem::path before = std::filesystem::current_path();
  const std::string home = root + "/home";
  Environment environment;
};

TEST_F(PublicLines, EachIsTheJobOfItsLauncher) {
  for (const PublicLine& line : read_public_lines()) {
    SCOPED_TRACE(line.address + ":\n" + line.command);
    check(line);
    std::filesystem::remove_all(root + "/place");
    std::filesystem::create_directories(root + "/place/a/b");
  }
}

TEST(PublicLinesTable, HasAHundredLines_OfWhichNinetyRun) {
  std::map<std::string, int> printed;
  int run = 0;
  for (const PublicLine& line : read_public_lines()) {
    EXPECT_EQ(++printed[line.address + "\n" + line.command], 1) << line.address;
    EXPECT_NE(line.program.empty(), line.refused.empty()) << line.address;
    run += !line.program.empty();
  }
  EXPECT_GE(printed.size(), 100u);
  EXPECT_GE(run, 90);
}

}  // namespace
}  // namespace fleet
