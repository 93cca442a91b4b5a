// The suite of contract_test.cc, for the files that name the backends it runs on.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/comm/ranks.h"

namespace fleet {

class Contract : public testing::TestWithParam<GroupCase> {
 protected:
  void run(const std::function<void(Rank&)>& body) { run_ranks(GetParam(), body); }
  int size() const { return GetParam().size(); }
};

inline void PrintTo(const GroupCase& group, std::ostream* out) {
  *out << group.backend << " of " << group.size();
}

// Rank r runs on host 127.0.0.<host_of_rank[r]>.
inline GroupCase on_hosts(const std::string& backend, const std::vector<int>& host_of_rank) {
  GroupCase group{backend, {}};
  for (int host : host_of_rank) group.nodes.push_back("127.0.0." + std::to_string(host));
  return group;
}

// "gloo_1_2": for INSTANTIATE_TEST_SUITE_P.
inline std::string name_of_case(const testing::TestParamInfo<GroupCase>& info) {
  std::string name = info.param.backend;
  for (const std::string& node : info.param.nodes) name += "_" + node.substr(8);
  return name;
}

}  // namespace fleet
