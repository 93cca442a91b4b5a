// torchrun's options, from the command line to what they decide.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "base/error.h"
#include "launch/planning/arguments.h"
#include "launch/planning/devices.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/environment.h"
#include "launch/planning/program.h"
#include "launch/planning/topology.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LaunchRequest request(std::vector<std::string> options) {
  options.insert(options.end(), {"sh", "-c", "true"});
  return parse_arguments(options);
}

Settings settings(const std::vector<std::string>& options) { return request(options).settings; }

LaunchConfig config(const std::vector<std::string>& options) { return request(options).config; }

Error torchrun_refusal(const std::vector<std::string>& options) {
  return thrown_by([&] { check_options(request(options), ArgumentsFor::kStart); });
}

TEST(TorchrunOptions, BothSpellings_AreTaken) {
  const Settings given =
      settings({"--nproc-per-node", "2", "--node-rank=1", "--nnodes=2", "--master-addr=a",
                "--master-port=7", "--rdzv-id", "x", "--shutdown-timeout=3"});
  EXPECT_EQ(given.integer("nproc_per_node"), 2);
  EXPECT_EQ(given.integer("rank"), 1);
  EXPECT_EQ(given.text("master"), "a:7");
  EXPECT_EQ(given.text("job_id"), "x");
  EXPECT_EQ(given.number("grace"), 3);
}

TEST(TorchrunOptions, WithoutMeaningHere_AreNamedTogether) {
  const LaunchRequest ignored =
      request({"--monitor-interval=1", "--start-method=fork", "--event-log-handler=null",
               "--use_env", "--rdzv-backend=etcd", "--rdzv-conf=protocol=https"});
  for (const char* name : {"--monitor-interval", "--start-method", "--event-log-handler",
                           "--use_env", "--rdzv_backend etcd", "--rdzv_conf protocol"}) {
    EXPECT_THAT(ignored.ignored, HasSubstr(name));
  }
  EXPECT_EQ(request({"--standalone", "--rdzv-backend=c10d"}).ignored, "");
}

TEST(TorchrunOptions, LogsSpecs_AreRefusedByName) {
  EXPECT_THAT(torchrun_refusal({"--logs-specs=mine"}), IsUsageError());
}

TEST(TorchrunOptions, ElasticNodes_DoNotRestartByThemselves) {
  EXPECT_EQ(config({"--compat=torchrun", "--nnodes=1:4"}).restarts.max_restarts, 0);
  EXPECT_EQ(config({"--nnodes=1:4"}).restarts.max_restarts, 3);
}

TEST(TorchrunOptions, StopSignals_AreReadByName) {
  EXPECT_THAT(config({}).stop_signals, ElementsAre(SIGTERM, SIGINT, SIGHUP, SIGQUIT));
  EXPECT_THAT(config({"--signals-to-handle=SIGUSR1,SIGTERM"}).stop_signals,
              ElementsAre(SIGUSR1, SIGTERM));
  EXPECT_THAT(torchrun_refusal({"--signals-to-handle=SIGNAL"}),
              IsUsageError("--signals_to_handle"));
  EXPECT_THAT(torchrun_refusal({"--signals-to-handle=SIGKILL"}),
              IsUsageError("--signals_to_handle"));
}

TEST(TorchrunOptions, OwnPrefix_IsOfOneRank) {
  EXPECT_THAT(torchrun_refusal({"--log-line-prefix-template=x", "--collapse=on"}),
              IsUsageError("--collapse"));
}

TEST(TorchrunProgramKind, FollowsTheOptions) {
  EXPECT_EQ(config({}).program_kind, ProgramKind::kByName);
  EXPECT_EQ(config({"-m"}).program_kind, ProgramKind::kModule);
  EXPECT_EQ(config({"--no-python"}).program_kind, ProgramKind::kExecutable);
  EXPECT_EQ(config({"--no-python", "--run-path"}).program_kind, ProgramKind::kRunPath);
  EXPECT_EQ(config({"--compat=torchrun"}).program_kind, ProgramKind::kScript);
}

TEST(TorchrunProgramKind, DecidesTheCommand) {
  const std::string script = ::testing::TempDir() + "torchrun_script";
  std::ofstream(script) << "pass\n";
  EXPECT_THAT(rank_command({"pkg.main", "-x"}, "", ProgramKind::kModule),
              ElementsAre(EndsWith("python3"), "-u", "-m", "pkg.main", "-x"));
  EXPECT_THAT(rank_command({script, "1"}, "", ProgramKind::kScript),
              ElementsAre(EndsWith("python3"), "-u", script, "1"));
  EXPECT_THAT(rank_command({"true", "a.py"}, "", ProgramKind::kExecutable),
              ElementsAre(EndsWith("/true"), "a.py"));
  EXPECT_THAT(rank_command({script}, "", ProgramKind::kRunPath),
              ElementsAre(EndsWith("python3"), "-u", "-c", HasSubstr("run_path"), script));
  EXPECT_THAT(rank_command({"pkg.main", "--", "-x", "--"}, "", ProgramKind::kModule),
              ElementsAre(EndsWith("python3"), "-u", "-m", "pkg.main", "-x", "--"));
  EXPECT_THAT(rank_command({"true", "--"}, ""), ElementsAre(EndsWith("/true"), "--"));
  EXPECT_THROW(rank_command({"/no/script"}, "", ProgramKind::kScript), Error);
}

