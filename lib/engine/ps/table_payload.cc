#include "ps/table_payload.h"

#include <string>

namespace fleet::ps {

Message json_message(MessageType type, const Json& json) {
  const std::string text = json.dump();
  return {.header = {.type = type}, .parts = {owned_bytes(text.data(), text.size())}};
}

Json json_of(const Message& message) {
  const std::span<const std::byte> bytes = message.payload();
  try {
    return Json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const JsonError& error) {
    throw Error(ErrorCode::kInternal, error.what(), "a command about tables");
  }
}

Json json_of(const Error& error) {
  return {{"error",
           {{"code", static_cast<int>(error.code())},
            {"failure", error.failure()},
            {"where", error.where()},
            {"next", error.next()}}}};
}

void throw_if_failed(const Json& result) {
  const Json* error = result.find("error");
  if (!error) return;
  throw Error(static_cast<ErrorCode>(error->at("code").get<int>()),
              error->at("failure").get<std::string>(), error->at("where").get<std::string>(),
              error->at("next").get<std::string>());
}

}  // namespace fleet::ps
