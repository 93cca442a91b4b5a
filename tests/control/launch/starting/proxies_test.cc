#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "launch/planning/environment.h"
#include "launch/starting/startup_messages.h"
#include "tests/control/launch/sample_job.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> warnings(const std::vector<std::string>& dialects,
                                  const std::map<std::string, std::string>& environment) {
  return proxy_warnings(dialects, sample_job(false), [&](const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string coordinator() {
  const std::string endpoint = first_endpoint(*sample_job(false).world);
  return endpoint.substr(0, endpoint.rfind(':'));
}

TEST(ProxyWarnings, JaxCoordinatorBehindAProxy_IsNamedWithWhatToDo) {
  EXPECT_THAT(warnings({"jax"}, {{"http_proxy", "http://proxy:3128"}}),
              ElementsAre(HasSubstr("add " + coordinator() + " to no_proxy")));
}

TEST(ProxyWarnings, ExceptedHostOrOtherDialects_AreFine) {
  EXPECT_THAT(warnings({"jax"}, {{"http_proxy", "x"}, {"no_proxy", "a," + coordinator()}}),
              IsEmpty());
  EXPECT_THAT(warnings({"paddle", "torch"}, {{"https_proxy", "x"}}), IsEmpty());
  EXPECT_THAT(warnings({"jax"}, {}), IsEmpty());
}

TEST(NoProxy, NamesDomainsAddressesAndNetworks_Match) {
  EXPECT_TRUE(excepted_from_proxy("gpu07", "localhost, gpu07"));
  EXPECT_TRUE(excepted_from_proxy("gpu07.cluster", ".cluster"));
  EXPECT_TRUE(excepted_from_proxy("gpu07.cluster", "cluster"));
  EXPECT_TRUE(excepted_from_proxy("10.1.2.3", "10.0.0.0/8"));
  EXPECT_TRUE(excepted_from_proxy("anything", "*"));
  EXPECT_FALSE(excepted_from_proxy("gpu07", "gpu0"));
  EXPECT_FALSE(excepted_from_proxy("11.1.2.3", "10.0.0.0/8"));
  EXPECT_FALSE(excepted_from_proxy("mycluster", "cluster"));
  EXPECT_FALSE(excepted_from_proxy("gpu07", ""));
}

}  // namespace
}  // namespace fleet
