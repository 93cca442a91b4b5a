#include "daemon/loop_gate.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(LoopGate, WhatIsPosted_RunsInTheLoopWhileThatExists) {
  int ran = 0;
  std::shared_ptr<LoopGate> gate;
  {
    boost::asio::io_context loop{1};
    gate = LoopGate::of(loop);
    EXPECT_EQ(gate, LoopGate::of(loop));
    gate->post([&] { ++ran; });
    EXPECT_EQ(ran, 0);
    loop.run();
    EXPECT_EQ(ran, 1);
    gate->post([&] { ++ran; });  // the loop ends before it runs this
  }
  gate->post([&] { ++ran; });
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace fleet
