#include "launch/planning/dialects/pmi_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Node 0 of two with two ranks each.
class PmiServerTest : public ::testing::Test {
 protected:
  std::string ask(int local_rank, const std::string& line) {
    told.assign(2, {});
    server.on_bytes(local_rank, line + "\n");
    const auto& answers = told[static_cast<size_t>(local_rank)];
    return answers.empty() ? "" : answers.back();
  }

  std::vector<std::vector<std::string>> told{2};
  std::vector<std::pair<int, std::string>> exchanges;
  PmiServer server{
      {"job", 4, 2, {2, 2}},
      [this](int local_rank, const std::string& line) {
        told[static_cast<size_t>(local_rank)].push_back(line);
      },
      [this](int round, const std::string& puts) { exchanges.emplace_back(round, puts); }};
};

// The number behind "rc=" of an answer; 0 if it has none.
int code_in(const std::string& answer) {
  const size_t at = answer.find(" rc=");
  return at == std::string::npos ? 0 : std::stoi(answer.substr(at + 4));
}

TEST_F(PmiServerTest, Start_IsMpichsOwn) {
  EXPECT_EQ(ask(0, "cmd=init pmi_version=1 pmi_subversion=1"),
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(ask(0, "cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(ask(0, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=job\n");
  EXPECT_EQ(ask(0, "cmd=get_appnum"), "cmd=appnum appnum=0\n");
  EXPECT_EQ(ask(0, "cmd=get_universe_size"), "cmd=universe_size size=4\n");
  EXPECT_EQ(ask(0, "cmd=finalize"), "cmd=finalize_ack\n");
}

TEST_F(PmiServerTest, OtherVersion_IsRefused) {
  EXPECT_EQ(code_in(ask(0, "cmd=init pmi_version=2 pmi_subversion=0")), -1);
}

TEST_F(PmiServerTest, LineInPieces_IsPutTogether) {
  server.on_bytes(0, "cmd=get_app");
  EXPECT_THAT(told[0], IsEmpty());
  server.on_bytes(0, "num\ncmd=finalize\n");
  EXPECT_THAT(told[0], ElementsAre("cmd=appnum appnum=0\n", "cmd=finalize_ack\n"));
}

TEST_F(PmiServerTest, WhatOthersPut_IsThereAfterTheBarrier) {
  EXPECT_EQ(ask(0, "cmd=put kvsname=job key=P0 value=a=b"), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(ask(0, "cmd=barrier_in"), "");
  EXPECT_THAT(exchanges, IsEmpty());  // one of two ranks
  EXPECT_EQ(ask(1, "cmd=barrier_in"), "");
  EXPECT_THAT(exchanges, ElementsAre(std::make_pair(0, "P0=a=b\n")));
  server.merge("P0=a=b\nP2=c\n");
  EXPECT_THAT(told[0], ElementsAre("cmd=barrier_out\n"));
  EXPECT_THAT(told[1], ElementsAre("cmd=barrier_out\n"));
  EXPECT_EQ(ask(1, "cmd=get kvsname=job key=P2"), "cmd=get_result rc=0 msg=success value=c\n");
  EXPECT_EQ(ask(1, "cmd=get kvsname=job key=P0"), "cmd=get_result rc=0 msg=success value=a=b\n");
  EXPECT_EQ(code_in(ask(1, "cmd=get kvsname=job key=P3")), -1);
}

TEST_F(PmiServerTest, NextBarrier_HasOnlyNewPuts) {
  ask(0, "cmd=put kvsname=job key=P0 value=a");
  ask(0, "cmd=barrier_in"), ask(1, "cmd=barrier_in");
  server.merge("P0=a\n");
  ask(1, "cmd=put kvsname=job key=P1 value=b");
  ask(0, "cmd=barrier_in"), ask(1, "cmd=barrier_in");
  EXPECT_THAT(exchanges, ElementsAre(std::make_pair(0, "P0=a\n"), std::make_pair(1, "P1=b\n")));
}

TEST_F(PmiServerTest, BadPuts_AreRefused) {
  EXPECT_EQ(code_in(ask(0, "cmd=put kvsname=other key=a value=b")), -1);
  EXPECT_EQ(code_in(ask(0, "cmd=put kvsname=job value=b")), -1);
  const std::string large(2000, 'x');
  EXPECT_EQ(code_in(ask(0, "cmd=put kvsname=job key=a value=" + large)), -1);
}

TEST_F(PmiServerTest, WhatIsNotSupported_IsSaid) {
  server.on_bytes(0, "mcmd=spawn\nnprocs=2\nexecname=prog\nendcmd\n");
  EXPECT_THAT(told[0], ElementsAre(StartsWith("cmd=spawn_result rc=-1")));
  EXPECT_THAT(ask(0, "cmd=lookup_name service=x"), StartsWith("cmd=lookup_result"));
  EXPECT_EQ(code_in(ask(0, "cmd=frobnicate")), -1);
}

TEST_F(PmiServerTest, ProcessMapping_IsThereFromTheStart) {
  EXPECT_EQ(ask(0, "cmd=get kvsname=job key=PMI_process_mapping"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n");
}

TEST(PmiProcessMapping, UnequalNodes_AreBlocks) {
  EXPECT_EQ(PmiServer::process_mapping({4, 4, 3}), "(vector,(0,2,4),(2,1,3))");
}

}  // namespace
}  // namespace fleet