TEST(TorchrunDevices, ARankTakesTheGpuOfItsNumber) {
  const auto devices = [](const std::string& ranks, bool torchrun) {
    std::vector<std::string> options = {"--nproc_per_node=" + ranks};
    if (torchrun) options.emplace_back("--compat=torchrun");
    return local_ranks(config(options), {8, std::nullopt}).devices;
  };
  EXPECT_THAT(devices("3", true), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(devices("9", true)[0], IsEmpty());
  EXPECT_EQ(devices("3", false), devices("3", true));
  EXPECT_THROW(devices("9", false), Error);
}

TEST(TorchrunDevices, VisibleOnes_AreThoseOfTheRank) {
  EXPECT_EQ(visible_devices_of({8, std::nullopt}, {3}), "3");
  EXPECT_EQ(visible_devices_of({8, "4,5,6"}, {2}), "6");
  EXPECT_EQ(visible_devices_of({0, "GPU-a,GPU-b"}, {1}), "GPU-b");
  EXPECT_EQ(visible_devices_of({8, ""}, {0}), "");  // hidden ones stay hidden
  EXPECT_EQ(number_of_visible_gpu({8, "4,5,6"}, 2), 6);
  EXPECT_THROW(number_of_visible_gpu({8, "GPU-a"}, 0), Error);
}

TEST(TorchrunConsole, EveryRankShows_OnlyTeedLinesAreLabelled) {
  const ShownRanks plain = config({"--compat=torchrun"}).logs.shown;
  EXPECT_EQ(plain.streams(5, 5), 3);
  EXPECT_EQ(plain.labels.of(5), 0);
  const ShownRanks teed = config({"--compat=torchrun", "-t", "1:1"}).logs.shown;
  EXPECT_EQ(teed.streams(1, 1), 3);
  EXPECT_EQ(teed.labels.of(1), 1);
  const ShownRanks few =
      config({"--compat=torchrun", "--local-ranks-filter=1", "-r", "1:2"}).logs.shown;
  EXPECT_EQ(few.streams(0, 0), 0);
  EXPECT_EQ(few.streams(1, 1), 1);
}

TEST(TorchrunTopology, NodesOfALoopbackMaster_HaveAddressesOfTheirOwn) {
  HostFacts host;
  host.addresses = {"127.0.0.1"};
  host.process = 5000;
  host.resolve = [](const std::string& name) { return name == "localhost" ? "127.0.0.1" : name; };
  host.address_towards = [](const std::string&) { return "127.0.0.1"; };
  const auto address = [&](const std::string& rank) {
    return resolve_topology(
               config({"--nnodes=300", "--rdzv_endpoint=localhost:29400", "--node_rank=" + rank}),
               host)
        .address;
  };
  EXPECT_EQ(address("0"), "localhost");
  EXPECT_EQ(address("1"), "127.0.0.2");
  EXPECT_EQ(address("255"), "127.0.1.0");
  EXPECT_EQ(address("-1"), "127.1.19.136");
}

TEST(TorchrunTopology, SingleNodesMasterPort_IsTheRanks) {
  HostFacts host;
  host.addresses = {"127.0.0.1"};
  host.resolve = [](const std::string& name) { return name; };
  const Topology single = resolve_topology(config({"--master_port=29501"}), host);
  EXPECT_EQ(single.master_port, 29501);
  EXPECT_EQ(single.rendezvous_port, 0);
}

// Two nodes of two ranks each.
Assignment two_nodes(const std::string& first_role, const std::string& second_role) {
  auto world = std::make_shared<World>();
  for (int node = 0; node < 2; ++node) {
    wire::Node& placed = *world->add_nodes();
    placed.set_address("10.0.0." + std::to_string(node + 1));
    for (const int port : {6070, 6071}) add_rank(&placed, {}, port);
    placed.set_role(node == 0 ? first_role : second_role);
  }
  number_ranks(world.get());
  Assignment assignment;
  assignment.world = std::shared_ptr<const World>(world);
  assignment.node_rank = 1;
  return assignment;
}

std::string value_of(const Assignment& assignment, const std::string& name,
                     const RankContext& context = {}) {
  const RankContext whole = with_lists(assignment, context);
  for (const auto& [key, value] : dialect_named("torch").variables(assignment, 1, whole)) {
    if (key == name) return value;
  }
  return "none";
}

TEST(TorchDialect, Roles_AreCountedAcrossNodes) {
  const Assignment same = two_nodes("trainer", "trainer"), other = two_nodes("reader", "trainer");
  EXPECT_EQ(value_of(same, "ROLE_NAME"), "trainer");
  EXPECT_EQ(value_of(same, "ROLE_RANK"), "3");
  EXPECT_EQ(value_of(same, "ROLE_WORLD_SIZE"), "4");
  EXPECT_EQ(value_of(other, "ROLE_RANK"), "1");
  EXPECT_EQ(value_of(other, "ROLE_WORLD_SIZE"), "2");
}

TEST(TorchDialect, VirtualLocalRank_SeesOneDevice) {
  const Assignment job = two_nodes("default", "default");
  EXPECT_EQ(value_of(job, "LOCAL_RANK"), "1");
  EXPECT_EQ(value_of(job, "CUDA_VISIBLE_DEVICES"), "none");
  RankContext context;
  context.virtual_local_rank = true;
  context.visible_devices = "5";
  EXPECT_EQ(value_of(job, "LOCAL_RANK", context), "0");
  EXPECT_EQ(value_of(job, "CUDA_VISIBLE_DEVICES", context), "5");
}

TEST(TorchDialect, ErrorFile_IsNamed) {
  RankContext context;
  context.error_file = "/log/error.json";
  EXPECT_EQ(value_of(two_nodes("a", "a"), "TORCHELASTIC_ERROR_FILE", context), "/log/error.json");
  EXPECT_EQ(value_of(two_nodes("a", "a"), "TORCHELASTIC_ERROR_FILE"), "none");
}

}  // namespace
}  // namespace fleet
