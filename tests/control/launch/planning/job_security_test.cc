#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "launch/planning/arguments.h"
#include "launch/planning/launch_plan.h"
#include "transport/security.h"

namespace fleet {
namespace {

Topology topology(int nnodes, const std::string& address) {
  Topology all;
  all.nnodes = nnodes;
  all.address = all.bind_address = address;
  all.hosting = Topology::Hosting::kNo;  // no line for a terminal
  return all;
}

SecurityConfig security(std::vector<std::string> arguments) {
  arguments.emplace_back("program");
  return parse_arguments(arguments).config.security;
}

// The kernel says who comes to its Unix socket.
TEST(Guard, OneNode_NeedsNoSecret) {
  EXPECT_TRUE(resolve_job_security(security({}), topology(1, "127.0.0.1"), true).open());
  EXPECT_TRUE(resolve_job_security(security({}), topology(1, "10.0.0.1"), true).open());
}

TEST(Guard, OneNodeWithASecretFile_ChecksItNevertheless) {
  const std::string path = ::testing::TempDir() + "guard_test.secret";
  write_file_atomically(path, "0123456789abcdef\n");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(
      resolve_job_security(security({"--secret_file=" + path}), topology(1, "::1"), true).open());
  EXPECT_THROW(
      resolve_job_security(security({"--secret_file=/no/such"}), topology(1, "127.0.0.1"), true),
      Error);
}

// One that runs and others that wait have to meet.
TEST(Guard, OneNodeWithSpares_SharesASecret) {
  ::setenv(kEnvJobSecret, "0123456789abcdef", 1);
  Topology spares = topology(1, "127.0.0.1");
  spares.nodes = {"127.0.0.1", "127.0.0.2"};
  EXPECT_TRUE(resolve_job_security(security({}), spares, true).tls);
  ::unsetenv(kEnvJobSecret);
}

TEST(Guard, SeveralNodes_ShareASecretUnlessInsecure) {
  ::setenv(kEnvJobSecret, "0123456789abcdef", 1);
  const Security shared = resolve_job_security(security({}), topology(2, "127.0.0.1"), true);
  EXPECT_EQ(shared.secret, "0123456789abcdef");
  EXPECT_TRUE(shared.tls);
  EXPECT_TRUE(
      resolve_job_security(security({"--insecure"}), topology(2, "127.0.0.1"), true).open());
  ::unsetenv(kEnvJobSecret);
}

TEST(Guard, DryRun_MakesNoSecretAndNeedsNone) {
  ::setenv("XDG_CONFIG_HOME", "/proc/nope", 1);
  EXPECT_TRUE(resolve_job_security(security({}), topology(2, "10.0.0.1"), false).open());
  EXPECT_ANY_THROW(resolve_job_security(security({}), topology(2, "10.0.0.1"), true));
  ::unsetenv("XDG_CONFIG_HOME");
}

TEST(CredentialsFile, IsReadByItsPathWhileItLives) {
  std::string path;
  {
    const CredentialsFile file({"0123456789abcdef", true, {}});
    path = file.path();
    EXPECT_TRUE(security_from_text(read_file(path)).tls);
  }
  EXPECT_ANY_THROW(read_file(path));
  EXPECT_EQ(CredentialsFile(Security{}).path(), "");
}

}  // namespace
}  // namespace fleet
