// Every option of a start, with every way to start a job from elsewhere: it changes what the nodes
// are told, or it is refused. An option that is added without a thought for that fails here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "daemon/node_requests.h"
#include "daemon/via.h"
#include "launch/planning/arguments.h"
#include "launch/planning/options.h"
#include "launch/starting/via_slurm.h"

namespace fleet {
namespace {

// A value other than the default; and what must be there for it to matter.
struct Sample {
  std::string value;
  std::vector<std::string> with = {};
};

// For a flag, a number or a choice.
std::string other_value(const ConfigKey& key) {
  for (const std::string& choice : key.choices) {
    if (key.initial->text() != "\"" + choice + "\"") return choice;
  }
  const auto* initial = std::get_if<ConfigValue::Scalar>(&key.initial->value);
  if (key.type == ConfigType::kBool) return std::get<bool>(*initial) ? "false" : "true";
  if (key.type != ConfigType::kInteger && key.type != ConfigType::kNumber) return {};
  const double number = key.type == ConfigType::kNumber
                            ? std::get<double>(*initial)
                            : static_cast<double>(std::get<int64_t>(*initial));
  const double other = number + 1 <= key.max ? number + 1 : number - 1;
  return std::to_string(static_cast<int64_t>(other));
}

// Texts and lists, and values that only count together with others.
const std::map<std::string, Sample>& given_samples() {
  static const std::string secret = ::testing::TempDir() + "option_effects.secret";
  static const std::map<std::string, Sample> all = {
      {"ips", {"c,d"}},
      {"gpus", {"0"}},
      {"host", {"a"}},
      {"local_addr", {"a"}},
      {"master", {"a:1"}},
      {"nnodes", {"1", {"--max_restart=1"}}},
      {"job_id", {"night"}},
      {"dialect", {"jax"}},
      {"via", {"elsewhere"}},
      {"via_options", {"-v"}},
      {"remote_fleetrun", {"/opt/fleetrun"}},
      {"fleetd_secret_file", {secret}},
      {"chdir", {"/data"}},
      {"export", {"A=1"}},
      {"user", {"bob"}},
      {"on_end", {"cat"}},
      {"elastic_timeout", {"7", {"--max_restart=1"}}},
      {"no_progress_restarts", {"5", {"--max_restart=1"}}},
      {"log_dir", {"logs"}},
      {"ranks", {"0"}},
      {"local_ranks_filter", {"1"}},
      {"tee", {"3"}},
      {"redirects", {"1"}},
      {"log_max_size", {"1M"}},
      {"log_total_size", {"1G"}},
      {"secret_file", {secret}},
      {"metrics", {"127.0.0.1:9400"}},
      {"metrics_token_file", {secret, {"--metrics=127.0.0.1:9400"}}},
      {"run_mode", {"ps"}},
      {"servers", {"a:1,b:1", {"--workers=a,b"}}},
      {"workers", {"a,b", {"--servers=a:1,b:1"}}},
      {"with_gloo", {"2", {"--server_num=1"}}},
      {"gloo_port", {"7003", {"--server_num=1"}}},
      {"master_addr", {"a", {"--master_port=7004"}}},
      {"master_port", {"7004", {"--master_addr=a"}}},
      {"rdzv_endpoint", {"a:7004"}},
      {"rdzv_backend", {"static"}},
      {"rdzv_conf", {"join_timeout=5"}},
      {"role", {"trainer"}},
      {"signals_to_handle", {"SIGTERM"}},
      {"log_line_prefix_template", {"${rank}: "}},
      {"duplicate_stdout_filters", {"loss"}},
      {"duplicate_stderr_filters", {"error"}},
  };
  return all;
}
const std::map<std::string, Sample>& samples() {
  static const std::map<std::string, Sample> all = [] {
    std::map<std::string, Sample> together = given_samples();
    const std::vector<ConfigKey>& keys = launch_schema().keys();
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string value = other_value(keys[i]);
      if (!value.empty()) together.emplace(launch_options()[i].key, Sample{value});
    }
    return together;
  }();
  return all;
}

// Options of the client alone.
const std::set<std::string> kOfTheClient = {"fleetd detach", "fleetd fleetd_secret_file"};

std::string slurm_text(const LaunchRequest& request) {
  const std::map<std::string, std::string> allocation = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_JOB_NUM_NODES", "2"}};
  const auto look = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = allocation.find(name);
    if (found == allocation.end()) return std::nullopt;
    return found->second;
  };
  return join(srun_command(request, look, "/bin/fleetrun"), "\n");
}

std::string nodes_text(const LaunchRequest& request, const std::string& via) {
  const LaunchConfig& config = request.config;
  ClientContext context{"ann", "/run", {}, "3fa2c1", "secret of the test"};
  if (config.security.secret_file.given()) {
    context.secret = client_context(config.security).secret;
  }
  std::string text;
  for (const NodeRequest& node : node_requests(request, context)) {
    const std::string programs = config.via.remote_fleetrun.value_or("") + "fleetrun";
    text += via == "ssh" ? join(ssh_command(node.name, config.via.options, {programs}), "\n")
                         : node.address;
    text += node.job.SerializeAsString();
  }
  return text;
}

// The line that the nodes get; "" if it is refused.
std::string told(const std::string& via, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "--via=" + via);
  arguments.emplace_back("prog");
  try {
    const LaunchRequest request = parse_arguments(arguments);
    check_options(request, ArgumentsFor::kStart);
    return via == "slurm" ? slurm_text(request) : nodes_text(request, via);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
    return {};
  }
}

TEST(OptionEffects, EveryOptionHasASample) {
  for (const Option& option : launch_options()) {
    EXPECT_TRUE(samples().contains(option.key)) << "add a sample of --" << option.key;
  }
}

TEST(OptionEffects, WithEveryVia_AnOptionChangesSomethingOrIsRefused) {
  const std::string secret = samples().at("secret_file").value;
  write_file_atomically(secret, "0123456789abcdef\n");
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  for (const std::string via : {"fleetd", "ssh", "slurm"}) {
    for (const auto& [key, sample] : samples()) {
      if (key == "via" || kOfTheClient.contains(via + " " + key)) continue;
      std::vector<std::string> without = sample.with;
      const bool lists_nodes = key == "servers" || key == "workers";
      if (via != "slurm" && !lists_nodes && key != "ips") without.emplace_back("--ips=a,b");
      std::vector<std::string> with = without;
      with.push_back("--" + key + "=" + sample.value);
      const std::string after = told(via, with);
      if (after.empty()) continue;
      EXPECT_NE(after, told(via, without)) << "--" << key << " with " << via;
    }
  }
}

// Options that must not be refused: without this, the tests above could pass by refusing
// everything.
TEST(OptionEffects, MostOptions_CountEverywhere) {
  for (const std::string via : {"fleetd", "ssh", "slurm"}) {
    for (const char* key : {"gpus", "nproc_per_node", "rdzv_port", "start_port", "rdzv_timeout",
                            "job_id", "dialect", "grace", "max_restart", "log_dir", "tee", "ranks",
                            "preflight", "secret_file", "insecure", "server_num", "log_level"}) {
      std::vector<std::string> line = {std::string("--") + key + "=" + samples().at(key).value};
      if (via != "slurm") line.emplace_back("--ips=a,b");
      EXPECT_NE(told(via, line), "") << key << " with " << via;
    }
  }
}

}  // namespace
}  // namespace fleet
