#include "ps/dense_payload.h"

#include <array>
#include <new>

#include "ps/transport/receive_memory.h"

namespace fleet::ps {

std::vector<BlockSegment> segments_of(const ServedModel& model, const Placement& placement,
                                      int server, uint32_t sections) {
  std::vector<BlockSegment> segments;
  const std::vector<int> own = placement.blocks_of(server);
  const auto add_block = [&](Sections section, int block, const std::string& variable, DType dtype,
                             int state = 0) {
    const Block& at = placement.blocks[block];
    segments.push_back({.section = section,
                        .item = block,
                        .state = state,
                        .variable = variable,
                        .dtype = dtype,
                        .begin = at.begin,
                        .bytes = static_cast<size_t>(at.elements()) * size_of(dtype)});
  };
  const auto add_var = [&](Sections section, int item, const ServedVar& var) {
    segments.push_back({.section = section,
                        .item = item,
                        .variable = var.name,
                        .dtype = var.dtype,
                        .bytes = var.bytes()});
  };
  const auto parameter_of = [&](int block) -> const ServedParameter& {
    return model.parameters[placement.blocks[block].parameter];
  };
  for (const int block : own) {
    if (!(sections & kValueSection)) break;
    add_block(kValueSection, block, parameter_of(block).name, DType::kFloat32);
  }
  for (const int block : own) {
    const std::string& average = parameter_of(block).average;
    if (!(sections & kAverageSection) || average.empty()) continue;
    add_block(kAverageSection, block, average, DType::kFloat32);
  }
  for (const int block : own) {
    if (!(sections & kStateSection)) break;
    const std::vector<std::string>& states = parameter_of(block).states;
    for (size_t s = 0; s < states.size(); ++s) {
      add_block(kStateSection, block, states[s], DType::kFloat32, static_cast<int>(s));
    }
  }
  for (size_t i = 0; i < model.counters.size() && sections & kCounterSection; ++i) {
    add_var(kCounterSection, static_cast<int>(i), model.counters[i]);
  }
  for (size_t i = 0; i < model.kept.size() && sections & kKeptSection; ++i) {
    if (placement.kept[i] != server) continue;
    add_var(kKeptSection, static_cast<int>(i), model.kept[i]);
  }
  for (const int block : own) {
    if (!(sections & kGradientSection)) break;
    const ServedParameter& parameter = parameter_of(block);
    add_block(kGradientSection, block, parameter.gradient, parameter.gradient_dtype);
  }
  return segments;
}

size_t bytes_of(const std::vector<BlockSegment>& segments) {
  size_t sum = 0;
  for (const BlockSegment& segment : segments) sum += segment.padded();
  return sum;
}

Bytes owned_bytes(const void* data, size_t size) {
  const auto copy = std::make_shared<std::vector<std::byte>>(size);
  if (size > 0) std::memcpy(copy->data(), data, size);
  return {.data = *copy, .owner = copy};
}

Bytes copy_of_parts(std::span<const Bytes> parts) {
  size_t bytes = 0;
  for (const Bytes& part : parts) bytes += part.data.size();
  ReceiveMemory::Block block = ReceiveMemory::shared().take(bytes);
  std::byte* at = block.data();
  for (const Bytes& part : parts) {
    if (part.data.empty()) continue;
    std::memcpy(at, part.data.data(), part.data.size());
    at += part.data.size();
  }
  return std::move(block).bytes();
}

Bytes padding_bytes(size_t count) {
  static const std::array<std::byte, 8> kZeros{};
  // Static memory needs no owner, but a null owner would make the sender wait.
  static const auto kOwner = std::make_shared<int>(0);
  return {.data = std::span(kZeros).first(count), .owner = kOwner};
}

void append_segment(std::vector<Bytes>& parts, const BlockSegment& segment, Bytes bytes) {
  FLEET_CHECK(bytes.data.size() == segment.bytes,
              "a part of '" + segment.variable + "' of another size");
  parts.push_back(std::move(bytes));
  const size_t padding = segment.padded() - segment.bytes;
  if (padding > 0) parts.push_back(padding_bytes(padding));
}

Error error_of(const std::exception& exception, const std::string& where) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&exception)) {
    return {ErrorCode::kNoMemory, "has no memory left", where,
            "use more servers, or machines with more memory"};
  }
  return {ErrorCode::kInternal, exception.what(), where};
}

// Four texts, each behind its length: the code's number, and the error's three parts.
Message failure_message(const Error& error) {
  std::string text;
  for (const std::string& part : {std::to_string(static_cast<int>(error.code())), error.failure(),
                                  error.where(), error.next()}) {
    const auto size = static_cast<uint32_t>(part.size());
    text.append(reinterpret_cast<const char*>(&size), sizeof size);
    text += part;
  }
  return {.header = {.type = MessageType::kFailure},
          .parts = {owned_bytes(text.data(), text.size())}};
}

Error error_of(const Message& failure) {
  std::span<const std::byte> rest = failure.payload();
  std::array<std::string, 4> parts;
  for (std::string& part : parts) {
    uint32_t size = 0;
    FLEET_CHECK(rest.size() >= sizeof size, "a failure that is too short");
    std::memcpy(&size, rest.data(), sizeof size);
    rest = rest.subspan(sizeof size);
    FLEET_CHECK(rest.size() >= size, "a failure that is too short");
    part.assign(reinterpret_cast<const char*>(rest.data()), size);
    rest = rest.subspan(size);
  }
  return {static_cast<ErrorCode>(std::stoi(parts[0])), parts[1], parts[2], parts[3]};
}

}  // namespace fleet::ps
