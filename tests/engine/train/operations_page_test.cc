#include <gmock/gmock.h>

#include "graph/op_reference.h"
#include "graph/program.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a network may append, and nothing that passes, strategies and optimizers append.
TEST(OperationsPage, OperationsOfNetworks_AreThereWithTheirAttributes) {
  const std::string page = operations_markdown();
  for (const std::string type : {"conv2d", "slice", "dropout", "matmul", "fill", "tanh"}) {
    EXPECT_THAT(page, HasSubstr("## " + type + "\n"));
    for (const auto& [name, value] : op_registry().get(type).attributes) {
      EXPECT_THAT(page, HasSubstr("| `" + name + "` | " + type_name_of(value) + " | `" +
                                  text_of(value) + "` |"));
    }
  }
  for (const std::string type : {"conv2d_data_grad", "all_reduce", "sgd", "fused_elementwise"}) {
    EXPECT_THAT(page, Not(HasSubstr("## " + type + "\n")));
  }
}

}  // namespace
}  // namespace fleet
