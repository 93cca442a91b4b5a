#include <google/protobuf/text_format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "strategy/strategy_file.h"

namespace fleet {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// 21 for "2.1".
int number_of(const std::string& release) {
  for (const std::string& known : paddle_releases()) {
    if (release == known) return (release[0] - '0') * 10 + (release[2] - '0');
  }
  throw Error(ErrorCode::kUsage, "cannot write a strategy for Paddle " + release, {},
              suggestion(release, paddle_releases()));
}

bool is_in(const FieldDescriptor& field, int release) {
  const google::protobuf::FieldOptions& options = field.options();
  return !options.GetExtension(paddle::fleet::own) &&
         release >= options.GetExtension(paddle::fleet::since) &&
         release <= options.GetExtension(paddle::fleet::until);
}

bool is_message(const FieldDescriptor& field) {
  return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

// Removes fields that the release does not have; returns those whose values differ from the
// default.
void take_out(Message* message, const std::string& prefix, int release, bool known,
              std::vector<std::string>* left_out) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    const bool there = known && is_in(*field, release);
    if (is_message(*field)) {
      take_out(reflection.MutableMessage(message, field), path + ".", release, there, left_out);
    } else if (!there && !is_default(*message, *field)) {
      left_out->push_back(path);
    }
    if (!there) reflection.ClearField(message, field);
  }
}

// Paddle 2.0.0 has 4000 MiB, and the other two switched on.
void write_out_defaults(StrategyProto* proto) {
  proto->set_cudnn_exhaustive_search(proto->cudnn_exhaustive_search());
  proto->set_conv_workspace_size_limit(proto->conv_workspace_size_limit());
  proto->set_cudnn_batchnorm_spatial_persistent(proto->cudnn_batchnorm_spatial_persistent());
}

}  // namespace

const std::vector<std::string>& paddle_releases() {
  static const std::vector<std::string> releases = {"2.0", "2.1", "2.6", "3.3"};
  return releases;
}

std::string strategy_text(const StrategyProto& proto, const std::string& release,
                          std::vector<std::string>* left_out) {
  const int number = number_of(release);
  StrategyProto written = proto;
  take_out(&written, "", number, true, left_out);
  if (number == 20) write_out_defaults(&written);
  std::string text;
  google::protobuf::TextFormat::PrintToString(written, &text);
  return text;
}

std::vector<std::string> save_strategy_file(const StrategyProto& proto, const std::string& release,
                                            const std::string& path) {
  check_replaceable(path);
  std::vector<std::string> left_out;
  write_file_atomically(path, strategy_text(proto, release, &left_out));
  return left_out;
}

}  // namespace fleet
