// A rendezvous that wants its secret, and who has another one or none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/certificates.h"
#include "rendezvous/store_client.h"
#include "tests/rendezvous/grpc_nodes.h"

namespace fleet {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

RendezvousServerOptions guarded(bool tls) {
  RendezvousServerOptions options;
  options.security = {new_secret(), tls, "a test"};
  return options;
}

class Guarded : public testing::TestWithParam<bool> {
 protected:
  Guarded() : job_(2, guarded(GetParam())) {}
  RunningJob job_;
};
INSTANTIATE_TEST_SUITE_P(Security, Guarded, testing::Bool(),
                         [](const auto& tls) { return tls.param ? "Tls" : "Token"; });

TEST_P(Guarded, NodesAndRanksWithTheSecret_WorkTogether) {
  const auto store = connect_store(job_.server->local_address(), "default", 1, 0, job_.security);
  store->set("key", "value");
  EXPECT_EQ(store->get("key", kSoon), "value");
  for (auto& node : job_.nodes) node->client.finish();
  EXPECT_TRUE(job_.nodes[1]->wait_for<Verdict>().value().ok());
}

TEST_P(Guarded, StoreOfAStranger_IsRefused) {
  const std::string address = job_.server->local_address();
  for (const Security& theirs : {Security{}, Security{new_secret(), GetParam(), {}}}) {
    const auto store = connect_store(address, "default", 1, 0, theirs);
    const Error error = error_of([&] { store->set("key", "value"); });
    EXPECT_THAT(error.code(), AnyOf(ErrorCode::kUsage, ErrorCode::kPeerLost)) << error.what();
  }
}

}  // namespace
}  // namespace fleet
