// Every option of other launchers, in every form that they take: the same job, no effect with a
// line that names it, or refused. The tables are in launchers/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include "base/error.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/options.h"
#include "tests/control/launch/planning/compat/launcher_table.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Words joined(std::initializer_list<Words> parts) {
  Words all;
  for (const Words& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// A line of the launcher, up to the program. Throws what a start would throw.
LaunchRequest request_of(const LauncherTable& table, const Words& with, const Words& option) {
  LaunchRequest request = parse_arguments(joined({table.company, with, option, {"prog"}}));
  if (request.action == LaunchRequest::Action::kRun) {
    check_options(request, ArgumentsFor::kStart);
  }
  return request;
}

bool is_known_flag(const std::string& flag) {
  return find_flag(launch_options(), flag) || find_flag(inspect_options().options(), flag) ||
         find_flag(compat_reader_options(), flag);
}

// The shortest beginning of the flag that its launcher takes for this option; "" if there is none,
// or if it is a flag itself.
std::string abbreviated(const LauncherTable& table, const LauncherRow& row,
                        const std::string& flag) {
  for (size_t length = 4; length < flag.size(); ++length) {
    const std::string start = flag.substr(0, length), canonical = canonical_flag(start);
    const bool unique = std::ranges::all_of(table.rows, [&](const LauncherRow& other) {
      return std::ranges::none_of(other.flags, [&](const std::string& one) {
        const bool same_option =
            std::ranges::find(other.flags, row.flags.back()) != other.flags.end();
        return !same_option && canonical_flag(one).starts_with(canonical);
      });
    });
    if (unique && !is_known_flag(start)) return start;
  }
  return {};
}

// The option in every form, as words.
std::vector<Words> forms_of(const LauncherTable& table, const LauncherRow& row) {
  std::vector<Words> forms;
  Words flags = row.flags;
  for (const std::string& flag : row.flags) {
    const std::string start =
        table.abbreviates && flag.starts_with("--") && flag.find('=') == std::string::npos
            ? abbreviated(table, row, flag)
            : "";
    if (!start.empty()) flags.push_back(start);
  }
  for (const std::string& flag : flags) {
    forms.push_back(joined({{flag}, row.values}));
    if (row.values.size() == 1 && flag.starts_with("--")) {
      forms.push_back({flag + "=" + row.values[0]});
    }
  }
  return forms;
}

std::optional<Effects> effects_without(const LauncherTable& table, const LauncherRow& row) {
  try {
    return effects_of(request_of(table, row.with, {}));
  } catch (const Error&) {
    return std::nullopt;  // the option is needed: all effects are its changes
  }
}

Effects expected_effects(const LauncherTable& table, const LauncherRow& row) {
  const bool acts = row.changes.contains("action");
  Effects expected = acts ? Effects() : effects_without(table, row).value_or(Effects());
  for (const auto& [key, value] : row.changes) {
    if (value) {
      expected[key] = *value;
    } else {
      expected.erase(key);
    }
  }
  const auto via = expected.find("via");
  if (via != expected.end() && via->second == "slurm") {  // its steps name their job and logs
    expected.erase("job_id");
    expected.erase("log_dir");
  }
  return expected;
}

// A corrected line must not lose the option.
void expect_refusal(const Error& error, const Words& form, const LauncherRow& row) {
  EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
  const std::string message = error.what();
  const size_t corrected = message.rfind("\ncorrected: ");
  if (corrected == std::string::npos) return;
  const std::string kept = row.values.empty() ? form[0] : row.values[0];
  EXPECT_THAT(message.substr(corrected), HasSubstr(kept));
}

void check_form(const LauncherTable& table, const LauncherRow& row, const Words& form) {
  SCOPED_TRACE(row.where + ": " + join(form, " "));
  try {
    const LaunchRequest request = request_of(table, row.with, form);
    ASSERT_NE(row.verdict, "refused");
    EXPECT_EQ(effects_of(request), expected_effects(table, row));
    if (row.verdict != "no effect") return;
    const bool named = std::ranges::any_of(row.flags, [&](const std::string& flag) {
      return request.ignored.find(flag) != std::string::npos ||
             request.ignored.find(canonical_flag(flag)) != std::string::npos;
    });
    EXPECT_TRUE(named) << request.ignored;
  } catch (const Error& error) {
    ASSERT_EQ(row.verdict, "refused") << error.what();
    expect_refusal(error, form, row);
  }
}

constexpr const char* kSlurm[] = {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES",
                                  "SLURM_STEP_NUM_NODES"};

// In a folder with the files that the tables name, without the user's own files.
struct Launchers : ::testing::TestWithParam<const char*> {
  void SetUp() override {
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    for (const char* name : {"HF_HOME", "XDG_CACHE_HOME"}) ::setenv(name, folder.c_str(), 1);
    for (const char* name : kSlurm) ::unsetenv(name);
    for (const char* name : {"OMP_NUM_THREADS", "PYTHONPATH"}) ::unsetenv(name);
    std::ofstream("hosts") << "a slots=2\nb slots=3\n";
    std::ofstream("horovod.yaml") << "params:\n  fusion-threshold-mb: 32\n";
    std::ofstream("accelerate.yaml") << "compute_environment: LOCAL_MACHINE\n"
                                        "distributed_type: MULTI_GPU\nmixed_precision: bf16\n"
                                        "num_processes: 2\nnum_machines: 1\n";
  }
  void TearDown() override {
    std::filesystem::current_path(before);
    std::filesystem::remove_all(folder);
    for (const char* name : kSlurm) ::unsetenv(name);
    for (const char* name : {"HF_HOME", "XDG_CACHE_HOME"}) ::unsetenv(name);
  }
  const std::string folder = ::testing::TempDir() + "launchers";
  const std::filesystem::path before = std::filesystem::current_path();
};

TEST_P(Launchers, EveryOption_InEveryForm_IsAsItsTableSays) {
  const LauncherTable table = read_table(GetParam());
  for (const std::string& variable : table.environment) {
    const size_t equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  std::map<std::string, std::set<std::string>> options;  // by verdict
  for (const LauncherRow& row : table.rows) {
    options[row.verdict].insert(row.flags.back());
    for (const Words& form : forms_of(table, row)) check_form(table, row, form);
  }
  for (const auto& [verdict, flags] : options) {
    EXPECT_TRUE(verdict == "same" || verdict == "no effect" || verdict == "refused") << verdict;
    std::cout << table.launcher << " " << table.version << ": " << flags.size() << " " << verdict
              << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Launchers,
                         ::testing::Values("torchrun.txt", "paddle.txt", "horovodrun.txt",
                                           "deepspeed.txt", "accelerate.txt", "open_mpi.txt",
                                           "hydra.txt", "srun.txt"));

TEST_F(Launchers, Abbreviation_OfSeveralLaunchersOptions_IsRefused) {
  // torchrun's --start-method, horovodrun's --start-timeout, Paddle's --start_port.
  EXPECT_THROW(parse_arguments({"--start", "7", "prog"}), Error);
  EXPECT_EQ(parse_arguments({"--enable_gpu_log=False", "--start=7", "prog"})
                .settings.integer("start_port"),
            7);
  EXPECT_THROW(parse_arguments({"--num_process", "2", "prog"}), Error);  // accelerate takes none
}

TEST_F(Launchers, Abbreviation_ThatAllLaunchersReadAlike_NeedsNoCompany) {
  EXPECT_EQ(parse_arguments({"--nproc", "2", "prog"}).settings.integer("nproc_per_node"), 2);
  EXPECT_EQ(parse_arguments({"--master_p=7", "prog"}).settings.integer("master_port"), 7);
}

}  // namespace
}  // namespace fleet
