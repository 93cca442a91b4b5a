#include "observe/server_progress.h"

#include <gtest/gtest.h>

#include "observe/rank_progress.h"

namespace fleet {
namespace {

TEST(ServerProgress, WhatAServerPublishes_IsRead) {
  ProgressReader reader;
  ServerProgressWriter writer(reader.path());
  EXPECT_FALSE(reader.read_server());
  ServerProgress own{.at_ns = 7, .state = ServerState::kSaving, .pushes = 3, .tables = 1};
  own.address.set("10.0.0.1:6170");
  own.table[0].name.set("embedding");
  own.table[0].rows = 12;
  writer.publish(own);
  EXPECT_EQ(reader.read_server(), own);
  EXPECT_EQ(reader.read_server()->table[0].name.view(), "embedding");
  EXPECT_FALSE(reader.read_use());
  EXPECT_FALSE(reader.read()) << "it makes no steps";
}

TEST(ServerProgress, UseOfServers_StandsBesideTheSteps) {
  ProgressReader reader;
  ProgressWriter steps(reader.path());
  ServerProgressWriter writer(reader.path());
  ServerUse use{.updates = 5, .servers = 2, .push_wait = 9};
  use.answer[1] = 11;
  writer.publish(use);
  steps.step_done(101, 2, {.samples = 64});
  EXPECT_EQ(reader.read_use(), use);
  EXPECT_EQ(reader.read()->step, 101);
  EXPECT_FALSE(reader.read_server());
}

TEST(ServerProgressWriter, WithoutALauncher_DoesNothing) {
  ServerProgressWriter writer;
  writer.publish(ServerProgress{.at_ns = 1});
  writer.publish(ServerUse{.updates = 1});
}

TEST(ShortText, LongText_IsCut) {
  ShortText<4> text;
  text.set("embedding");
  EXPECT_EQ(text.view(), "embe");
  text.set("id");
  EXPECT_EQ(text.view(), "id");
}

}  // namespace
}  // namespace fleet
