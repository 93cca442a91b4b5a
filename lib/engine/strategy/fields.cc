#include "strategy/fields.h"

#include <google/protobuf/text_format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "strategy/names.h"

namespace fleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string value_text(const Message& message, const FieldDescriptor& field) {
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, -1, &text);
  return text;
}

bool all_default(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  const Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool nested =
        !field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const bool same =
        nested ? all_default(reflection.GetMessage(message, field)) : is_default(message, *field);
    if (!same) return false;
  }
  return true;
}

// Whether this is the configuration of a feature that is switched off.
bool is_switched_off(const Message& message, const FieldDescriptor& field) {
  const std::string suffix = "_configs", &name = field.name();
  if (!name.ends_with(suffix)) return false;
  const FieldDescriptor* feature =
      message.GetDescriptor()->FindFieldByName(name.substr(0, name.size() - suffix.size()));
  return feature && feature->cpp_type() == FieldDescriptor::CPPTYPE_BOOL &&
         !message.GetReflection()->GetBool(message, feature);
}

void find_unclaimed(const Message& message, const std::string& prefix,
                    const std::set<std::string>& taken, bool whole,
                    std::vector<std::string>* found) {
  const Descriptor& type = *message.GetDescriptor();
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    // Taking a message does not take its later fields, which have no implementation here.
    const bool later = field.options().GetExtension(paddle::fleet::later);
    const bool known = taken.contains(path) || (whole && !later);
    if (!field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!reflection.HasField(message, &field)) continue;
      if (is_switched_off(message, field)) {
        if (!all_default(reflection.GetMessage(message, &field))) {
          spdlog::warn("strategy: {} has no effect: {} is off", path,
                       path.substr(0, path.rfind("_configs")));
        }
        continue;
      }
      find_unclaimed(reflection.GetMessage(message, &field), path + ".", taken, known, found);
    } else if (!known && !is_default(message, field)) {
      found->push_back(path);
    }
  }
}

}  // namespace

bool is_default(const Message& message, const FieldDescriptor& field) {
  if (field.is_repeated()) return message.GetReflection()->FieldSize(message, &field) == 0;
  if (!message.GetReflection()->HasField(message, &field)) return true;
  std::unique_ptr<Message> blank(message.New());
  return value_text(message, field) == value_text(*blank, field);
}

bool in_range(const FieldDescriptor& field, const Message& message) {
  if (field.is_repeated()) return true;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    return in_range(field, message.GetReflection()->GetInt32(message, &field));
  }
  return field.cpp_type() != FieldDescriptor::CPPTYPE_FLOAT ||
         in_range(field, message.GetReflection()->GetFloat(message, &field));
}

// The message that has the field of this path, and the field.
static std::pair<const Message*, const FieldDescriptor*> resolved(const StrategyProto& proto,
                                                                  const std::string& path) {
  const FieldDescriptor* field = find_field(path);
  FLEET_CHECK(field, "strategy.proto has no field " + path);
  const Message* message = &proto;
  const std::vector<std::string> names = split(path, '.');
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    const FieldDescriptor* outer = message->GetDescriptor()->FindFieldByName(names[i]);
    message = &message->GetReflection()->GetMessage(*message, outer);
  }
  return {message, field};
}

std::vector<std::string> given_fields(const StrategyProto& proto,
                                      const std::vector<std::string>& paths) {
  std::vector<std::string> given;
  for (const std::string& path : paths) {
    const auto [message, field] = resolved(proto, path);
    const Reflection& reflection = *message->GetReflection();
    const bool there = field->is_repeated() ? reflection.FieldSize(*message, field) > 0
                                            : reflection.HasField(*message, field);
    if (there) given.push_back(path);
  }
  return given;
}

void clear_field(const std::string& path, StrategyProto* proto) {
  Message* message = proto;
  const std::vector<std::string> names = split(path, '.');
  for (size_t i = 0; i < names.size(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(names[i]);
    FLEET_CHECK(field, "strategy.proto has no field " + path);
    if (i + 1 == names.size()) {
      message->GetReflection()->ClearField(message, field);
    } else {
      message = message->GetReflection()->MutableMessage(message, field);
    }
  }
}

std::optional<bool> given_boolean(const StrategyProto& proto, const std::string& path) {
  const auto [message, field] = resolved(proto, path);
  FLEET_CHECK(!field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL,
              path + " is not a bool");
  const Reflection& reflection = *message->GetReflection();
  if (!reflection.HasField(*message, field)) return std::nullopt;
  return reflection.GetBool(*message, field);
}

std::vector<std::string> unclaimed_fields(const StrategyProto& proto,
                                          const std::set<std::string>& taken) {
  std::vector<std::string> found;
  find_unclaimed(proto, "", taken, false, &found);
  return found;
}

}  // namespace fleet
